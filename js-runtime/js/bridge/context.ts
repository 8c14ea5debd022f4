// `ctx`: the session as handlers, tools and commands see it. No member is a copy; each one queries
// the program when it is read.
import { host, hostSync, hostSyncCached } from "ext:js_runtime/bridge/host.ts";
import { abort, AbortController, extend, SafeMap, SafeSet, setTimeout } from "ext:js_runtime/primordials.ts";
import { openSession } from "ext:js_runtime/bridge/session.ts";
import { isJustPrompted, markIdle, markPrompted } from "ext:js_runtime/bridge/recent-prompt.ts";
import { checkStale, markReplaced } from "ext:js_runtime/bridge/stale.ts";
import { createUi, type Calls } from "ext:js_runtime/bridge/ui.ts";
import { isQueued, report, runningPurpose } from "ext:js_runtime/bridge/registry.ts";
import { ModelRegistry } from "pi:pi-coding-agent/models/registry.ts";
import { adopt } from "pi:pi-coding-agent/session-manager/index.ts";
import type { SessionManager } from "pi:pi-coding-agent/session-manager/index.ts";

/** One controller per run of the agent whose signal a handler has read. */
const runs = new SafeMap<number, AbortController>();
/** Runs that were aborted. A handler may read the signal of one only afterwards. */
const aborted = new SafeSet<number>();

function signalOf(run: number | null | undefined): AbortSignal | undefined {
  if (run === null || run === undefined) return undefined;
  let controller = runs.get(run);
  if (!controller) {
    runs.clear();
    runs.set(run, (controller = new AbortController()));
    if (aborted.has(run)) abort(controller);
  }
  return controller.signal;
}

/** Controllers of operations that pass a signal of their own to handlers: a compaction, a navigation. */
const works = new SafeMap<number, AbortController>();

/** Calls `ask` with the signal of the operation `id`. */
export async function withSignal<T>(
  id: number,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  works.set(id, controller);
  try {
    return await run(controller.signal);
  } finally {
    works.delete(id);
  }
}

/** Runs and operations share one sequence of numbers. */
export function abortRun(run: number): void {
  aborted.add(run);
  const ofRun = runs.get(run);
  const ofWork = works.get(run);
  if (ofRun) abort(ofRun);
  if (ofWork) abort(ofWork);
}

/** The functions with which a context calls the program. */
const HOST_CALLS: Calls = { host, hostSync };

/**
 * Wraps `host` for calls that may have to wait for the agent, and passes what the calling code runs
 * for. While the agent waits for that code, the agent goes on; while the session waits for it, the
 * call fails instead of waiting.
 */
function hostWithCaller(calls: Calls): typeof host {
  return <T>(method: string, args?: unknown) =>
    calls.host<T>(method, { ...(args as object), during: runningPurpose(), queued: isQueued() });
}

/** The calls of a callback that outlives its generation name the stale call they belong to. */
function callsOfStaleCall(staleCall: number): Calls {
  return {
    host: (method, args) => host(method, { ...(args as object), staleCall }),
    hostSync: (method, args) => hostSync(method, { ...(args as object), staleCall }),
  };
}

/** The model registry of the session, shared by all contexts of a generation. */
const createModelRegistry = (calls: Calls) => new ModelRegistry(0, calls);
let modelRegistry: ModelRegistry | undefined;
const ownModelRegistry = () => (modelRegistry ??= createModelRegistry(HOST_CALLS));
export const sessionManager = openSession();

const uis = new SafeMap<number, ReturnType<typeof createUi>>();

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

async function compact(
  extension: number,
  hostCall: typeof host,
  { customInstructions, onComplete, onError }: CompactOptions,
): Promise<void> {
  try {
    let result: unknown;
    try {
      result = await hostCall("ctx.compact", { extension, customInstructions });
    } catch (error) {
      await onError?.(error as Error);
      return;
    }
    await onComplete?.(result);
  } catch (error) {
    report(extension, "compact", error);
  }
}

export function createContext(extension: number, run?: number | null, calls = HOST_CALLS) {
  const { hostSync } = calls;
  const own = calls === HOST_CALLS;
  return {
    ui: own ? uiOf(extension) : createUi(extension, calls),
    get hasUI() {
      return hostSync<boolean>("ctx.hasUI");
    },
    get mode() {
      return hostSync<string>("ctx.mode");
    },
    get cwd() {
      return hostSync<string>("ctx.cwd");
    },
    sessionManager: own ? sessionManager : openSession(hostSync),
    modelRegistry: own ? ownModelRegistry() : createModelRegistry(calls),
    get model() {
      return own ? hostSyncCached("ctx.model") : hostSync("ctx.model");
    },
    get thinkingLevel() {
      return hostSync("pi.getThinkingLevel", { extension });
    },
    get scopedModels() {
      return hostSync("ctx.scopedModels");
    },
    isProjectTrusted: () => hostSync<boolean>("ctx.isProjectTrusted"),
    get signal() {
      if (own) checkStale();
      return signalOf(run);
    },
    isIdle: () => hostSync<boolean>("ctx.isIdle") && !isJustPrompted(),
    abort(): void {
      hostSync<void>("ctx.abort");
      // The signal is set at once for the caller; the program's event comes later.
      if (typeof run === "number") abortRun(run);
    },
    hasPendingMessages: () => hostSync<boolean>("ctx.hasPendingMessages"),
    shutdown: () => hostSync<void>("ctx.shutdown"),
    getContextUsage: () => hostSync("ctx.getContextUsage"),
    getSystemPrompt: () => hostSync<string>("ctx.getSystemPrompt"),
    /** Returns at once; the callbacks get the outcome. */
    compact(options: CompactOptions = {}): void {
      if (own) checkStale();
      compact(extension, hostWithCaller(calls), options);
    },
  };
}

type Cancelled = { cancelled: boolean };

interface ReplaceOptions {
  /** Called with a context of the new session. */
  withSession?(ctx: unknown): unknown;
}

interface NewSessionOptions extends ReplaceOptions {
  parentSession?: string;
  /** Writes to the new session before it is entered. */
  setup?(session: SessionManager): unknown;
}

interface ForkOptions extends ReplaceOptions {
  position?: string;
}

let staleCalls = 0;

/** Adds the members that only commands get: they may replace the session. */
export function createCommandContext(extension: number, run?: number | null, calls = HOST_CALLS) {
  const host = hostWithCaller(calls);
  /** A replaced generation stays until the command that replaced it has continued. */
  async function keepUntilContinued<T>(
    method: string,
    args: object,
    then?: (done: T, staleCall: number) => unknown,
  ): Promise<T> {
    const staleCall = (staleCalls += 1);
    try {
      const done = await host<T>(`ctx.${method}`, { extension, ...args, beginStaleCall: staleCall });
      if (!(done as Cancelled | undefined)?.cancelled) markReplaced();
      await then?.(done, staleCall);
      return done;
    } finally {
      // The code that awaits this promise runs first.
      setTimeout(() => hostSync("staleCall.end", { staleCall }), 0);
    }
  }
  const replace = (method: string, args: object, withSession?: ReplaceOptions["withSession"]) =>
    keepUntilContinued<Cancelled>(method, args, async (done, staleCall) => {
      if (!withSession || done.cancelled) return;
      await withSession(createReplacedContext(extension, callsOfStaleCall(staleCall)));
    });
  const context = createContext(extension, run, calls);
  return extend(context, {
    getSystemPromptOptions: () => calls.hostSync("ctx.getSystemPromptOptions"),
    async waitForIdle(): Promise<void> {
      await host<void>("ctx.waitForIdle", { extension });
      markIdle();
    },
    async newSession(options: NewSessionOptions = {}): Promise<Cancelled> {
      const { parentSession, setup, withSession } = options;
      if (!setup) return replace("newSession", { parentSession }, withSession);
      const prepared = await host<{ token: number } | undefined>("ctx.prepareSession", {
        extension,
        parentSession,
      });
      if (!prepared) return { cancelled: true };
      await setup(adopt(prepared.token));
      return replace("newSession", { session: prepared.token }, withSession);
    },
    switchSession: (path: string, options?: ReplaceOptions) =>
      replace("switchSession", { path }, options?.withSession),
    fork: (entryId: string, options?: ForkOptions) =>
      replace("fork", { entryId, position: options?.position }, options?.withSession),
    /** `editorText` is the user's message at that point, to be changed and sent again. */
    navigateTree: (targetId: string, options?: object) =>
      host<{ cancelled: boolean; editorText?: string }>("ctx.navigateTree", {
        extension,
        targetId,
        navigation: options,
      }),
    reload: () => keepUntilContinued<void>("reload", {}),
  });
}

/** The context that `withSession` passes on: without `pi` of the new session. */
function createReplacedContext(extension: number, calls: Calls) {
  const { hostSync } = calls;
  const context = createCommandContext(extension, undefined, calls);
  return extend(context, {
    async sendMessage(message: unknown, options?: unknown): Promise<void> {
      hostSync("pi.sendMessage", { extension, message, options });
    },
    async sendUserMessage(content: unknown, options?: unknown): Promise<void> {
      hostSync("pi.sendUserMessage", { extension, content, options });
      markPrompted();
    },
  });
}
