// `@mariozechner/pi-ai/openai-responses`: exports all of `pi-ai`.
export * from "../pi-ai.js";
