// `@mariozechner/pi-ai/google-vertex`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
