import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import tty from "node:tty";

const nothing = () => {};

/** All of them are closed with what is made of them, or read, or written to. */
const WAYS = [
  (fd) => new net.Socket({ fd }).on("error", nothing).destroy(),
  (fd) => new net.Socket({ fd }).on("error", nothing).write("LOUD\n"),
  (fd) => net.createServer().on("error", nothing).listen({ fd }).close(),
  (fd) => new tty.WriteStream(fd).destroy(),
  (fd) => new tty.ReadStream(fd).destroy(),
  (fd) => {
    const { Pipe, constants } = (process as any).binding("pipe_wrap");
    const pipe = new Pipe(constants.SOCKET);
    pipe.open(fd);
    pipe.close();
  },
  (fd) => new ((process as any).binding("tty_wrap").TTY)(fd, {}).close(),
  (fd) => fs.writeSync(fd, "LOUD\n"),
  (fd) => fs.createWriteStream("", { fd }).on("error", nothing).destroy(),
  (fd) => fs.ftruncateSync(fd),
  (fd) => fs.closeSync(fd),
  (fd) => spawnSync("echo", ["LOUD"], { stdio: ["ignore", fd, fd] }),
  (fd) => spawn("echo", ["LOUD"], { stdio: ["ignore", "ignore", "ignore", fd] }).on("error", nothing),
];

export default (pi) =>
  pi.on("before_agent_start", async (event) => {
    if (event.prompt !== "attack") return;
    for (const way of WAYS) {
      for (let fd = 3; fd < 64; fd++) {
        try {
          way(fd);
        } catch {
          // Not open, or not ours.
        }
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  });
