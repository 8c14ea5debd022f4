// `@mariozechner/pi-ai/compat`: what `pi-ai` itself has.
export * from "../pi-ai.js";
