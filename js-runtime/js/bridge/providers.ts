// Model providers of extensions: registers their functions and calls them for the program.
import { describe, host, hostSync } from "ext:js_runtime/bridge/host.ts";
import { abort, AbortController, isArray, JSON, SafeMap, SafeSet, setTimeout } from "ext:js_runtime/primordials.ts";
import { modelsOf, refreshAll, startRefresh, stopRefresh } from "ext:js_runtime/bridge/model-refresh.ts";
import { MODEL, misspeltMembers, PROVIDER } from "ext:js_runtime/bridge/validate/members.ts";
import { enter, enterCall, onUncaught, report, warn } from "ext:js_runtime/bridge/registry.ts";
import { apiFunctions, forgetApis, forgetStreams as forgetIds, keepApi } from "pi:pi-ai/api-registry.ts";
import type { Stream } from "pi:pi-ai/api-registry.ts";
import { answerLogin as answer } from "pi:pi-ai/logins.ts";
import { isConfigured } from "pi:pi-ai/provider-auth.ts";
import { configurationOf, ownAuth, type Provider } from "pi:pi-ai/providers.ts";
import { CONTEXT } from "pi:pi-ai/transcript.ts";
import { keepSignIn, type SignIn, signIns } from "pi:pi-ai/oauth-providers.ts";
import { ModelRegistry, setRegistrar } from "pi:pi-coding-agent/models/registry.ts";

interface ProviderConfig {
  api?: string;
  streamSimple?: Stream;
  oauth?: SignIn;
  /** Whether the provider itself supplies the credentials of requests. */
  ownAuth?: boolean;
  models?: { id?: unknown }[];
  [member: string]: unknown;
}

/** Implements `pi.registerProvider(name, config)`; one object with the name in it is also accepted. */
export function registerProvider(
  extension: number,
  nameOrAll: string | (ProviderConfig & { id?: string; name?: string }),
  config?: ProviderConfig,
  registry = 0,
): void {
  const isNamed = typeof nameOrAll === "string";
  const name = isNamed ? nameOrAll : (nameOrAll?.id ?? nameOrAll?.name ?? "");
  const value = isNamed ? config : nameOrAll;
  if (typeof value !== "object" || value === null) {
    throw new TypeError(`pi.registerProvider("${name}"): the configuration must be an object`);
  }
  const native = typeof value.getModels === "function" ? (value as unknown as Provider) : undefined;
  const all = native ? nativeConfiguration(registry, name, native) : value;
  if (!register(extension, name, all, registry)) return;
  let ofRegistry = configurations.get(registry);
  if (!ofRegistry) configurations.set(registry, (ofRegistry = new SafeMap()));
  ofRegistry.set(name, value);
  if (native) void settle(extension, registry, name, native);
  if (typeof value.refreshModels !== "function") return stopRefresh({ registry, name });
  const refreshed = value as ProviderConfig & { refreshModels(context: unknown): unknown };
  startRefresh({
    extension,
    registry,
    name,
    callRefresh: (context) => refreshed.refreshModels(context),
    models: (result) => native ? native.getModels() : modelsOf(result),
    setModels(models) {
      register(extension, name, native ? nativeConfiguration(registry, name, native) : { ...all, models }, registry);
    },
  });
}

const storedIn = (registry: number, name: string) => () => new ModelRegistry(registry).authStorage.get(name);

function nativeConfiguration(registry: number, name: string, native: Provider): ProviderConfig {
  const configured = !unconfigured.get(registry)?.has(name);
  return configurationOf(name, native, storedIn(registry, name), configured) as unknown as ProviderConfig;
}

/** Objects with `getModels()` whose own functions find no credentials for requests. */
const unconfigured = new SafeMap<number, Set<string>>();

/**
 * Calls the provider's own functions to see whether it is configured; until they return no, it
 * counts as configured.
 */
async function settle(extension: number, registry: number, name: string, native: Provider): Promise<void> {
  const auth = ownAuth(native);
  if (!auth) return;
  let found = false;
  try {
    found = await isConfigured(auth, storedIn(registry, name)());
  } catch (error) {
    const why = error instanceof Error ? error.message : `${error}`;
    report(extension, "register_provider", new Error(`auth of the provider "${name}": ${why}`));
  }
  let without = unconfigured.get(registry);
  if (!without) unconfigured.set(registry, (without = new SafeSet()));
  const was = !without.has(name);
  if (found === was || configurations.get(registry)?.get(name) !== native as unknown) return;
  if (found) without.delete(name);
  else without.add(name);
  register(extension, name, nativeConfiguration(registry, name, native), registry);
}

/** Models that a sign-in changes are known when it returns. */
function refresh(registry: number, options?: object): Promise<object> {
  modifiers.forEach((modifier) => {
    if (modifier.registry !== registry) return;
    try {
      modifyModels(modifier);
    } catch (error) {
      // The caller need not be the author of the function.
      report(modifier.author, "register_provider", error);
    }
  });
  return refreshModels(registry, options);
}

async function refreshModels(registry: number, options?: object): Promise<object> {
  for (const [name, value] of configurations.get(registry) ?? []) {
    if (typeof value.getModels === "function") await settle(RUNNING, registry, name, value as unknown as Provider);
  }
  return await refreshAll(registry, options);
}

interface Registered {
  taken: boolean;
  /** The reason why the provider was not registered. */
  problem?: string | null;
  /** Models of APIs that are not registered so far. */
  unknown?: { api: string; sentence: string }[];
  /** The extension that registered it. */
  extension: number;
}

/** Warnings about unknown members that were reported before. */
const reportedWarnings = new SafeSet<string>();

/** Returns whether the provider was registered. */
function register(extension: number, name: string, all: ProviderConfig, registry: number): boolean {
  const { streamSimple, oauth, ownAuth: own_auth, ...plain } = all;
  if (streamSimple !== undefined && typeof streamSimple !== "function") {
    throw new TypeError(`streamSimple of the provider "${name}" must be a function`);
  }
  const source = `provider:${name}`;
  let streams: number | undefined;
  if (streamSimple && all.api) {
    streams = keepApi({ api: all.api, stream: streamSimple, streamSimple }, source);
  }
  const id = oauth && keepSignIn(name, oauth);
  const { taken, problem, unknown = [], extension: author } = hostSync<Registered>("pi.registerProvider", {
    extension,
    registry,
    name,
    config: plain,
    own_auth,
    // Without an API the registration is refused, so it needs no number.
    streams: streams ?? (streamSimple ? 0 : undefined),
    oauth: oauth && {
      id,
      name: oauth.name,
      usesCallbackServer: oauth.usesCallbackServer === true,
      modifies: typeof oauth.modifyModels === "function",
    },
  });
  const misses = misspeltMembers(`pi.registerProvider: "${name}"`, all, PROVIDER);
  const first: unknown = isArray(all.models) ? all.models[0] : undefined;
  if (typeof first === "object" && first !== null) {
    misses.push(...misspeltMembers(`pi.registerProvider: models[0] of "${name}"`, first, MODEL));
  }
  for (const warning of misses) {
    // Models are registered again and again.
    if (!reportedWarnings.has(warning)) warn(author, "register_provider", new Error(warning));
    reportedWarnings.add(warning);
  }
  for (const { api, sentence } of unknown) {
    if (reportedWarnings.has(sentence)) continue;
    reportedWarnings.add(sentence);
    const error = describe(new Error(sentence));
    hostSync("providers.unknownApi", { extension: author, api, sentence, error });
  }
  if (problem) report(author, "register_provider", new TypeError(problem));
  if (!taken) {
    if (streams !== undefined) forgetIds([streams]);
    return false;
  }
  const key = `${registry}:${name}`;
  modifiers.delete(key);
  if (oauth?.modifyModels) {
    const modifier = { registry, name, author, oauth };
    modifiers.set(key, modifier);
    modifyModels(modifier);
  }
  return true;
}

/** The last configurations, by registry and name. */
const configurations = new SafeMap<number, Map<string, ProviderConfig>>();

interface Modifier {
  registry: number;
  name: string;
  author: number;
  oauth: SignIn;
}

/** Sign-ins with `modifyModels`, by registry and name. */
const modifiers = new SafeMap<string, Modifier>();

/** The models of a provider may change when the user signs in. */
function modifyModels({ registry, name, oauth }: Modifier): void {
  const signedIn = hostSync<{ models: unknown[]; credentials: unknown } | undefined>(
    "providers.signedIn",
    { name, registry },
  );
  const models = signedIn && oauth.modifyModels!(signedIn.models, signedIn.credentials);
  hostSync("providers.modified", { name, models, registry });
}

export function unregisterProvider(extension: number, name: string, registry = 0): void {
  forgetApis(`provider:${name}`);
  stopRefresh({ registry, name });
  modifiers.delete(`${registry}:${name}`);
  hostSync("pi.unregisterProvider", { extension, name, registry });
}

// Stands for the extension that runs, which the program knows best.
const RUNNING = 0xffff_ffff;
setRegistrar({
  register: (registry, name, config) =>
    registerProvider(RUNNING, name as string, config as ProviderConfig, registry),
  unregister: (registry, name) => unregisterProvider(RUNNING, name, registry),
  configurations: (registry) => configurations.get(registry) ?? new SafeMap(),
  refresh,
});

// An event of a stream of an extension.

interface Event {
  type: string;
  contentIndex?: number;
  partial?: Message;
  message?: Message;
  error?: Message;
  delta?: string;
  [member: string]: unknown;
}

interface Message {
  content?: unknown[];
  [member: string]: unknown;
}

interface StreamRequest {
  extension: number;
  function: number;
  token: number;
  model: { provider: string };
  context: { messages: unknown[] };
  options: Record<string, unknown>;
  hooked: boolean;
}

/** The number of events that may wait to be sent. */
const MAX_UNSENT_EVENTS = 256;
const streaming = new SafeMap<number, AbortController>();

const STREAM_EVENTS = new SafeSet([
  "start",
  ...["text", "thinking", "toolcall"].flatMap((kind) => [`${kind}_start`, `${kind}_delta`, `${kind}_end`]),
  "done",
  "error",
]);

/**
 * Encodes events for the program. `partial` repeats the whole message with each event; the encoded
 * event contains only the block that begins or ends, and the members outside the blocks if they
 * have changed.
 */
function eventEncoder(unknown: (type: string) => void): (event: Event) => object {
  let before = "";
  /** By block, the first half of a surrogate pair with which its last delta ended. */
  const halves = new SafeMap<number, string>();
  return ({ partial, message, error, ...event }) => {
    if (typeof event.type !== "string") {
      throw new TypeError("An event of a provider's stream has no type: it is \"text_delta\", \"done\" and the like");
    }
    if (!STREAM_EVENTS.has(event.type)) unknown(event.type);
    // The index of a block, also if it was passed as text.
    const block = Math.trunc(Number(event.contentIndex ?? -1)) || 0;
    if (event.type === "done" || event.type === "error") {
      return { ...event, message: message ?? error };
    }
    const encoded: Record<string, unknown> = { ...event };
    if (event.contentIndex !== undefined) encoded.contentIndex = block;
    if (event.delta !== undefined && event.delta !== null) {
      const delta = (halves.get(block) ?? "") + event.delta;
      const last = delta.charCodeAt(delta.length - 1);
      const end = delta.length - (last >= 0xd800 && last < 0xdc00 ? 1 : 0);
      halves.set(block, delta.slice(end));
      encoded.delta = delta.slice(0, end);
    }
    const { content, ...head } = partial ?? {};
    if (!event.type.endsWith("_delta")) encoded.block = content?.[block];
    const after = JSON.stringify(head);
    if (after !== before) {
      encoded.head = head;
      before = after;
    }
    return encoded;
  };
}

/** Called for an extension that did not load. */
export function forgetStreams(json: string): void {
  forgetIds(JSON.parse(json) as number[]);
}

/** Headers of a response of Node's `http`, of `fetch`, or of the provider's own making. */
function plainHeaders(headers: unknown): Record<string, string> {
  const plain: Record<string, string> = {};
  const entries = headers as Iterable<[string, unknown]> | Record<string, unknown> | undefined;
  const isList = typeof (entries as Iterable<unknown> | undefined)?.[Symbol.iterator] === "function";
  const pairs = isList ? (entries as Iterable<[string, unknown]>) : Object.entries(entries ?? {});
  for (const [name, value] of pairs) {
    if (value !== undefined && value !== null) plain[name] = isArray(value) ? value.join(", ") : `${value}`;
  }
  return plain;
}

async function changePayload(token: number, payload: unknown): Promise<unknown> {
  const changed = await host<{ payload: unknown } | null>("provider.payload", { token, payload });
  return changed ? changed.payload : payload;
}

export async function streamProvider(json: string): Promise<void> {
  const request = JSON.parse(json) as StreamRequest;
  const { extension, token, model, context, options, hooked } = request;
  // Code for newer versions finds the prompt there (pi-ai/transcript.ts).
  Object.defineProperty(context.messages, CONTEXT, { value: context });
  const stream = apiFunctions.get(request.function);
  if (!stream) throw new Error(`The provider ${model.provider} is not registered any more`);
  const controller = new AbortController();
  streaming.set(token, controller);
  const hooks = hooked && {
    onPayload: (payload: unknown) => changePayload(token, payload),
    onResponse: (response?: { status?: number; headers?: unknown }) => {
      const status = Number(response?.status) || 0;
      return host("provider.response", { token, status, headers: plainHeaders(response?.headers) });
    },
  };
  const what = `provider:${model.provider}`;
  // An unhandled rejection in the provider's code means that no event will follow.
  const progress: SendProgress = { over: false, sent: () => undefined };
  const broken = new Promise<never>((_, reject) => {
    onUncaught.set(token, async (error) => {
      // Events that were pushed before come first, and may be all there are.
      await new Promise((resolve) => setTimeout(resolve, 0));
      await progress.sent();
      if (progress.over) return;
      reject(error);
      abort(controller);
    });
  });
  const foreign = new SafeSet<string>();
  const unknown = (type: string) => {
    if (foreign.has(type)) return;
    foreign.add(type);
    report(extension, what, new TypeError(`There is no event "${type}" of a provider's stream: it is left out`));
  };
  const run = async () => {
    enterCall(extension, what, token);
    const events = (await stream(model as never, context, {
      ...options,
      ...hooks,
      signal: controller.signal,
    })) as unknown as EventStream;
    await sendAll(token, events, unknown, progress);
  };
  try {
    await Promise.race([run(), broken]);
  } finally {
    onUncaught.delete(token);
    streaming.delete(token);
  }
}

/** Milliseconds to wait for the result of a stream that ended without a last event. */
const RESULT_TIMEOUT = 1000;

type EventStream = AsyncIterable<Event> & { result?(): Promise<Message> };

/** The progress of sending the events of a stream. */
interface SendProgress {
  over: boolean;
  /** Resolves when the program has received all events so far. */
  sent(): Promise<void> | undefined;
}

async function sendAll(
  token: number,
  events: EventStream,
  unknown: (type: string) => void,
  progress: SendProgress,
): Promise<void> {
  if (typeof events?.[Symbol.asyncIterator] !== "function") {
    throw new TypeError("streamSimple must return an event stream, such as createAssistantMessageEventStream() makes");
  }
  const encode = eventEncoder(unknown);
  let waiting: object[] = [];
  let sending: Promise<void> | undefined;
  let refused: unknown;
  progress.sent = () => sending;
  const send = async () => {
    try {
      while (waiting.length > 0) {
        const batch = waiting;
        waiting = [];
        await host("provider.events", { token, events: batch });
      }
    } catch (error) {
      refused = error;
    }
    // Runs in the same step as the check for waiting events.
    sending = undefined;
  };
  for await (const event of events) {
    waiting.push(encode(event));
    sending ??= send();
    if (waiting.length > MAX_UNSENT_EVENTS) await sending;
    if (refused) throw refused;
    progress.over = event.type === "done" || event.type === "error";
    if (progress.over) break;
  }
  // The stream ended with a result only: `stream.end(message)`.
  if (!progress.over && typeof events.result === "function") {
    const nothing = new Promise<undefined>((resolve) => setTimeout(resolve, RESULT_TIMEOUT));
    const message = await Promise.race([events.result(), nothing]);
    const reason = message?.stopReason;
    const failed = reason === "error" || reason === "aborted";
    if (message) {
      waiting.push(encode(failed ? { type: "error", reason, error: message } : { type: "done", reason, message }));
      sending ??= send();
    }
  }
  await sending;
  if (refused) throw refused;
}

export function abortStream(json: string): void {
  const controller = streaming.get(JSON.parse(json) as number);
  if (controller) abort(controller);
}

function signIn(id: number): SignIn {
  const found = signIns.get(id);
  if (!found) throw new Error("The sign-in is not registered any more");
  return found;
}

/** Calls a function of a sign-in that takes and returns plain data. */
export async function callSignIn(json: string): Promise<string | undefined> {
  const { extension, id, function: name, args } = JSON.parse(json) as {
    extension: number;
    id: number;
    function: "refreshToken" | "getApiKey" | "modifyModels";
    args: unknown[];
  };
  enter(extension, `oauth.${name}`);
  const oauth = signIn(id);
  const fn = oauth[name] as ((...args: unknown[]) => unknown) | undefined;
  if (typeof fn !== "function") throw new Error(`oauth.${name} of ${oauth.name} is missing`);
  return JSON.stringify(await fn.apply(oauth, args));
}

const loggingIn = new SafeMap<number, AbortController>();

export async function login(json: string): Promise<string> {
  const { extension, id, token, pastes } = JSON.parse(json) as {
    extension: number;
    id: number;
    token: number;
    pastes: boolean;
  };
  const oauth = signIn(id);
  const controller = new AbortController();
  loggingIn.set(token, controller);
  enter(extension, "oauth.login");
  try {
    const credentials = await oauth.login({
      onAuth: (info) => void host("login.open", { token, ...info }).catch(() => {}),
      onPrompt: (prompt) => host<string>("login.prompt", { token, ...prompt }),
      onProgress: (message) => void host("login.progress", { token, message }).catch(() => {}),
      onDeviceCode: (info) => void host("login.device", { ...info, token }).catch(() => {}),
      onSelect: async (prompt) => await host<string | null>("login.select", { ...prompt, token }) ?? undefined,
      onManualCodeInput: pastes ? () => host<string>("login.paste", { token }) : undefined,
      signal: controller.signal,
    });
    if (typeof credentials !== "object" || credentials === null) {
      throw new TypeError(`login of ${oauth.name} returned no credentials`);
    }
    return JSON.stringify(credentials);
  } finally {
    loggingIn.delete(token);
  }
}

/** Passes a request of the program on to the extension that signs in. */
export async function answerLogin(json: string): Promise<string | undefined> {
  const { token, what, payload } = JSON.parse(json);
  return JSON.stringify(await answer(token, what, payload as never));
}

export function abortLogin(json: string): void {
  const controller = loggingIn.get(JSON.parse(json) as number);
  if (controller) abort(controller);
}
