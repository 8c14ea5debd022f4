// `@mariozechner/pi-ai/google`: exports all of `pi-ai`.
export * from "../pi-ai.js";
