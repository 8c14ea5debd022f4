import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

const add = (...texts: string[]) => call("todo", { action: "add", texts });
const done = (...numbers: number[]) => call("todo", { action: "done", numbers });

test("the list is kept and shown until all is done", async (t) => {
  const pi = await t.start({ model: [add("plan", "build"), done(1), "One is left.", done(2, 3), done(2), "Done."] });
  await pi.prompt("build it");
  assert.deepEqual(pi.ui.widgets, { todo: ["1. [x] plan", "2. [ ] build"] });
  const { tools } = await pi.prompt("go on");
  assert.equal(tools[0].text, "There is no item 3: the list has 2");
  assert.equal(tools[1].text, "1. [x] plan\n2. [x] build");
  assert.deepEqual(pi.ui.widgets, {});
});

test("it follows the branch, and survives a restart", async (t) => {
  const pi = await t.start({
    // A command that goes back in the tree, as /tree does in the terminal.
    files: {
      ".pi/extensions/back.ts": `export default (pi) => pi.registerCommand("back", {
        handler: async (id, ctx) => void (await ctx.navigateTree(id)),
      });`,
    },
    model: [add("one"), "Noted.", add("two"), "Noted, too."],
  });
  await pi.prompt("first");
  const before = (await pi.entries<{ id: string }>()).at(-1)!;
  await pi.prompt("second");
  assert.deepEqual(pi.ui.widgets.todo, ["1. [ ] one", "2. [ ] two"]);

  await pi.command(`/back ${before.id}`);
  assert.deepEqual(pi.ui.widgets.todo, ["1. [ ] one"]);

  pi.answer(add("three"), "Noted.");
  await pi.prompt("third");
  await pi.restart();
  assert.deepEqual(pi.ui.widgets.todo, ["1. [ ] one", "2. [ ] three"]);
});
