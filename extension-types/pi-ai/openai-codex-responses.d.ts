// `@mariozechner/pi-ai/openai-codex-responses`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
