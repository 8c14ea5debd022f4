// Streams from models: through an API that an extension has registered, or through the program,
// which has all others.
import { getApiProvider } from "pi:pi-ai/api-registry.ts";
import type { ApiProvider, Stream, StreamOptions } from "pi:pi-ai/api-registry.ts";
import type { Model } from "pi:pi-ai/models.ts";
import { throughProgram } from "pi:pi-ai/program.ts";

function provider(model: Model): ApiProvider {
  const found = getApiProvider(model.api);
  if (!found) throw new Error(`No API provider registered for api: ${model.api}`);
  return found;
}

export const stream: Stream = (model, context, options) =>
  provider(model).stream(model, context, options);

export const streamSimple: Stream = (model, context, options) =>
  provider(model).streamSimple(model, context, options);

export async function complete(
  model: Model,
  context: unknown,
  options?: StreamOptions,
): Promise<unknown> {
  return await stream(model, context, options).result();
}

export async function completeSimple(
  model: Model,
  context: unknown,
  options?: StreamOptions,
): Promise<unknown> {
  return await streamSimple(model, context, options).result();
}

export const streamAnthropic = throughProgram("anthropic-messages", false);
export const streamSimpleAnthropic = throughProgram("anthropic-messages", true);
export const streamAzureOpenAIResponses = throughProgram("azure-openai-responses", false);
export const streamSimpleAzureOpenAIResponses = throughProgram("azure-openai-responses", true);
export const streamBedrock = throughProgram("bedrock-converse-stream", false);
export const streamSimpleBedrock = throughProgram("bedrock-converse-stream", true);
export const streamGoogle = throughProgram("google-generative-ai", false);
export const streamSimpleGoogle = throughProgram("google-generative-ai", true);
export const streamGoogleGeminiCli = throughProgram("google-gemini-cli", false);
export const streamSimpleGoogleGeminiCli = throughProgram("google-gemini-cli", true);
export const streamGoogleVertex = throughProgram("google-vertex", false);
export const streamSimpleGoogleVertex = throughProgram("google-vertex", true);
export const streamMistral = throughProgram("mistral-conversations", false);
export const streamSimpleMistral = throughProgram("mistral-conversations", true);
export const streamOpenAICodexResponses = throughProgram("openai-codex-responses", false);
export const streamSimpleOpenAICodexResponses = throughProgram("openai-codex-responses", true);
export const streamOpenAICompletions = throughProgram("openai-completions", false);
export const streamSimpleOpenAICompletions = throughProgram("openai-completions", true);
export const streamOpenAIResponses = throughProgram("openai-responses", false);
export const streamSimpleOpenAIResponses = throughProgram("openai-responses", true);
