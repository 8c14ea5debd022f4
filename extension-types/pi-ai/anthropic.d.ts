// `@mariozechner/pi-ai/anthropic`: exports all of `pi-ai`.
export * from "../pi-ai.js";
