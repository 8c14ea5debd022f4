// `@mariozechner/pi-ai/azure-openai-responses`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
