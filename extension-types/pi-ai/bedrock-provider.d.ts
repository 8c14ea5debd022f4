// `@mariozechner/pi-ai/bedrock-provider`: exports all of `pi-ai`.
export * from "../pi-ai.js";
