import assert from "node:assert/strict";
import { test } from "@mariozechner/pi-coding-agent/test";

const program = (command: string) => ({ args: ["--model", "command/program"], env: { PI_COMMAND_MODEL: command } });

test("what the program prints is the answer", async (t) => {
  const pi = await t.start(program("tee question.txt | grep -c . ; echo lines"));
  const run = await pi.prompt("How many lines is this?");
  assert.match(run.text, /^\d+\nlines\n$/);
  assert.equal(run.stopReason, "stop");
  assert.match(pi.read("question.txt"), /\[User\]: How many lines is this\?/);

  await pi.prompt("And now?");
  assert.match(pi.read("question.txt"), /How many lines[^]*lines[^]*And now\?/);
});

test("what it complains about is the error", async (t) => {
  const pi = await t.start({ ...program("echo out of order >&2; exit 1"), settings: { retry: { enabled: false } } });
  const run = await pi.prompt("hello");
  assert.equal(run.error, "out of order");
});

test("an abort ends it", async (t) => {
  const pi = await t.start(program("echo begun; exec sleep 1000"));
  const running = pi.prompt("hello");
  await pi.waitFor("message_update", ({ assistantMessageEvent }) => assistantMessageEvent.type === "text_delta");
  await pi.abort();
  const run = await running;
  assert.equal(run.stopReason, "aborted");
  assert.equal(run.text, "begun\n");
});

test("without a command there is no such model", async (t) => {
  const pi = await t.start();
  const { models } = await pi.rpc<{ models: { provider: string }[] }>("get_available_models");
  assert.ok(models.every(({ provider }) => provider !== "command"));
});
