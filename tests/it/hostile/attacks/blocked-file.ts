// A call that does not end: the file is on a disk that does not answer.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    execFileSync("mkfifo", ["never"]);
    readFileSync("never");
  });
