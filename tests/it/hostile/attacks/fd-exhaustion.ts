// Opens files until none is left; another extension is called last.
import { openSync } from "node:fs";

const held: number[] = [];

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    try {
      for (;;) held.push(openSync("/dev/null", "r"));
    } catch {
      // There are no more.
    }
  });
