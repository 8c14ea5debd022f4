import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

// Few messages are kept, so that a short conversation has something to summarise.
const settings = { compaction: { enabled: true, reserveTokens: 1000, keepRecentTokens: 1 } };

test("the summary is made without a model", async (t) => {
  const pi = await t.start({
    settings,
    files: { "a.txt": "one" },
    model: [call("read", { path: "a.txt" }), call("write", { path: "b.txt", content: "two" }), "Copied.", "And?", "Yes."],
  });
  await pi.prompt("copy a to b");
  await pi.prompt("thank you");
  const { summary } = await pi.rpc<{ summary: string }>("compact");
  assert.equal(
    summary,
    `## What the user asked for
- copy a to b
- thank you

## Files that were changed
- b.txt

## Files that were read
- a.txt

## The last answer
- Copied.`,
  );
  // Three requests for the first prompt, one for the second, none for the summary.
  assert.equal(pi.requests.length, 4);
  await pi.prompt("do you remember?");
  assert.match(pi.requests[4].messages[0].text, /copy a to b/);
});

test("with instructions a model is asked", async (t) => {
  const pi = await t.start({ settings, model: ({ last }) => (last.includes("keep the colours") ? "Red and blue." : "Hm.") });
  await pi.prompt("hello");
  await pi.prompt("how are you?");
  const { summary } = await pi.rpc<{ summary: string }>("compact", { customInstructions: "keep the colours" });
  assert.match(summary, /Red and blue/);
});
