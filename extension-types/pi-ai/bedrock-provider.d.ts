// `@mariozechner/pi-ai/bedrock-provider`: here all of `pi-ai` is there.
export * from "../pi-ai.js";
