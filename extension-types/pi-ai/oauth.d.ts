// `@mariozechner/pi-ai/oauth`: sign-ins. The program implements the five built-in ones.
import type { OAuthCredentials, OAuthLoginCallbacks, OptionalLoginCallbacks, OAuthProviderId } from "../ai/oauth.js";
import type { OAuthProviderInfo, OAuthProviderInterface } from "../ai/oauth.js";

export type * from "../ai/oauth.js";

export const anthropicOAuthProvider: OAuthProviderInterface;
export const antigravityOAuthProvider: OAuthProviderInterface;
export const geminiCliOAuthProvider: OAuthProviderInterface;
export const githubCopilotOAuthProvider: OAuthProviderInterface;
export const openaiCodexOAuthProvider: OAuthProviderInterface;

export function getOAuthProviders(): OAuthProviderInterface[];
export function getOAuthProvider(id: OAuthProviderId): OAuthProviderInterface | undefined;
/** @deprecated Use `getOAuthProviders`. */
export function getOAuthProviderInfoList(): OAuthProviderInfo[];
export function registerOAuthProvider(provider: OAuthProviderInterface): void;
/** Restores the sign-in of pi that it replaced. */
export function unregisterOAuthProvider(id: OAuthProviderId): void;
export function resetOAuthProviders(): void;
/** Works for any known provider. */
export function refreshOAuthToken(
  providerId: OAuthProviderId,
  credentials: OAuthCredentials,
): Promise<OAuthCredentials>;
/** Renews an expired sign-in; `null` without credentials of that provider. */
export function getOAuthApiKey(
  providerId: OAuthProviderId,
  credentials: Record<string, OAuthCredentials>,
): Promise<{ newCredentials: OAuthCredentials; apiKey: string } | null>;

type Renew<TMore extends unknown[] = []> = (refreshToken: string, ...more: TMore) => Promise<OAuthCredentials>;
type LoginWithoutPrompt = (
  onAuth: OAuthLoginCallbacks["onAuth"],
  onProgress?: OAuthLoginCallbacks["onProgress"],
  onManualCodeInput?: OAuthLoginCallbacks["onManualCodeInput"],
) => Promise<OAuthCredentials>;

export function loginAnthropic(callbacks: OptionalLoginCallbacks): Promise<OAuthCredentials>;
export function loginOpenAICodex(callbacks: OptionalLoginCallbacks): Promise<OAuthCredentials>;
export function loginGitHubCopilot(
  callbacks: Omit<OptionalLoginCallbacks, "onAuth"> & { onAuth(url: string, instructions?: string): void },
): Promise<OAuthCredentials>;
export const loginGeminiCli: LoginWithoutPrompt;
export const loginAntigravity: LoginWithoutPrompt;
export const refreshAnthropicToken: Renew;
export const refreshOpenAICodexToken: Renew;
export const refreshGitHubCopilotToken: Renew<[enterpriseUrl?: string]>;
export const refreshGoogleCloudToken: Renew<[projectId: string]>;
export const refreshAntigravityToken: Renew<[projectId: string]>;

/** The host of an address of GitHub Enterprise; `null` if it is invalid. */
export function normalizeDomain(input: string): string | null;
export function getGitHubCopilotBaseUrl(token?: string, enterpriseDomain?: string): string;

// Without this line every declaration would be exported.
export {};
