// Blocks in native code, which cannot be interrupted, when another extension was called last.
import { execSync } from "node:child_process";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") setTimeout(() => execSync("sleep 5"), 300);
  });
