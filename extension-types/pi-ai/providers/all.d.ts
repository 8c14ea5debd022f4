// `@earendil-works/pi-ai/providers/all`: exports all of `pi-ai`.
export * from "../../pi-ai.js";
