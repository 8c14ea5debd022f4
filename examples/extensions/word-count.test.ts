import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

const files = { "poem.txt": "F\u00fcnf W\u00f6rter,\nzwei Zeilen: gut\n" };

test("it counts", async (t) => {
  const count = (unit?: string) => call("word_count", { path: "poem.txt", unit });
  const pi = await t.start({ files, model: [[count(), count("lines"), count("letters")], "Five words."] });
  const run = await pi.prompt("how long is the poem?");
  assert.deepEqual(
    run.tools.map(({ text }) => text),
    ["poem.txt has 5 words.", "poem.txt has 2 lines.", "poem.txt has 23 letters."],
  );
  assert.deepEqual(run.tools[1].details, { path: "poem.txt", unit: "lines", count: 2 });
});

test("wrong arguments are the tool's error", async (t) => {
  const pi = await t.start({
    files,
    model: [
      call("word_count", { path: "none.txt" }),
      call("word_count", { path: "poem.txt", unit: "pages" }),
      call("word_count"),
      "I give up.",
    ],
  });
  const { tools } = await pi.prompt("count");
  assert.ok(tools.every(({ isError }) => isError));
  assert.match(tools[0].text, /ENOENT/);
  assert.match(tools[1].text, /unit: must be/);
  assert.match(tools[2].text, /path/);
});
