// Stands in for the original's `dist/cli.js`, for clients that start pi as `node <cliPath> …`, such as
// the `RpcClient` of its npm package: `new RpcClient({ cliPath: "…/examples/rpc/pi.mjs" })`.
// The program is `pi`, or what PI_PROGRAM says.
import { spawn } from "node:child_process";

const program = process.env.PI_PROGRAM ?? "pi";
// stdin goes through here: should this process be killed, pi sees its stdin close, and ends.
const pi = spawn(program, process.argv.slice(2), { stdio: ["pipe", "inherit", "inherit"] });
process.stdin.pipe(pi.stdin);
// pi has ended before it read everything.
pi.stdin.on("error", () => {});
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.on(signal, () => pi.kill(signal));
pi.on("error", (error) => {
  console.error(`${program}: ${error.message}`);
  process.exit(1);
});
pi.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else process.exit(code);
});
