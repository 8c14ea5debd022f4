// `@mariozechner/pi-ai/openai-responses`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
