import assert from "node:assert/strict";
import { test } from "@mariozechner/pi-coding-agent/test";

test("notes are kept in the session", async (t) => {
  const pi = await t.start({ model: ["Hello."] });
  await pi.command("/notes");
  await pi.command("/note buy milk");
  pi.ui.answer("input", " call Ann ");
  await pi.command("/note");
  assert.deepEqual(pi.ui.statuses, { notes: "notes: 2" });

  await pi.prompt("hello");
  await pi.restart();
  await pi.command("/notes");
  assert.equal(
    pi.transcript(),
    `notify info: There are no notes in this session.
status notes: notes: 1
dialog input "Note" -> " call Ann "
status notes: notes: 2
user: hello
model: Hello.
-- restart
status notes: notes: 2
notify info:
  1. buy milk
  2. call Ann
`,
  );
});

test("another session has none of them", async (t) => {
  const pi = await t.start();
  await pi.command("/note buy milk");
  await pi.rpc("new_session");
  await pi.command("/notes");
  assert.equal(pi.ui.notifications.at(-1)?.message, "There are no notes in this session.");
});

test("the model gets them", async (t) => {
  const pi = await t.start({ model: ["Hello.", "I know."] });
  await pi.prompt("hello");
  await pi.command("/note buy milk");
  await pi.prompt("what is to be done?");
  const [before, after] = pi.requests;
  assert.doesNotMatch(before.system, /notes/);
  assert.match(after.system, /The user's notes:\n- buy milk/);
});
