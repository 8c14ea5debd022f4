import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

const remember = (text: string) => call("remember", { text });
const recall = (words: string) => call("recall", { words });
const withoutDays = (text: string) => text.replace(/\d{4}-\d\d-\d\d/g, "<day>");

test("what was remembered is found in a later session", async (t) => {
  const pi = await t.start({
    model: [
      [remember("Indent with tabs"), remember("The staging server is called otter"), remember("Deploy on Mondays")],
      "Noted.",
      [recall("otter server"), recall('"unbalanced OR AND (')],
      "It is called otter.",
    ],
  });
  await pi.prompt("three things to know");
  await pi.rpc("new_session");
  const { tools } = await pi.prompt("where is staging?");
  assert.deepEqual(
    tools.map(({ text }) => withoutDays(text)),
    [`#2 (<day>, ${pi.project}) The staging server is called otter`, "Nothing is known about that."],
  );
});

test("the user can make it forget", async (t) => {
  const pi = await t.start({ model: [remember("Deploy on Mondays"), "Noted.", recall("deploy"), "I do not know."] });
  await pi.prompt("we deploy on Mondays");
  pi.ui.answer("confirm", false);
  pi.ui.answer({ method: "confirm", title: "Forget 1 of them?" }, true);
  await pi.command("/forget mondays");
  await pi.command("/forget mondays");
  await pi.command("/forget");
  assert.equal(pi.ui.notifications[0].message, "Nothing is known about that.");
  const { tools } = await pi.prompt("when do we deploy?");
  assert.equal(tools[0].text, "Nothing is known about that.");
});
