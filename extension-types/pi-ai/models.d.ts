// `@mariozechner/pi-ai/models`: exports all of `pi-ai`.
export * from "../pi-ai.js";
