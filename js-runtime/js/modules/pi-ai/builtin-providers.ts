// The program's providers in the form of newer versions: objects that list their models and supply
// the credentials of requests. The program does not need them for its own requests.
import { hostSync } from "pi:host.ts";
import { getOAuthProvider } from "pi:pi-ai/logins.ts";
import { getModels, getProviders, type Model } from "pi:pi-ai/models.ts";
import { type ApiKeyAuth, callbacksOf, type OAuthAuth, type ProviderAuth, type RequestAuth } from "pi:pi-ai/provider-auth.ts";
import { envApiKeyAuth } from "pi:pi-ai/providers.ts";
import { stream, streamSimple } from "pi:pi-ai/stream.ts";

type Filter = (models: readonly Model[], credential?: { type?: string; [member: string]: unknown }) => readonly Model[];

export interface DescribedProvider {
  id: string;
  name: string;
  baseUrl?: string;
  headers?: object;
  auth: ProviderAuth;
  getModels(): Model[];
  /** Present only if the provider loads its models later. */
  refreshModels?(context?: object): Promise<void>;
  /** Present only if an account may lack some of the provider's models. */
  filterModels?: Filter;
  stream: typeof stream;
  streamSimple: typeof streamSimple;
}

interface ProviderDescription {
  id: string;
  name: string;
  models(): Model[];
  /** The key in the settings or from an extension, for a provider without a stored key or a variable. */
  configured?(): Promise<RequestAuth["auth"] | undefined>;
  refreshModels?(context?: object): Promise<void>;
}

/** Copilot's sign-in lists the models of the subscription. */
const ofSubscription: Filter = (models, credential) => {
  const ids = credential?.type === "oauth" ? credential.availableModelIds : undefined;
  if (!Array.isArray(ids) || !ids.every((id) => typeof id === "string")) return models;
  return models.filter(({ id }) => ids.includes(id));
};

function oauthAuth(id: string): OAuthAuth | undefined {
  const signIn = getOAuthProvider(id);
  if (!signIn) return undefined;
  const { name } = signIn;
  return {
    name,
    isSubscription: true,
    login: async (interaction) => ({ ...(await signIn.login(callbacksOf(interaction))), type: "oauth" }),
    refresh: async (credential) => ({ ...(await signIn.refreshToken(credential)), type: "oauth" }),
    async toAuth(credentials) {
      const apiKey = await signIn.getApiKey(credentials);
      // The subscription also determines the server.
      if (id !== "github-copilot") return { apiKey };
      return { apiKey, baseUrl: hostSync<string>("registry.copilot.url", { credentials }) };
    },
  };
}

function apiKeyAuth({ id, name, configured }: ProviderDescription): ApiKeyAuth {
  const variables = hostSync<string[]>("ai.key_variables", { provider: id });
  const plain = envApiKeyAuth(`${name} API key`, variables);
  return {
    ...plain,
    async resolve(request) {
      const { ctx, credential, signal } = request;
      if (credential?.key) return await plain.resolve(request);
      const env: Record<string, string> = {};
      for (const variable of variables) {
        const value = await ctx.env(variable);
        signal.throwIfAborted();
        if (value) env[variable] = value;
      }
      const [source] = Object.keys(env);
      // The variables of some providers identify an account and are no key.
      const apiKey = source && hostSync<string | null>("ai.env_api_key", { provider: id, env });
      if (apiKey) return { auth: { apiKey }, source };
      const auth = await configured?.();
      return auth && { auth, source: "configured API key" };
    },
  };
}

/** A provider with a sign-in only has no keys. */
function providerAuth(about: ProviderDescription): ProviderAuth {
  const oauth = oauthAuth(about.id);
  const hasKeys = hostSync<string[]>("ai.key_variables", { provider: about.id }).length > 0;
  return { ...(hasKeys || !oauth ? { apiKey: apiKeyAuth(about) } : {}), ...(oauth ? { oauth } : {}) };
}

export function describedProvider(about: ProviderDescription): DescribedProvider {
  const { id, name, models, refreshModels } = about;
  return {
    id,
    name,
    baseUrl: models()[0]?.baseUrl as string | undefined,
    auth: providerAuth(about),
    getModels: models,
    ...(refreshModels ? { refreshModels } : {}),
    ...(id === "github-copilot" ? { filterModels: ofSubscription } : {}),
    stream,
    streamSimple,
  };
}

/** The built-in providers with their models. */
export function builtinProviders(): DescribedProvider[] {
  return getProviders().map((id) => {
    const name = hostSync<string>("registry.name", { registry: 0, provider: id });
    return describedProvider({ id, name, models: () => getModels(id) });
  });
}
