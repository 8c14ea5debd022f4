import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

const project = (script: string) => ({ args: ["--test-command", "sh ./check.sh"], files: { "check.sh": script } });

test("output is shown while the tests run, and its end is what the model gets", async (t) => {
  const pi = await t.start({
    ...project('echo "testing $1"\nseq 1 300\n[ "$1" = good ]\n'),
    model: [[call("run_tests", { filter: "good" })], [call("run_tests", { filter: "b'ad; exit 0" })], "One fails."],
  });
  const { tools: [good, bad] } = await pi.prompt("does it work?");
  assert.match(good.text, /^\[The end of 1\.1KB of output\]\n102\n[^]*\n300\nAll tests passed\.$/);
  assert.match(good.updates.at(-1)!, /\n300$/);
  assert.match(bad.text, /300\nThe tests failed \(exit code 1\)\.$/);
  assert.ok(!bad.isError);
});

test("the model is told to use it", async (t) => {
  const pi = await t.start({ ...project("exit 0"), model: ["I will."] });
  await pi.prompt("hello");
  assert.match(pi.requests[0].system, /run_tests: Run the tests of this project/);
  assert.match(pi.requests[0].system, /use run_tests rather than bash/);
});

test("an abort ends what runs", async (t) => {
  const pi = await t.start({ ...project("echo begun\nsleep 1000 & wait\n"), model: [call("run_tests")] });
  const running = pi.prompt("does it work?");
  await pi.waitFor("tool_execution_update");
  await pi.abort();
  assert.ok((await running).tools[0].isError);
});

test("a project without tests has no such tool", async (t) => {
  const pi = await t.start({ files: { "package.json": { name: "x" } }, model: ["Hello."] });
  await pi.prompt("hello");
  assert.ok(!pi.requests[0].tools.includes("run_tests"));
});
