// `@mariozechner/pi-ai`: models, and functions to use them.
import { hostSync } from "pi:host.ts";

export { contentText, uuidv7 } from "pi:pi-ai/helpers.ts";
export { Type } from "pi:npm/sinclair-typebox/index.js";
export {
  clearApiProviders,
  getApiProvider,
  getApiProviders,
  registerApiProvider,
  registerBuiltInApiProviders,
  resetApiProviders,
  unregisterApiProviders,
} from "pi:pi-ai/api-registry.ts";
export { InMemoryCredentialStore } from "pi:pi-ai/credential-store.ts";
export {
  AssistantMessageEventStream,
  createAssistantMessageEventStream,
  EventStream,
} from "pi:pi-ai/event-stream.ts";
export {
  fauxAssistantMessage,
  fauxText,
  fauxThinking,
  fauxToolCall,
  registerFauxProvider,
} from "pi:pi-ai/faux.ts";
export {
  calculateCost,
  clampThinkingLevel,
  getModel,
  // Names of the catalogue's functions in newer versions.
  getModel as getBuiltinModel,
  getModels,
  getModels as getBuiltinModels,
  getProviders,
  getProviders as getBuiltinProviders,
  getSupportedThinkingLevels,
  hasApi,
  modelsAreEqual,
  supportsXhigh,
} from "pi:pi-ai/models.ts";
export {
  anthropicMessagesApi,
  azureOpenAIResponsesApi,
  bedrockConverseStreamApi,
  createProvider,
  envApiKeyAuth,
  googleGenerativeAIApi,
  googleVertexApi,
  mistralConversationsApi,
  openAICodexResponsesApi,
  openAICompletionsApi,
  openAIResponsesApi,
} from "pi:pi-ai/providers.ts";
export {
  collapseSystemMessages,
  getCurrentSystemMessage,
  getCurrentSystemPrompt,
  getCurrentTools,
  getSystemMessageText,
} from "pi:pi-ai/transcript.ts";
export { builtinProviders } from "pi:pi-ai/builtin-providers.ts";
export {
  parseJsonWithRepair,
  parseStreamingJson,
  StringEnum,
  validateToolArguments,
  validateToolCall,
} from "pi:pi-ai/schema.ts";
export {
  complete,
  completeSimple,
  stream,
  streamAnthropic,
  streamAzureOpenAIResponses,
  streamBedrock,
  streamGoogle,
  streamGoogleGeminiCli,
  streamGoogleVertex,
  streamMistral,
  streamOpenAICodexResponses,
  streamOpenAICompletions,
  streamOpenAIResponses,
  streamSimple,
  streamSimpleAnthropic,
  streamSimpleAzureOpenAIResponses,
  streamSimpleBedrock,
  streamSimpleGoogle,
  streamSimpleGoogleGeminiCli,
  streamSimpleGoogleVertex,
  streamSimpleMistral,
  streamSimpleOpenAICodexResponses,
  streamSimpleOpenAICompletions,
  streamSimpleOpenAIResponses,
} from "pi:pi-ai/stream.ts";

export {
  appendAssistantMessageDiagnostic,
  createAssistantMessageDiagnostic,
  extractDiagnosticError,
  formatThrownValue,
} from "pi:pi-ai/diagnostics.ts";
export { cleanupSessionResources, registerSessionResourceCleanup } from "pi:pi-ai/session-resources.ts";
export { findEnvKeys, getEnvApiKey } from "pi:pi-ai/env-key.ts";

/** Whether the error or the usage of a response shows that the context was too large. */
export function isContextOverflow(message: unknown, contextWindow?: number): boolean {
  return hostSync("ai.is_context_overflow", { message, contextWindow });
}

/** Whether pi would repeat the request after such a response, unless the context was too large. */
export function isRetryableAssistantError(message: { stopReason?: string; errorMessage?: string }): boolean {
  const { stopReason, errorMessage } = message;
  return stopReason === "error" && Boolean(errorMessage) && hostSync("ai.is_retryable", { text: errorMessage });
}

/** Patterns of errors about a context that is too large. */
export function getOverflowPatterns(): RegExp[] {
  const patterns = hostSync<string[]>("ai.overflow_patterns");
  return patterns.map((pattern) => new RegExp(pattern, "i"));
}

/** In the original this loads Bedrock's SDK; here Bedrock is part of the program. */
export function setBedrockProviderModule(): never {
  throw new Error(
    "setBedrockProviderModule: there is no module to replace, Bedrock's API is part of pi; " +
      "registerApiProvider({ api: \"bedrock-converse-stream\", ... }) takes its place",
  );
}
