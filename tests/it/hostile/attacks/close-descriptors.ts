import fs from "node:fs";

export default (pi) =>
  pi.on("before_agent_start", (event) => {
    if (event.prompt !== "attack") return;
    for (let fd = 0; fd < 256; fd++) {
      try {
        fs.closeSync(fd);
      } catch {
        // Not open, or not ours.
      }
    }
    process.stdout.destroy();
    process.stderr.end();
    console.log("into the void");
    throw new Error("closed everything");
  });
