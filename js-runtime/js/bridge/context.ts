// `ctx`: the session as handlers, tools and commands see it. Nothing in it is a
// copy; every member asks when it is read.
import { host, hostSync } from "ext:js_runtime/host.ts";
import { sessionManager } from "ext:js_runtime/bridge/session.ts";
import { createUi } from "ext:js_runtime/bridge/ui.ts";
import { report } from "ext:js_runtime/bridge/registry.ts";

/** One controller per run of the agent that a handler has looked at. */
const runs = new Map<number, AbortController>();
/** Runs that were aborted: a handler may look at one only afterwards. */
const aborted = new Set<number>();

function signalOf(run: number | null | undefined): AbortSignal | undefined {
  if (run === null || run === undefined) return undefined;
  let controller = runs.get(run);
  if (!controller) {
    runs.clear();
    runs.set(run, (controller = new AbortController()));
    if (aborted.has(run)) controller.abort();
  }
  return controller.signal;
}

/** Controllers of what asks handlers with a signal of its own: a compaction, a navigation. */
const works = new Map<number, AbortController>();

/** Calls `ask` with the signal of the work `id`. */
export async function withSignal<T>(
  id: number,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  works.set(id, controller);
  try {
    return await ask(controller.signal);
  } finally {
    works.delete(id);
  }
}

/** Runs and works have their numbers from one sequence. */
export function abortRun(run: number): void {
  aborted.add(run);
  runs.get(run)?.abort();
  works.get(run)?.abort();
}

const modelRegistry = {
  find: (provider: string, id: string) => hostSync("models.find", { provider, id }),
  getAll: () => hostSync("models.all"),
  getAvailable: () => hostSync("models.available"),
  getError: () => hostSync("models.error"),
  hasConfiguredAuth: (model: { provider: string }) =>
    hostSync("models.hasAuth", { provider: model.provider }),
  getApiKeyAndHeaders: (model: { provider: string; id: string }) =>
    host("models.credentials", { provider: model.provider, id: model.id }),
  getApiKeyForProvider: (provider: string) => host("models.apiKey", { provider }),
  refresh: () => hostSync("models.refresh"),
};

const uis = new Map<number, ReturnType<typeof createUi>>();

function uiOf(extension: number) {
  let ui = uis.get(extension);
  if (!ui) uis.set(extension, (ui = createUi(extension)));
  return ui;
}

interface CompactOptions {
  customInstructions?: string;
  onComplete?(result: unknown): void;
  onError?(error: Error): void;
}

export function createContext(extension: number, run?: number | null) {
  return {
    ui: uiOf(extension),
    get hasUI() {
      return hostSync<boolean>("ctx.hasUI");
    },
    get mode() {
      return hostSync<string>("ctx.mode");
    },
    get cwd() {
      return hostSync<string>("ctx.cwd");
    },
    sessionManager,
    modelRegistry,
    get model() {
      return hostSync("ctx.model");
    },
    get thinkingLevel() {
      return hostSync("pi.getThinkingLevel", { extension });
    },
    signal: signalOf(run),
    isIdle: () => hostSync<boolean>("ctx.isIdle"),
    abort: () => hostSync<void>("ctx.abort"),
    hasPendingMessages: () => hostSync<boolean>("ctx.hasPendingMessages"),
    shutdown: () => hostSync<void>("ctx.shutdown"),
    getContextUsage: () => hostSync("ctx.getContextUsage"),
    getSystemPrompt: () => hostSync<string>("ctx.getSystemPrompt"),
    /** Returns at once; the callbacks tell how it went. */
    compact({ customInstructions, onComplete, onError }: CompactOptions = {}): void {
      host("ctx.compact", { extension, customInstructions })
        .then((result) => onComplete?.(result), (error) => onError?.(error))
        .catch((error) => report(extension, "compact", error));
    },
  };
}

interface NewSessionOptions {
  parentSession?: string;
  setup?: unknown;
}

/** What commands get in addition: they may replace the session. */
export function createCommandContext(extension: number, run?: number | null) {
  const replace = (method: string, args: object) =>
    host<{ cancelled: boolean }>(`ctx.${method}`, { extension, ...args });
  const context = createContext(extension, run);
  return Object.defineProperties(context, Object.getOwnPropertyDescriptors({
    waitForIdle: () => host<void>("ctx.waitForIdle"),
    newSession(options: NewSessionOptions = {}) {
      if (options.setup) {
        throw new Error(
          "ctx.newSession({ setup }) is not supported yet: send messages from session_start instead",
        );
      }
      return replace("newSession", { parentSession: options.parentSession });
    },
    switchSession: (path: string) => replace("switchSession", { path }),
    fork: (entryId: string, options?: { position?: string }) =>
      replace("fork", { entryId, position: options?.position }),
    /** `editorText` is what the user said there, to be changed and said again. */
    navigateTree: (targetId: string, options?: object) =>
      host<{ cancelled: boolean; editorText?: string }>("ctx.navigateTree", {
        extension,
        targetId,
        navigation: options,
      }),
    reload: () => host<void>("ctx.reload", { extension }),
  }));
}
