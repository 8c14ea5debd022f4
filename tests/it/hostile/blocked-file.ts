// A call of the program that does not end: the file is on a disk that does not answer.
import { SessionManager } from "@mariozechner/pi-coding-agent";
import { execFileSync } from "node:child_process";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    execFileSync("mkfifo", ["session.jsonl"]);
    SessionManager.open("session.jsonl");
  });
