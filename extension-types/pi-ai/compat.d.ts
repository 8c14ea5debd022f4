// `@mariozechner/pi-ai/compat`: exports all of `pi-ai`.
export * from "../pi-ai.js";
