// Renders with the original: node reference.mjs <folder of its package> <output.json>
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { run } from "./run.mjs";

const [folder, output] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(path).href);
const inside = createRequire(`${folder}/package.json`);
const tui = await load(`${folder}/../pi-tui/dist/index.js`).catch(() => load(inside.resolve("@mariozechner/pi-tui")));
const agent = await load(`${folder}/dist/index.js`);
// The original's terminal does this when it starts.
const { KeybindingsManager } = await load(`${folder}/dist/core/keybindings.js`);
tui.setKeybindings(new KeybindingsManager());
writeFileSync(output, JSON.stringify(await run({ tui, agent })));
process.exit(0);
