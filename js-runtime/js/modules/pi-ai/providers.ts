// Parts from which newer versions build providers: the wire APIs as values, sources of keys, and
// `createProvider`, whose result `pi.registerProvider` accepts.
import { env } from "pi:node.ts";
import type { Stream, StreamOptions } from "pi:pi-ai/api-registry.ts";
import { AssistantMessageEventStream } from "pi:pi-ai/event-stream.ts";
import type { Model } from "pi:pi-ai/models.ts";
import { failedResponse, throughProgram } from "pi:pi-ai/program.ts";
import { type ApiKeyAuth, checkAuth, type ProviderAuth, resolveAuth, signInOf, type Stored } from "pi:pi-ai/provider-auth.ts";

interface Streams {
  stream: Stream;
  streamSimple: Stream;
}

/** Streams of the program, by API name: it uses them without JavaScript. */
const ofProgram = new WeakMap<Streams, string>();

function wireApi(name: string): () => Streams {
  return () => {
    const streams = { stream: throughProgram(name, false), streamSimple: throughProgram(name, true) };
    ofProgram.set(streams, name);
    return streams;
  };
}

export const anthropicMessagesApi = wireApi("anthropic-messages");
export const azureOpenAIResponsesApi = wireApi("azure-openai-responses");
export const bedrockConverseStreamApi = wireApi("bedrock-converse-stream");
export const googleGenerativeAIApi = wireApi("google-generative-ai");
export const googleVertexApi = wireApi("google-vertex");
export const mistralConversationsApi = wireApi("mistral-conversations");
export const openAICodexResponsesApi = wireApi("openai-codex-responses");
export const openAICompletionsApi = wireApi("openai-completions");
export const openAIResponsesApi = wireApi("openai-responses");

const variables = new WeakMap<ApiKeyAuth, readonly string[]>();

/** Finds a stored key, or else that of the first variable that is set. */
export function envApiKeyAuth(name: string, envVars: readonly string[]): ApiKeyAuth {
  const auth: ApiKeyAuth = {
    name,
    async login(interaction) {
      const { signal } = interaction;
      signal.throwIfAborted();
      const key = await interaction.prompt({ type: "secret", message: `Enter ${name}` });
      signal.throwIfAborted();
      return { type: "api_key", key };
    },
    async resolve({ ctx, credential, signal }) {
      signal.throwIfAborted();
      if (credential?.key) {
        return { auth: { apiKey: credential.key }, env: credential.env, source: "stored credential" };
      }
      for (const source of envVars) {
        const apiKey = await ctx.env(source);
        signal.throwIfAborted();
        if (apiKey) return { auth: { apiKey }, source };
      }
      return undefined;
    },
  };
  variables.set(auth, envVars);
  return auth;
}

interface Parts {
  id: string;
  name?: string;
  baseUrl?: string;
  headers?: object;
  auth: ProviderAuth;
  models: readonly Model[];
  fetchModels?(context: object): Promise<readonly Model[]>;
  filterModels?: unknown;
  /** The API of all its models, or one for each API that models name. */
  api: Streams | Record<string, Streams>;
}

export interface Provider extends Streams {
  id: string;
  name?: string;
  baseUrl?: string;
  headers?: object;
  auth?: Parts["auth"];
  getModels(): readonly Model[];
  refreshModels?: unknown;
  filterModels?: unknown;
}

const parts = new WeakMap<Provider, Parts>();

function streamsFor({ api }: Parts, model: Model): Streams | undefined {
  return typeof api.stream === "function" ? (api as Streams) : (api as Record<string, Streams>)[model.api];
}

export function createProvider(input: Parts): Provider {
  const { id, name = id, baseUrl, headers, auth, models, fetchModels, filterModels } = input;
  let fetched: readonly Model[] = [];
  const through = (way: keyof Streams): Stream => (model: Model, context: unknown, options?: StreamOptions) => {
    const streams = streamsFor(input, model);
    if (streams) return streams[way](model, context, options);
    const none = new AssistantMessageEventStream();
    none.push(failedResponse(model, `Provider ${id} has no API implementation for "${model.api}"`));
    none.end();
    return none;
  };
  const provider: Provider = {
    id,
    name,
    baseUrl,
    headers,
    auth,
    getModels() {
      const newer = new Map(fetched.map((model) => [model.id, model]));
      const known = models.map((model) => newer.get(model.id) ?? model);
      const ids = new Set(models.map((model) => model.id));
      return [...known, ...fetched.filter((model) => !ids.has(model.id))];
    },
    refreshModels: fetchModels && (async (context: object) => {
      fetched = await fetchModels(context);
    }),
    filterModels,
    stream: through("stream"),
    streamSimple: through("streamSimple"),
  };
  parts.set(provider, input);
  return provider;
}

/**
 * The `auth` of a provider if its functions have to be called: the program itself finds a key in
 * the environment.
 */
export function ownAuth(provider: Provider): ProviderAuth | undefined {
  const { auth } = provider;
  const isPlain = auth?.apiKey !== undefined && variables.has(auth.apiKey) && !auth.oauth;
  return isPlain ? undefined : auth;
}

/** Stands for a key that only the provider's functions know. */
const RESOLVED = "(supplied by the provider for each request)";

/**
 * Turns such an object into a configuration. The program sends requests itself where it can; other
 * models get an API of their own, named after the provider. `stored` is the entry in `auth.json`; a
 * provider that is not `configured` has no key.
 */
export function configurationOf(id: string, provider: Provider, stored: () => Stored | undefined, configured = true) {
  const { name, headers, auth, refreshModels } = provider;
  checkAuth(id, auth);
  const own = ownAuth(provider);
  const made = parts.get(provider);
  const api = `provider:${id}`;
  const models = provider.getModels();
  const baseUrl = provider.baseUrl ?? (models[0]?.baseUrl as string | undefined);
  const targets = new Map(models.map((model) => [model.id, { api: model.api, baseUrl: model.baseUrl ?? baseUrl }]));
  const isOfProgram = (model: Model) => {
    const streams = made && streamsFor(made, model);
    return !own && streams !== undefined && ofProgram.get(streams) === model.api && targets.get(model.id)?.baseUrl === baseUrl;
  };
  const placed = (model: Model): Model => ({ ...model, ...targets.get(model.id) });
  const asItIs: Stream = (model, context, options) => provider.streamSimple(placed(model), context, options);
  const authorised: Stream = (model, context, options = {}) => {
    const stream = new AssistantMessageEventStream();
    const pass = async () => {
      const found = await resolveAuth(own as ProviderAuth, stored(), options.signal);
      if (!found) throw new Error(`Provider is not configured: ${id}`);
      const { apiKey, headers, baseUrl } = found.auth;
      const target = { ...placed(model), ...(baseUrl !== undefined && { baseUrl }) };
      const requestOptions = { ...options, apiKey, headers: { ...options.headers as object, ...headers }, env: found.env };
      for await (const event of provider.streamSimple(target, context, requestOptions)) stream.push(event);
    };
    pass()
      .catch((error) => stream.push(failedResponse(model, error)))
      .finally(() => stream.end());
    return stream;
  };
  const envVars = auth?.apiKey && variables.get(auth.apiKey);
  const variable = envVars && (envVars.find((variable) => env(variable)) ?? envVars[0]);
  // Omitting the member would keep the previous value.
  const placeholder = own && (configured ? RESOLVED : "");
  return {
    ownAuth: own !== undefined,
    name,
    baseUrl,
    headers,
    apiKey: placeholder ?? (variable && `$${variable}`),
    api,
    models: models.map((model) => isOfProgram(model) ? model : { ...model, api }),
    ...(!models.every(isOfProgram) && { streamSimple: own ? authorised : asItIs }),
    oauth: auth?.oauth && signInOf(auth.oauth),
    refreshModels,
  };
}
