// `@earendil-works/pi-coding-agent`: the same under the scope of newer versions, whose
// number it says. Extensions written for them refuse to work in older ones.
export * from "pi:pi-coding-agent.ts";

/** The version whose additions are here, as far as they are. */
export const VERSION = "1.5.2";
