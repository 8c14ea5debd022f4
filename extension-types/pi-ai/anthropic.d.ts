// `@mariozechner/pi-ai/anthropic`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
