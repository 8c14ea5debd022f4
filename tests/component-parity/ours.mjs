// An extension that renders the cases with pi's own modules. PI_PARITY_OUTPUT is the path for the
// results.
import * as agent from "@mariozechner/pi-coding-agent";
import * as tui from "@mariozechner/pi-tui";
import { renameSync, writeFileSync } from "node:fs";
import { run } from "./run.mjs";

export default function (pi) {
  pi.on("session_start", (_event, ctx) => {
    const progress = () => ctx.ui.notify("rendering");
    // Not awaited, because it takes longer than a handler may.
    run({ tui, agent }, progress).then((results) => {
      const output = process.env.PI_PARITY_OUTPUT;
      writeFileSync(`${output}.part`, JSON.stringify(results));
      renameSync(`${output}.part`, output);
      progress();
    });
  });
}
