// `@mariozechner/pi-ai/google`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
