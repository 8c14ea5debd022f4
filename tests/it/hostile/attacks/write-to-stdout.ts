import { execSync } from "node:child_process";
import fs from "node:fs";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    for (const path of ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"]) {
      fs.writeFileSync(path, "LOUD\n", { flag: "a" });
    }
    fs.writeSync(1, "LOUD\n");
    process.stdout.write("LOUD\n");
    execSync("echo LOUD; echo LOUD >&2", { stdio: "inherit" });
    throw new Error("was loud");
  });
