// Runs fd with a defined order: without its own limit, sorted by path, then limited. PARITY_FD is
// the path of fd.
import { spawnSync } from "node:child_process";

const args = process.argv.slice(2);
const at = args.indexOf("--max-results");
const [, limit] = at < 0 ? [] : args.splice(at, 2);
const { stdout, status } = spawnSync(process.env.PARITY_FD, args, { stdio: ["ignore", "pipe", "inherit"], maxBuffer: 2 ** 30 });

const parts = (line) => line.replace(/\/$/, "").split("/");
function compare(a, b) {
	for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
	return a.length - b.length;
}
// Handles paths as bytes, which may be no UTF-8.
const lines = stdout.toString("latin1").split("\n").slice(0, -1);
lines.sort((a, b) => compare(parts(a), parts(b)));
const kept = Number(limit) > 0 ? lines.slice(0, Number(limit)) : lines;
process.exitCode = status ?? 1;
process.stdout.write(Buffer.from(kept.map((line) => `${line}\n`).join(""), "latin1"));
