// `@mariozechner/pi-ai/models`: what `pi-ai` itself has.
export * from "../pi-ai.js";
