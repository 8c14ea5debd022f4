#!/usr/bin/env node
// Starts pi, for clients that start it as `node <this file>`. Written by: pi launcher
import("node:child_process").then(({ spawn }) => {
  const program = process.env.PI_PROGRAM || "@PROGRAM@";
  // A pipe closes when this process is killed, and pi ends when its stdin does.
  const stdin = process.stdin.isTTY ? "inherit" : "pipe";
  const pi = spawn(program, process.argv.slice(2), { stdio: [stdin, "inherit", "inherit"] });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => pi.kill(signal));
  if (pi.stdin) process.stdin.pipe(pi.stdin).on("error", () => {});
  pi.on("error", (error) => {
    console.error(`${program}: ${error.message}`);
    process.exit(127);
  });
  pi.on("exit", (code, signal) => {
    if (!signal) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
});
