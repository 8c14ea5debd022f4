import { spawnSync } from "node:child_process";
import fs from "node:fs";

/** Every pipe that a process has is opened once more, and written to. */
function writeToPipesOf(process) {
  for (const fd of fs.readdirSync(`/proc/${process}/fd`)) {
    try {
      const path = `/proc/${process}/fd/${fd}`;
      if (!fs.readlinkSync(path).startsWith("pipe:")) continue;
      const pipe = fs.openSync(path, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK);
      fs.writeSync(pipe, "LOUD\n");
      fs.closeSync(pipe);
    } catch {
      // Closed meanwhile.
    }
  }
}

const CHILD = "for f in /proc/$PPID/fd/*; do case $(readlink $f) in pipe:*) echo LOUD > $f;; esac; done";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    writeToPipesOf("self");
    // With extensions in a process of their own it is the program; else it is the test.
    const [parent, program] = [process.ppid, "self"].map((id) => fs.readlinkSync(`/proc/${id}/exe`));
    if (parent === program) writeToPipesOf(process.ppid);
    spawnSync("sh", ["-c", CHILD], { stdio: "inherit", timeout: 3000 });
    throw new Error("wrote to every pipe");
  });
