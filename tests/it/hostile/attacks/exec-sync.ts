// Native code, which nothing can interrupt, when another one is the last that was called.
import { execSync } from "node:child_process";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt === "attack") setTimeout(() => execSync("sleep 5"), 300);
  });
