// Allocates in native code, which cannot be interrupted and is not counted.
import { readFileSync } from "node:fs";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") readFileSync("/dev/zero");
  });
