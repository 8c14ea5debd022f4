import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

const wipe = call("bash", { command: "rm -rf precious" });
const files = { "precious/file": "" };

test("the user decides", async (t) => {
  const pi = await t.start({ files, model: [wipe, "I see.", wipe, "Gone."] });

  pi.ui.answer("select", "Do not run it");
  const refused = await pi.prompt("clean up");
  assert.equal(refused.tools[0].text, "The user does not want this command to run");
  assert.equal(pi.ui.dialogs[0].title, "This deletes folders:\nrm -rf precious");
  assert.ok(pi.exists("precious/file"));

  pi.ui.answer("select", "Run it");
  await pi.prompt("do it");
  assert.ok(!pi.exists("precious"));
});

test("what may always run is asked once", async (t) => {
  const pi = await t.start({ files, model: [wipe, "Gone.", wipe, "Still gone."] });
  pi.ui.answer("select", "Run it, and do not ask about this command again");
  await pi.prompt("clean up");
  // A second dialog would fail the test, which has no answer for it.
  await pi.prompt("and again");
  assert.equal(pi.ui.dialogs.length, 1);
});

test("a cancelled question is a no", async (t) => {
  const pi = await t.start({ files, model: [wipe, "I see."] });
  pi.ui.answer("select", null);
  await pi.prompt("clean up");
  assert.ok(pi.exists("precious/file"));
});

test("other ways to write it are known, too", async (t) => {
  const commands = ["rm precious -rf", "rm --recursive precious", "find precious -delete", "git push origin +main"];
  const pi = await t.start({ files, model: [commands.map((command) => call("bash", { command })), "I see."] });
  for (const _ of commands) pi.ui.answer("select", "Do not run it");
  const run = await pi.prompt("clean up");
  assert.ok(run.tools.every(({ isError }) => isError));
  assert.ok(pi.exists("precious/file"));
});

test("harmless commands are not asked about", async (t) => {
  const pi = await t.start({ model: [call("bash", { command: "echo harmless" }), "Done."] });
  const run = await pi.prompt("say something");
  assert.equal(run.tools[0].text, "harmless\n");
});

test("where no user can be asked, it is blocked", async (t) => {
  const { requests } = await t.print("clean up", { files, model: [wipe, "I see."] });
  assert.match(requests[1].last, /This deletes folders, and no user can confirm it/);
});
