// `@earendil-works/pi-ai/providers/all`: what `pi-ai` itself has.
export * from "../../pi-ai.js";
