// Names of pi-ai that we do not offer: its own implementations of providers and its test
// provider (0.67), and what extensions for newer versions import.
import { missing } from "pi:missing.ts";

const MODULE = "@mariozechner/pi-ai";

export const clampThinkingLevel = missing("clampThinkingLevel", MODULE);
export const fauxAssistantMessage = missing("fauxAssistantMessage", MODULE);
export const fauxText = missing("fauxText", MODULE);
export const fauxThinking = missing("fauxThinking", MODULE);
export const fauxToolCall = missing("fauxToolCall", MODULE);
export const getOverflowPatterns = missing("getOverflowPatterns", MODULE);
export const parseJsonWithRepair = missing("parseJsonWithRepair", MODULE);
export const registerBuiltInApiProviders = missing("registerBuiltInApiProviders", MODULE);
export const registerFauxProvider = missing("registerFauxProvider", MODULE);
export const resetApiProviders = missing("resetApiProviders", MODULE);
export const setBedrockProviderModule = missing("setBedrockProviderModule", MODULE);
export const streamAzureOpenAIResponses = missing("streamAzureOpenAIResponses", MODULE);
export const streamGoogle = missing("streamGoogle", MODULE);
export const streamGoogleGeminiCli = missing("streamGoogleGeminiCli", MODULE);
export const streamGoogleVertex = missing("streamGoogleVertex", MODULE);
export const streamMistral = missing("streamMistral", MODULE);
export const streamOpenAICodexResponses = missing("streamOpenAICodexResponses", MODULE);
export const streamSimpleAzureOpenAIResponses = missing("streamSimpleAzureOpenAIResponses", MODULE);
export const streamSimpleGoogle = missing("streamSimpleGoogle", MODULE);
export const streamSimpleGoogleGeminiCli = missing("streamSimpleGoogleGeminiCli", MODULE);
export const streamSimpleGoogleVertex = missing("streamSimpleGoogleVertex", MODULE);
export const streamSimpleMistral = missing("streamSimpleMistral", MODULE);
export const streamSimpleOpenAICodexResponses = missing("streamSimpleOpenAICodexResponses", MODULE);
