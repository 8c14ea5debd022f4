// Sign-ins that extensions register, by the numbers under which the program knows them.

export interface LoginCallbacks {
  onAuth(info: { url: string; instructions?: string }): void;
  onPrompt(prompt: {
    message: string;
    placeholder?: string;
    allowEmpty?: boolean;
  }): Promise<string>;
  onProgress?(message: string): void;
  /** These two are of newer versions; callers written for older ones lack them. */
  onDeviceCode?(info: { userCode: string; verificationUri: string }): void;
  onSelect?(prompt: { message: string; options: { id: string; label: string }[] }): Promise<string | undefined>;
  onManualCodeInput?(): Promise<string>;
  signal?: AbortSignal;
}

export interface Credentials {
  refresh: string;
  access: string;
  /** Milliseconds since the epoch. */
  expires: number;
  [member: string]: unknown;
}

export interface SignIn {
  id?: string;
  name?: string;
  usesCallbackServer?: boolean;
  login(callbacks: LoginCallbacks): Promise<Credentials>;
  refreshToken(credentials: Credentials): Promise<Credentials>;
  getApiKey(credentials: Credentials): string;
  modifyModels?(models: unknown[], credentials: unknown): unknown[];
}

export const signIns = new Map<number, SignIn>();
let last = 0;

export function keepSignIn(id: string, signIn: SignIn): number {
  for (const name of ["login", "refreshToken", "getApiKey"] as const) {
    if (typeof signIn[name] !== "function") {
      throw new TypeError(`oauth.${name} of the provider "${id}" must be a function`);
    }
  }
  last += 1;
  // The object has the registered name, and inherits the extension's functions, which may use
  // `this`.
  signIns.set(last, Object.create(signIn, { id: { value: id, enumerable: true } }));
  return last;
}
