// `createAgentSession` and its variants: create child sessions.
import { currentFolder, path } from "pi:node.ts";
import { AgentSession } from "pi:pi-coding-agent/agent-session/index.ts";
import type { CustomTool, ScopedModel } from "pi:pi-coding-agent/agent-session/types.ts";
import { AuthStorage, REGISTRY } from "pi:pi-coding-agent/models/auth-storage.ts";
import { getAgentDir } from "pi:pi-coding-agent/config.ts";
import { ModelRegistry } from "pi:pi-coding-agent/models/registry.ts";
import type { ModelRuntime } from "pi:pi-coding-agent/models/runtime.ts";
import { InlineExtensions } from "pi:pi-coding-agent/agent-session/inline-extensions.ts";
import { takeExtensions } from "pi:pi-coding-agent/extensions/loader.ts";
import type { Extensions } from "pi:pi-coding-agent/extensions/loader.ts";
import { DefaultResourceLoader, eventsOf, loaderOfExtensions } from "pi:pi-coding-agent/resource-loader.ts";
import type { ReloadOptions, ResourceLoader } from "pi:pi-coding-agent/resource-loader.ts";
import { checkSkills } from "pi:pi-coding-agent/extensions/source-info.ts";
import { SessionManager } from "pi:pi-coding-agent/session-manager/index.ts";
import { SettingsManager } from "pi:pi-coding-agent/settings-manager.ts";

interface SessionOptions {
  cwd?: string;
  agentDir?: string;
  model?: object;
  thinkingLevel?: string;
  scopedModels?: ScopedModel[];
  /** Tools, or their names. A list of names excludes all others, even `customTools`. */
  tools?: (string | { name: string })[];
  /** Without `tools`: no tools at all, or only `customTools`. */
  noTools?: "all" | "builtin";
  /** Names of tools that are excluded in any case. */
  excludeTools?: string[];
  customTools?: CustomTool[];
  sessionManager?: SessionManager;
  resourceLoader?: ResourceLoader;
  authStorage?: unknown;
  settingsManager?: unknown;
  modelRegistry?: unknown;
  /** Replaces the two members above in newer versions. */
  modelRuntime?: ModelRuntime;
  /** The first event of the loader's extensions. */
  sessionStartEvent?: { type: string; [member: string]: unknown };
  /** Values of flags that the extensions have registered. */
  extensionFlagValues?: Map<string, boolean | string>;
}

interface Created {
  session: AgentSession;
  extensionsResult: unknown;
  modelFallbackMessage: string | undefined;
}

function skillsOf(loader: ResourceLoader): object[] | undefined {
  const skills = loader.getSkills?.().skills;
  if (skills) checkSkills(skills, "createAgentSession: getSkills() of resourceLoader");
  return skills;
}

/** The resources of a loader; without one the program finds them itself. */
function textsOf(loader: ResourceLoader | undefined): object {
  if (!loader) return {};
  const append = loader.getAppendSystemPrompt?.() ?? [];
  return {
    systemPrompt: loader.getSystemPrompt?.(),
    appendSystemPrompt: append.length > 0 ? append.join("\n\n") : undefined,
    contextFiles: loader.getAgentsFiles?.().agentsFiles,
    skills: skillsOf(loader),
    prompts: loader.getPrompts?.().prompts,
  };
}

/** Selects the tools of a session, built-in and custom ones. */
function toolsOf({ tools, noTools, excludeTools = [] }: SessionOptions): object {
  if (noTools !== undefined && noTools !== "all" && noTools !== "builtin") {
    throw new TypeError(`createAgentSession: noTools must be "all" or "builtin", not ${JSON.stringify(noTools)}`);
  }
  const names = tools?.map((tool) => (typeof tool === "string" ? tool : tool.name));
  // An empty list meant "custom tools only" before `noTools` existed.
  const areNames = tools !== undefined && tools.length > 0 && tools.every((tool) => typeof tool === "string");
  return {
    tools: names ?? (noTools && []),
    noOthers: names ? areNames : noTools === "all",
    excludeTools,
  };
}

/** A flag without a value is set to true. */
const flagsOf = (values: Map<string, boolean | string> = new Map()) =>
  [...values].filter(([, value]) => value !== false).map(([name, value]) => [name, value === true ? null : value]);

/** Creates each member when it is first read. */
function lazily<T extends object>(makers: { [Name in keyof T]: () => T[Name] }): T {
  const made = {} as T;
  for (const name of Object.keys(makers) as (keyof T)[]) {
    Object.defineProperty(made, name, {
      configurable: true,
      get() {
        const value = makers[name]();
        Object.defineProperty(made, name, { value });
        return value;
      },
    });
  }
  return made;
}

function modelsOf(agentDir: string | undefined, authStorage: unknown): ModelRegistry {
  const folder = agentDir ?? getAgentDir();
  const { join } = path();
  const auth = authStorage instanceof AuthStorage ? authStorage : AuthStorage.create(join(folder, "auth.json"));
  return ModelRegistry.create(auth, join(folder, "models.json"));
}

/**
 * The registry of models and keys, if the options name one; else that of the session in which the
 * extension runs.
 */
function registryOf(options: SessionOptions): number | undefined {
  const { modelRuntime, modelRegistry, authStorage, agentDir } = options;
  for (const [name, owner] of Object.entries({ modelRuntime, modelRegistry })) {
    if (owner === undefined) continue;
    const registry = (owner as { [REGISTRY]?: number } | null)?.[REGISTRY];
    if (registry !== undefined) return registry;
    throw new TypeError(
      `createAgentSession: ${name} must be one of ModelRuntime.create(), ModelRegistry.create() or ctx.modelRegistry`,
    );
  }
  return authStorage instanceof AuthStorage ? modelsOf(agentDir, authStorage)[REGISTRY] : undefined;
}

export async function createAgentSession(options: SessionOptions = {}): Promise<Created> {
  const cwd = options.cwd ?? options.sessionManager?.getCwd() ?? currentFolder();
  const { agentDir, model, thinkingLevel, resourceLoader, customTools = [] } = options;
  const sessionManager = options.sessionManager ?? SessionManager.create(cwd);
  if (!(sessionManager instanceof SessionManager)) {
    throw new TypeError(
      "createAgentSession: sessionManager belongs to the session that is open; make one with " +
        "SessionManager.inMemory(), create() or forkFrom()",
    );
  }
  const modelRegistry = () =>
    (options.modelRegistry ?? options.modelRuntime?.registry ?? modelsOf(agentDir, options.authStorage)) as ModelRegistry;
  const found = resourceLoader ? undefined : await loaderOfExtensions({ cwd, agentDir, settingsManager: options.settingsManager });
  const extensionsResult = (resourceLoader ?? found?.loader)?.getExtensions?.() as Extensions | undefined;
  const { here, set } = await takeExtensions(extensionsResult);
  const inline = here.length > 0 ? await InlineExtensions.load(here, eventsOf(resourceLoader)) : undefined;
  const session = await AgentSession.open({
    sessionManager,
    customTools: [...customTools, ...(inline?.tools ?? [])],
    inline,
    begins: options.sessionStartEvent,
    options: {
      cwd,
      agentDir,
      set,
      flags: flagsOf(options.extensionFlagValues),
      registry: registryOf(options),
      model,
      thinkingLevel,
      ...toolsOf(options),
      texts: textsOf(resourceLoader),
      settings: SettingsManager.inEffect(options.settingsManager),
      projectTrusted: SettingsManager.trusts(options.settingsManager),
    },
    services: lazily({
      modelRuntime: () => options.modelRuntime ?? modelRegistry().runtime,
      modelRegistry,
      settingsManager: () => options.settingsManager ?? SettingsManager.create(cwd, agentDir),
      resourceLoader: () => resourceLoader ?? found?.findResources(),
    }),
  });
  try {
    await inline?.join(session, options.sessionStartEvent);
  } catch (error) {
    session.dispose();
    throw error;
  }
  if (options.scopedModels) session.setScopedModels(options.scopedModels);
  return {
    session,
    extensionsResult,
    modelFallbackMessage: session.model
      ? undefined
      : "No models available. Log in, or set the key of a provider in the environment.",
  };
}

export interface Services {
  cwd: string;
  agentDir: string;
  authStorage: unknown;
  settingsManager: unknown;
  modelRegistry: unknown;
  modelRuntime: unknown;
  resourceLoader: ResourceLoader;
  /** Values of flags for the extensions of the session that is created from these services. */
  extensionFlagValues?: Map<string, boolean | string>;
  diagnostics: unknown[];
}

interface ServicesOptions {
  cwd: string;
  agentDir?: string;
  authStorage?: unknown;
  settingsManager?: unknown;
  modelRegistry?: unknown;
  modelRuntime?: ModelRuntime;
  resourceLoaderOptions?: object;
  resourceLoaderReloadOptions?: ReloadOptions;
  extensionFlagValues?: Map<string, boolean | string>;
}

export async function createAgentSessionServices(options: ServicesOptions): Promise<Services> {
  const { cwd, agentDir = getAgentDir(), resourceLoaderOptions } = options;
  const { settingsManager: given } = options;
  const resourceLoader = new DefaultResourceLoader({ settingsManager: given, ...resourceLoaderOptions, cwd, agentDir });
  const authStorage = options.authStorage ?? AuthStorage.create(path().join(agentDir, "auth.json"));
  const settingsManager = options.settingsManager ?? SettingsManager.create(cwd, agentDir);
  const modelRegistry =
    (options.modelRegistry ?? options.modelRuntime?.registry ?? modelsOf(agentDir, authStorage)) as ModelRegistry;
  const modelRuntime = options.modelRuntime ?? modelRegistry.runtime;
  const { resolveProjectTrust } = options.resourceLoaderReloadOptions ?? {};
  await resourceLoader.reload(resolveProjectTrust && {
    resolveProjectTrust: async (request) => {
      const trusted = await resolveProjectTrust(request);
      // A manager that was created here is not the loader's.
      (settingsManager as SettingsManager).setProjectTrusted?.(trusted === true);
      return trusted;
    },
  });
  const { extensionFlagValues } = options;
  return {
    ...{ cwd, agentDir, authStorage, settingsManager, modelRegistry, modelRuntime, resourceLoader, extensionFlagValues },
    diagnostics: [],
  };
}

export function createAgentSessionFromServices(
  { services, ...options }: SessionOptions & { services: Services },
): Promise<Created> {
  const { diagnostics: _, ...sessionOptions } = services;
  return createAgentSession({ ...sessionOptions, ...options } as SessionOptions);
}

interface RuntimeOptions {
  cwd: string;
  agentDir: string;
  sessionManager: SessionManager;
  sessionStartEvent?: { type: string; [member: string]: unknown };
}

type CreateRuntime = (
  options: RuntimeOptions,
) => Promise<Created & { services: Services; diagnostics: unknown[] }>;

/** Holds a session, and replaces it by others. */
export class AgentSessionRuntime {
  private _create: CreateRuntime;
  private _session: AgentSession;
  private _services: Services;
  private _diagnostics: unknown[];
  private _fallback: string | undefined;

  constructor(
    session: AgentSession,
    services: Services,
    create: CreateRuntime,
    diagnostics: unknown[] = [],
    modelFallbackMessage?: string,
  ) {
    this._create = create;
    this._session = session;
    this._services = services;
    this._diagnostics = diagnostics;
    this._fallback = modelFallbackMessage;
  }

  get session(): AgentSession {
    return this._session;
  }

  get services(): Services {
    return this._services;
  }

  get cwd(): string {
    return this._services.cwd;
  }

  get diagnostics(): unknown[] {
    return this._diagnostics;
  }

  get modelFallbackMessage(): string | undefined {
    return this._fallback;
  }

  private async _replace(sessionManager: SessionManager, reason: string): Promise<{ cancelled: boolean }> {
    const previousSessionFile = this._session.sessionFile;
    this._session.dispose();
    const created = await this._create({
      cwd: sessionManager.getCwd(),
      agentDir: this._services.agentDir,
      sessionManager,
      sessionStartEvent: { type: "session_start", reason, previousSessionFile },
    });
    this._session = created.session;
    this._services = created.services;
    this._diagnostics = created.diagnostics;
    this._fallback = created.modelFallbackMessage;
    return { cancelled: false };
  }

  switchSession(sessionPath: string, cwdOverride?: string): Promise<{ cancelled: boolean }> {
    return this._replace(SessionManager.open(sessionPath, undefined, cwdOverride), "resume");
  }

  async newSession(
    options: { parentSession?: string; setup?(manager: SessionManager): unknown } = {},
  ): Promise<{ cancelled: boolean }> {
    const { sessionManager } = this._session;
    const dir = sessionManager.getSessionDir();
    const next = this._session.sessionFile
      ? SessionManager.create(this.cwd, dir)
      : SessionManager.inMemory(this.cwd);
    if (options.parentSession) next.newSession({ parentSession: options.parentSession });
    await options.setup?.(next);
    return await this._replace(next, "new");
  }

  async fork(entryId: string): Promise<{ cancelled: boolean; selectedText?: string }> {
    const { cancelled, text } = await this._session.fork(entryId);
    return { cancelled, selectedText: text };
  }

  importFromJsonl(inputPath: string, cwdOverride?: string): Promise<{ cancelled: boolean }> {
    const from = path().resolve(inputPath);
    const next = SessionManager.forkFrom(from, cwdOverride ?? this.cwd);
    return this._replace(next, "resume");
  }

  async dispose(): Promise<void> {
    this._session.dispose();
  }
}

export async function createAgentSessionRuntime(
  create: CreateRuntime,
  options: RuntimeOptions,
): Promise<AgentSessionRuntime> {
  const { session, services, diagnostics, modelFallbackMessage } = await create(options);
  return new AgentSessionRuntime(session, services, create, diagnostics, modelFallbackMessage);
}
