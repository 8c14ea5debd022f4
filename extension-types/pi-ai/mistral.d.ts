// `@mariozechner/pi-ai/mistral`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
