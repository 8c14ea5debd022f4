// `@mariozechner/pi-ai`: models, and asking them.
import { hostSync } from "pi:host.ts";

export { Type } from "pi:npm/sinclair-typebox/index.js";
export {
  AssistantMessageEventStream,
  createAssistantMessageEventStream,
  EventStream,
} from "pi:pi-ai/event-stream.ts";
export {
  calculateCost,
  getModel,
  getModels,
  getProviders,
  modelsAreEqual,
  supportsXhigh,
} from "pi:pi-ai/models.ts";
export {
  parseStreamingJson,
  StringEnum,
  validateToolArguments,
  validateToolCall,
} from "pi:pi-ai/schema.ts";
export {
  clearApiProviders,
  complete,
  completeSimple,
  getApiProvider,
  getApiProviders,
  registerApiProvider,
  stream,
  streamAnthropic,
  streamOpenAICompletions,
  streamOpenAIResponses,
  streamSimple,
  streamSimpleAnthropic,
  streamSimpleOpenAICompletions,
  streamSimpleOpenAIResponses,
  unregisterApiProviders,
} from "pi:pi-ai/stream.ts";
export * from "pi:pi-ai/missing.ts";

/** The key that the environment has for a provider. */
export function getEnvApiKey(provider: string): string | undefined {
  return hostSync("ai.env_api_key", { provider });
}

/** Whether the answer says, or its usage shows, that the context did not fit. */
export function isContextOverflow(message: unknown, contextWindow?: number): boolean {
  return hostSync("ai.is_context_overflow", { message, contextWindow });
}
