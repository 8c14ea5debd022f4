// Opens files until none is left, then closes some of the first ones.
import { closeSync, openSync } from "node:fs";

const held: number[] = [];

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    try {
      for (;;) held.push(openSync("/dev/null", "r"));
    } catch {
      for (const descriptor of held.splice(0, 10)) closeSync(descriptor);
    }
  });
