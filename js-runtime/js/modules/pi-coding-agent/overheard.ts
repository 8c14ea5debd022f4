// Commands of `executeBash` whose output somebody hears as it comes.
import { printable } from "pi:pi-coding-agent/plain-text.ts";
import type { BashOperations } from "pi:pi-coding-agent/tool-runs.ts";

/** As text for a screen. */
export function overheard(by: BashOperations, onChunk: (chunk: string) => void): BashOperations {
  return {
    exec(command, cwd, options) {
      const decoder = new TextDecoder();
      const onData = (data: unknown) => {
        options.onData(data);
        const text = printable(decoder.decode(data as Uint8Array, { stream: true })).replaceAll("\r", "");
        if (text) onChunk(text);
      };
      return by.exec(command, cwd, { ...options, onData });
    },
  };
}
