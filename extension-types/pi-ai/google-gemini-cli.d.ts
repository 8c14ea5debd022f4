// `@mariozechner/pi-ai/google-gemini-cli`: exports all of `pi-ai`.
export * from "../pi-ai.js";
