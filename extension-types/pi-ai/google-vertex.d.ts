// `@mariozechner/pi-ai/google-vertex`: exports all of `pi-ai`.
export * from "../pi-ai.js";
