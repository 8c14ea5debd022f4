// Opens a pipe, which blocks like a file on a disk that does not respond.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    execFileSync("mkfifo", ["never"]);
    readFileSync("never");
  });
