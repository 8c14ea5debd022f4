// `@mariozechner/pi-ai/azure-openai-responses`: exports all of `pi-ai`.
export * from "../pi-ai.js";
