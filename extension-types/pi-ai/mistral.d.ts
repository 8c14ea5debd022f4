// `@mariozechner/pi-ai/mistral`: exports all of `pi-ai`.
export * from "../pi-ai.js";
