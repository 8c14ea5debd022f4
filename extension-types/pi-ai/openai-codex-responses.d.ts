// `@mariozechner/pi-ai/openai-codex-responses`: exports all of `pi-ai`.
export * from "../pi-ai.js";
