// Sign-ins. The program implements the five built-in ones; extensions add their own here or with
// `pi.registerProvider`. The functions that they may import are in oauth.ts.
import { host, hostSync } from "pi:host.ts";
import {
  type Credentials,
  keepSignIn,
  type LoginCallbacks,
  type SignIn,
  signIns,
} from "pi:pi-ai/oauth-providers.ts";

interface Info {
  id: string;
  name: string;
  usesCallbackServer: boolean;
  modifies: boolean;
}

type Provider = SignIn & { id: string; name: string };
type Models = { provider: string; baseUrl: string }[];

/** Callbacks of running sign-ins by token: the program sends them its dialogs. */
const dialogs = new Map<number, LoginCallbacks>();
let last = 0;

/** Passes a dialog of the program to the callbacks; `undefined` cancels it. */
export async function answerLogin(token: number, what: string, payload: never): Promise<unknown> {
  const callbacks = dialogs.get(token) as Record<string, ((payload: never) => unknown)> | undefined;
  return await callbacks?.[what]?.(payload);
}

/** Adds the callbacks of newer versions, which callers for older ones lack. */
function withAllCallbacks(callbacks: LoginCallbacks): LoginCallbacks {
  return {
    onDeviceCode: ({ userCode, verificationUri }) =>
      callbacks.onAuth?.({ url: verificationUri, instructions: `Enter code: ${userCode}` }),
    // Without a callback no option is chosen.
    onSelect: async () => undefined,
    ...callbacks,
  };
}

async function loginByProgram(provider: string, callbacks: LoginCallbacks): Promise<Credentials> {
  const token = (last += 1);
  dialogs.set(token, withAllCallbacks(callbacks));
  const cancelled = new Promise<never>((_, reject) => {
    const refuse = () => reject(new Error("Login cancelled"));
    if (callbacks.signal?.aborted) refuse();
    callbacks.signal?.addEventListener("abort", refuse, { once: true });
  });
  try {
    const login = host<Credentials>("registry.login", { provider, token });
    return await Promise.race([login, cancelled]);
  } finally {
    dialogs.delete(token);
  }
}

const GOOGLE = ["google-gemini-cli", "google-antigravity"];

function ofProgram({ id, name, usesCallbackServer, modifies }: Info): Provider {
  return {
    id,
    name,
    usesCallbackServer,
    login: (callbacks) => loginByProgram(id, callbacks),
    refreshToken: (credentials) => host("registry.oauth.refresh", { provider: id, credentials }),
    getApiKey: ({ access, projectId }) =>
      GOOGLE.includes(id) ? JSON.stringify({ token: access, projectId }) : access,
    modifyModels: modifies
      ? (models, credentials) => {
        const baseUrl = hostSync("registry.copilot.url", { credentials });
        const move = (model: Models[number]) =>
          model.provider === id ? { ...model, baseUrl } : model;
        return (models as Models).map(move as never);
      }
      : undefined,
  };
}

/** Sign-ins of extensions, whose functions are here. */
function extensionProviders(): Provider[] {
  return [...signIns.values()].filter((signIn) => signIn.id) as Provider[];
}

export function getOAuthProviders(): Provider[] {
  const byExtensions = new Map(extensionProviders().map((provider) => [provider.id, provider]));
  const known = hostSync<Info[]>("registry.signIns", {});
  return known.map((info) => byExtensions.get(info.id) ?? ofProgram(info));
}

export function getOAuthProvider(id: string): Provider | undefined {
  return getOAuthProviders().find((provider) => provider.id === id);
}

export function getOAuthProviderInfoList() {
  return getOAuthProviders().map(({ id, name }) => ({ id, name, available: true }));
}

function requireProvider(id: string): Provider {
  const provider = getOAuthProvider(id);
  if (!provider) throw new Error(`Unknown OAuth provider: ${id}`);
  return provider;
}

export const signInWith = (id: string, callbacks: LoginCallbacks): Promise<Credentials> =>
  requireProvider(id).login(withAllCallbacks(callbacks));

function forget(id: string): void {
  for (const [number, signIn] of signIns) {
    if (signIn.id === id) signIns.delete(number);
  }
}

export function registerOAuthProvider(provider: Provider): void {
  forget(provider.id);
  const id = keepSignIn(provider.id, provider);
  hostSync("oauth.register", {
    id: provider.id,
    functions: {
      id,
      name: provider.name,
      usesCallbackServer: provider.usesCallbackServer === true,
      modifies: typeof provider.modifyModels === "function",
    },
  });
}

/** Restores a built-in sign-in of that name. */
export function unregisterOAuthProvider(id: string): void {
  forget(id);
  hostSync("oauth.unregister", { name: id });
}

export function resetOAuthProviders(): void {
  for (const { id } of extensionProviders()) unregisterOAuthProvider(id);
}

export async function refreshOAuthToken(
  providerId: string,
  credentials: Credentials,
): Promise<Credentials> {
  return await requireProvider(providerId).refreshToken(credentials);
}

export async function getOAuthApiKey(
  providerId: string,
  credentials: Record<string, Credentials>,
): Promise<{ newCredentials: Credentials; apiKey: string } | null> {
  const provider = requireProvider(providerId);
  let found = credentials[providerId];
  if (!found) return null;
  if (Date.now() >= found.expires) {
    try {
      found = await provider.refreshToken(found);
    } catch {
      throw new Error(`Failed to refresh OAuth token for ${providerId}`);
    }
  }
  return { newCredentials: found, apiKey: provider.getApiKey(found) };
}

/** Looked up on use: the program cannot be called while the snapshot is made. */
function builtIn(id: string, name: string, usesCallbackServer: boolean): Provider {
  return ofProgram({ id, name, usesCallbackServer, modifies: id === "github-copilot" });
}

export const anthropicOAuthProvider = builtIn("anthropic", "Anthropic (Claude Pro/Max)", true);
export const githubCopilotOAuthProvider = builtIn("github-copilot", "GitHub Copilot", false);
export const geminiCliOAuthProvider = builtIn(
  "google-gemini-cli",
  "Google Cloud Code Assist (Gemini CLI)",
  true,
);
export const antigravityOAuthProvider = builtIn(
  "google-antigravity",
  "Antigravity (Gemini 3, Claude, GPT-OSS)",
  true,
);
export const openaiCodexOAuthProvider = builtIn(
  "openai-codex",
  "ChatGPT Plus/Pro (Codex Subscription)",
  true,
);

type OnAuth = LoginCallbacks["onAuth"];
const noPrompt = () => Promise.reject(new Error("Login cancelled"));

export const loginAnthropic = (callbacks: LoginCallbacks) =>
  anthropicOAuthProvider.login(callbacks);
export const loginOpenAICodex = (callbacks: LoginCallbacks) =>
  openaiCodexOAuthProvider.login(callbacks);

/** Here `onAuth` takes two arguments. */
export function loginGitHubCopilot(
  callbacks: Omit<LoginCallbacks, "onAuth"> & {
    onAuth(url: string, instructions?: string): void;
  },
) {
  const onAuth: OnAuth = ({ url, instructions }) => callbacks.onAuth(url, instructions);
  return githubCopilotOAuthProvider.login({ ...callbacks, onAuth });
}

export const loginGeminiCli = (
  onAuth: OnAuth,
  onProgress?: (message: string) => void,
  onManualCodeInput?: () => Promise<string>,
) => geminiCliOAuthProvider.login({ onAuth, onPrompt: noPrompt, onProgress, onManualCodeInput });

export const loginAntigravity = (
  onAuth: OnAuth,
  onProgress?: (message: string) => void,
  onManualCodeInput?: () => Promise<string>,
) => antigravityOAuthProvider.login({ onAuth, onPrompt: noPrompt, onProgress, onManualCodeInput });

const stale = (refresh: string, more: object = {}): Credentials => ({
  refresh,
  access: "",
  expires: 0,
  ...more,
});

export const refreshAnthropicToken = (refreshToken: string) =>
  anthropicOAuthProvider.refreshToken(stale(refreshToken));
export const refreshOpenAICodexToken = (refreshToken: string) =>
  openaiCodexOAuthProvider.refreshToken(stale(refreshToken));
export const refreshGitHubCopilotToken = (refreshToken: string, enterpriseUrl?: string) =>
  githubCopilotOAuthProvider.refreshToken(stale(refreshToken, { enterpriseUrl }));
export const refreshGoogleCloudToken = (refreshToken: string, projectId: string) =>
  geminiCliOAuthProvider.refreshToken(stale(refreshToken, { projectId }));
export const refreshAntigravityToken = (refreshToken: string, projectId: string) =>
  antigravityOAuthProvider.refreshToken(stale(refreshToken, { projectId }));

export function normalizeDomain(input: string): string | null {
  return hostSync<string | undefined>("registry.copilot.domain", { key: input }) ?? null;
}

export function getGitHubCopilotBaseUrl(token?: string, enterpriseDomain?: string): string {
  const credentials = { access: token, enterpriseUrl: enterpriseDomain };
  return hostSync<string>("registry.copilot.url", { credentials });
}
