// `@mariozechner/pi-ai/oauth`: the program does logins itself; extensions add their own with
// `pi.registerProvider(name, { oauth })`.
import { missing } from "pi:missing.ts";

const MODULE = "@mariozechner/pi-ai/oauth";

export const anthropicOAuthProvider = missing("anthropicOAuthProvider", MODULE);
export const antigravityOAuthProvider = missing("antigravityOAuthProvider", MODULE);
export const geminiCliOAuthProvider = missing("geminiCliOAuthProvider", MODULE);
export const getGitHubCopilotBaseUrl = missing("getGitHubCopilotBaseUrl", MODULE);
export const getOAuthApiKey = missing("getOAuthApiKey", MODULE);
export const getOAuthProvider = missing("getOAuthProvider", MODULE);
export const getOAuthProviderInfoList = missing("getOAuthProviderInfoList", MODULE);
export const getOAuthProviders = missing("getOAuthProviders", MODULE);
export const githubCopilotOAuthProvider = missing("githubCopilotOAuthProvider", MODULE);
export const loginAnthropic = missing("loginAnthropic", MODULE);
export const loginAntigravity = missing("loginAntigravity", MODULE);
export const loginGeminiCli = missing("loginGeminiCli", MODULE);
export const loginGitHubCopilot = missing("loginGitHubCopilot", MODULE);
export const loginOpenAICodex = missing("loginOpenAICodex", MODULE);
export const normalizeDomain = missing("normalizeDomain", MODULE);
export const openaiCodexOAuthProvider = missing("openaiCodexOAuthProvider", MODULE);
export const refreshAnthropicToken = missing("refreshAnthropicToken", MODULE);
export const refreshAntigravityToken = missing("refreshAntigravityToken", MODULE);
export const refreshGitHubCopilotToken = missing("refreshGitHubCopilotToken", MODULE);
export const refreshGoogleCloudToken = missing("refreshGoogleCloudToken", MODULE);
export const refreshOAuthToken = missing("refreshOAuthToken", MODULE);
export const refreshOpenAICodexToken = missing("refreshOpenAICodexToken", MODULE);
export const registerOAuthProvider = missing("registerOAuthProvider", MODULE);
export const resetOAuthProviders = missing("resetOAuthProviders", MODULE);
export const unregisterOAuthProvider = missing("unregisterOAuthProvider", MODULE);
