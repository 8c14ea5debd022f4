// `@mariozechner/pi-ai/openai-completions`: exports all of `pi-ai`.
export * from "../pi-ai.js";
