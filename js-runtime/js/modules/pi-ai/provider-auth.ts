// Providers of newer versions that supply the credentials of each request themselves (`auth` of an
// object with getModels()): the program asks for a key, these functions are called for each
// request.
import { env, fs, os } from "pi:node.ts";
import type { Credentials, LoginCallbacks, SignIn } from "pi:pi-ai/oauth-providers.ts";

export interface RequestAuth {
  auth: { apiKey?: string; headers?: Record<string, string>; baseUrl?: string };
  env?: unknown;
  source?: string;
}

/** The dialogs of a sign-in in newer versions. */
export interface Interaction {
  signal?: AbortSignal;
  prompt(prompt: SignInPrompt): Promise<string>;
  notify?(event: Event): void;
}

type SignInContext = Interaction & Required<Pick<Interaction, "signal" | "notify">>;

type SignInPrompt = { type: string; message: string; placeholder?: string; options?: { id: string; label: string }[] };
type Event = { type: string; message?: string; url?: string; [member: string]: unknown };

interface AuthRequest {
  ctx: { env(name: string): Promise<string | undefined>; fileExists(file: string): Promise<boolean> };
  credential?: { key?: string; env?: unknown };
  signal: AbortSignal;
}

export interface ApiKeyAuth {
  name: string;
  login?(interaction: SignInContext): Promise<object>;
  check?(request: AuthRequest): Promise<object | undefined>;
  resolve(request: AuthRequest): Promise<object | undefined>;
}

export interface OAuthAuth {
  name: string;
  isSubscription?: boolean;
  login(interaction: SignInContext): Promise<Credentials>;
  refresh(credential: Credentials, signal: AbortSignal): Promise<Credentials>;
  toAuth(credential: Credentials): Promise<RequestAuth["auth"]>;
}

export interface ProviderAuth {
  apiKey?: ApiKeyAuth;
  oauth?: OAuthAuth;
}

/** An entry of `auth.json`. */
export type Stored = { type?: string; key?: string; [member: string]: unknown };

const never = () => new AbortController().signal;

const around = {
  env: async (name: string) => env(name) || undefined,
  fileExists: async (file: string) => fs().existsSync(file.replace(/^~(?=$|[\\/])/, os().homedir())),
};

/** Checks the member before other code relies on it. */
export function checkAuth(id: string, auth: ProviderAuth | undefined): void {
  const where = `pi.registerProvider("${id}"): auth`;
  if (!auth?.apiKey && !auth?.oauth) {
    throw new TypeError(`${where} of an object with getModels() must have apiKey or oauth; envApiKeyAuth(name, variables) makes one`);
  }
  if (auth.apiKey && typeof auth.apiKey.resolve !== "function") throw new TypeError(`${where}.apiKey.resolve must be a function`);
  for (const member of ["login", "refresh", "toAuth"] as const) {
    if (auth.oauth && typeof auth.oauth[member] !== "function") throw new TypeError(`${where}.oauth.${member} must be a function`);
  }
}

/** `undefined` if the provider is not configured. */
export async function resolveAuth(
  { apiKey, oauth }: ProviderAuth,
  stored: Stored | undefined,
  signal: AbortSignal = never(),
): Promise<RequestAuth | undefined> {
  if (oauth && stored?.type === "oauth") return { auth: await oauth.toAuth(stored as unknown as Credentials), source: "OAuth" };
  const credential = stored?.type === "api_key" ? stored : undefined;
  return await apiKey?.resolve({ ctx: around, credential, signal }) as RequestAuth | undefined;
}

/** Whether there are credentials: `check` may avoid what `resolve` has to run. */
export async function isConfigured({ apiKey, oauth }: ProviderAuth, stored: Stored | undefined): Promise<boolean> {
  if (oauth && stored?.type === "oauth") return true;
  const credential = stored?.type === "api_key" ? stored : undefined;
  const request: AuthRequest = { ctx: around, credential, signal: never() };
  return Boolean(await (apiKey?.check ?? apiKey?.resolve)?.call(apiKey, request));
}

/** Adapts an interaction to the callbacks of older sign-ins and those of the program. */
export function callbacksOf(interaction: Interaction): LoginCallbacks {
  const notify = (event: Event) => interaction.notify?.(event);
  const { signal } = interaction;
  return {
    signal,
    onAuth: (info) => notify({ type: "auth_url", ...info }),
    onProgress: (message) => notify({ type: "progress", message }),
    onDeviceCode: (info) => notify({ type: "device_code", ...info }),
    onPrompt: ({ message, placeholder }) => interaction.prompt({ type: "text", message, placeholder }),
    onSelect: ({ message, options }) => interaction.prompt({ type: "select", message, options }),
    onManualCodeInput: () =>
      interaction.prompt({ type: "manual_code", message: "Paste the code or the URL that the browser shows" }),
  };
}

function interactionOf(callbacks: LoginCallbacks): SignInContext {
  return {
    signal: callbacks.signal ?? never(),
    async prompt({ type, message, placeholder, options = [] }) {
      const prompt = { message, placeholder };
      if (type === "manual_code" && callbacks.onManualCodeInput) return await callbacks.onManualCodeInput();
      if (type !== "select") return await callbacks.onPrompt(prompt);
      const chosen = await callbacks.onSelect?.({ message, options });
      if (chosen === undefined) throw new Error("Login cancelled");
      return chosen;
    },
    notify({ type, ...event }) {
      if (type === "auth_url") callbacks.onAuth(event as { url: string });
      else if (type === "device_code") callbacks.onDeviceCode?.(event as never);
      else if (event.message !== undefined) callbacks.onProgress?.(event.message);
    },
  };
}

/** The sign-in in the form that the program expects. */
export const signInOf = (oauth: OAuthAuth): SignIn => ({
  name: oauth.name,
  login: (callbacks) => oauth.login(interactionOf(callbacks)),
  refreshToken: (credentials) => oauth.refresh(credentials, never()),
  // The program waits for the key; the other credentials are fetched with the request.
  getApiKey: (async (credentials: Credentials) => (await oauth.toAuth(credentials)).apiKey ?? "") as never,
});
