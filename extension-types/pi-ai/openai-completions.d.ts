// `@mariozechner/pi-ai/openai-completions`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
