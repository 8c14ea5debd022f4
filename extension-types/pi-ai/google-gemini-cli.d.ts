// `@mariozechner/pi-ai/google-gemini-cli`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
