// In native code, where nothing can stop it, and counted by nobody.
import { readFileSync } from "node:fs";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") readFileSync("/dev/zero");
  });
