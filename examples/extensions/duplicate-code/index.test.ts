import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

const passage = Array.from({ length: 8 }, (_, index) => `  step(${index});`).join("\n");

test("it finds what stands in two files", async (t) => {
  const pi = await t.start({
    files: {
      "src/a.ts": `export function a() {\n${passage}\n}\n`,
      "src/b.ts": `// another file\n\nfunction b() {\n${passage}\n  more();\n}\n`,
      "node_modules/c.js": passage,
      "notes.md": passage,
    },
    model: [call("find_duplicates"), "There is one.", call("find_duplicates", { lines: 10 }), "There is none."],
  });
  const [found] = (await pi.prompt("what stands there twice?")).tools;
  assert.equal(found.text, "8 lines: src/a.ts:2, src/b.ts:4");
  assert.deepEqual(found.updates, ["2 files read"]);
  const [longer] = (await pi.prompt("and longer ones?")).tools;
  assert.equal(longer.text, "Nothing stands there twice.");
});

test("an abort ends the thread", async (t) => {
  const line = "x = x + 1; ".repeat(20);
  const many = Array.from({ length: 2_000 }, (_, file) => [`src/${file}.js`, `// ${file}\n${`${line}\n`.repeat(80)}`]);
  const pi = await t.start({ files: Object.fromEntries(many), model: [call("find_duplicates")] });
  const running = pi.prompt("what stands there twice?");
  await pi.waitFor("tool_execution_update");
  await pi.abort();
  const [tool] = (await running).tools;
  assert.ok(tool.isError);
  assert.match(tool.text, /aborted/);
});
