import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

// The scripted model costs $1 per million tokens in, $2 per million out.
const look = { content: call("bash", { command: "echo looked >> log" }), inputTokens: 600_000 };
const args = ["--budget", "1"];

test("the user is asked when the budget is used up", async (t) => {
  const pi = await t.start({ args, contextWindow: 10_000_000, model: [look, look, look, "Done."] });
  pi.ui.answer("confirm", true);
  await pi.prompt("look around");
  assert.deepEqual(
    pi.ui.dialogs.map(({ title, message }) => [title, message]),
    [["This session has cost $1.20", "Go on until $2.00?"]],
  );
  assert.deepEqual(pi.ui.statuses, { budget: "$1.80 of $2.00" });
});

test("a no ends the run", async (t) => {
  const pi = await t.start({ args, contextWindow: 10_000_000, model: [look, look] });
  pi.ui.answer("confirm", false);
  await pi.prompt("look around");
  assert.equal(pi.requests.length, 2);
  // The call of the second response did not run.
  assert.equal(pi.read("log"), "looked\n");
});

test("it stops where no user can be asked", async (t) => {
  const { requests } = await t.print("look around", { args, contextWindow: 10_000_000, model: [look, look] });
  assert.equal(requests.length, 2);
});

test("without the flag nothing happens", async (t) => {
  const pi = await t.start({ contextWindow: 10_000_000, model: [look, look, "Done."] });
  assert.equal((await pi.prompt("look around")).text, "Done.");
});

test("a budget that is no number is an error", async (t) => {
  await t.start({ args: ["--budget", "much"], expectErrors: ["--budget much: say how many dollars"] });
});
