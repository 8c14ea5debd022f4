// Types of `@mariozechner/pi-ai` for sign-ins with OAuth. The functions are in pi-ai/oauth.d.ts.
import type { Model } from "../pi-ai.js";

export interface OAuthCredentials {
  refresh: string;
  access: string;
  /** Milliseconds since 1970. */
  expires: number;
  /** Other values of the provider; stored in auth.json. */
  [key: string]: unknown;
}
export type OAuthProviderId = string;
/** @deprecated Use `OAuthProviderId`. */
export type OAuthProvider = OAuthProviderId;
export interface OAuthPrompt {
  message: string;
  placeholder?: string;
  allowEmpty?: boolean;
}
export interface OAuthAuthInfo {
  url: string;
  instructions?: string;
}
/** The user types the code at that address, on any device. */
export interface OAuthDeviceCodeInfo {
  userCode: string;
  verificationUri: string;
  intervalSeconds?: number;
  expiresInSeconds?: number;
}
export interface OAuthSelectOption {
  id: string;
  label: string;
}
export interface OAuthSelectPrompt {
  message: string;
  options: OAuthSelectOption[];
}
export interface OAuthLoginCallbacks {
  /** Called with the page that the user has to open. */
  onAuth(info: OAuthAuthInfo): void;
  onPrompt(prompt: OAuthPrompt): Promise<string>;
  onProgress?(message: string): void;
  /** This member and `onSelect` are from newer versions. */
  onDeviceCode(info: OAuthDeviceCodeInfo): void;
  /** The id that the user chooses; `undefined` if the choice was cancelled. */
  onSelect(prompt: OAuthSelectPrompt): Promise<string | undefined>;
  /** A code that the user pastes, while a server waits for the redirect. */
  onManualCodeInput?(): Promise<string>;
  signal?: AbortSignal;
}
/** The callbacks that the caller of a sign-in has to supply. */
export type OptionalLoginCallbacks = Omit<OAuthLoginCallbacks, "onDeviceCode" | "onSelect"> &
  Partial<Pick<OAuthLoginCallbacks, "onDeviceCode" | "onSelect">>;
/** The sign-in of an extension for `/login`. */
export interface OAuthSignIn {
  readonly name: string;
  login(callbacks: OAuthLoginCallbacks): Promise<OAuthCredentials>;
  refreshToken(credentials: OAuthCredentials): Promise<OAuthCredentials>;
  getApiKey(credentials: OAuthCredentials): string;
  modifyModels?(models: Model[], credentials: OAuthCredentials): Model[];
  /** The sign-in waits for a redirect, and accepts a typed code meanwhile. */
  usesCallbackServer?: boolean;
  /** From newer versions, ignored. */
  isSubscription?: boolean;
}
export interface OAuthProviderInterface extends OAuthSignIn {
  readonly id: OAuthProviderId;
}
export interface OAuthProviderInfo {
  id: OAuthProviderId;
  name: string;
  available: boolean;
}

// Without this line every declaration would be exported.
export {};
