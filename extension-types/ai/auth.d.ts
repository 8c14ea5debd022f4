// `@mariozechner/pi-ai`: keys, sign-ins and the resulting credentials, with the names of newer
// versions.
import type { OAuthCredentials } from "./oauth.js";

/** Variables that a provider's requests need, by name. */
export type ProviderEnv = Record<string, string>;
/** `null` removes a header. */
export type ProviderHeaders = Record<string, string | null>;

export interface OAuthCredential extends OAuthCredentials {
  type: "oauth";
}
/** A key that the user has entered, or variables in its place. */
export interface ApiKeyCredential {
  type: "api_key";
  key?: string;
  env?: ProviderEnv;
}
export type Credential = ApiKeyCredential | OAuthCredential;
export type AuthType = Credential["type"];
export interface CredentialInfo {
  providerId: string;
  type: AuthType;
}

/** The credentials of a request. */
export interface ModelAuth {
  apiKey?: string;
  headers?: ProviderHeaders;
  baseUrl?: string;
}
export interface AuthResult {
  auth: ModelAuth;
  env?: ProviderEnv;
  /** The source, as text for the user. */
  source?: string;
}
export interface AuthCheck {
  type: AuthType;
  source?: string;
}

interface Typed {
  message: string;
  placeholder?: string;
}
interface Choice {
  id: string;
  label: string;
  description?: string;
}
/** A dialog of a sign-in. */
export type AuthPrompt =
  & { signal?: AbortSignal }
  & (
    | ({ type: "text" | "secret" | "manual_code" } & Typed)
    | { type: "select"; message: string; options: readonly Choice[] }
  );
export interface AuthInfoLink {
  url: string;
  label?: string;
}
/** A message to the user during a sign-in. */
export type AuthEvent =
  | { type: "info"; message: string; links?: readonly AuthInfoLink[] }
  | { type: "auth_url"; url: string; instructions?: string }
  | {
    type: "device_code";
    userCode: string;
    verificationUri: string;
    intervalSeconds?: number;
    expiresInSeconds?: number;
  }
  | { type: "progress"; message: string };
export interface AuthInteraction {
  signal?: AbortSignal;
  prompt(prompt: AuthPrompt): Promise<string>;
  notify(event: AuthEvent): void;
}
export type ProviderAuthInteraction = AuthInteraction & { signal: AbortSignal };

// Without this line every declaration would be exported.
export {};
