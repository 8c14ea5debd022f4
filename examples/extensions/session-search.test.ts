import assert from "node:assert/strict";
import { call, test } from "@mariozechner/pi-coding-agent/test";

test("the user finds a session and goes back to it", async (t) => {
  const pi = await t.start({ model: ["Let us use Postgres.", "Blue it is."] });
  await pi.prompt("Which database?");
  const first = await pi.rpc<{ sessionFile: string }>("get_state");
  await pi.rpc("new_session");
  await pi.prompt("Which colour?");

  await pi.command("/find mysql");
  assert.equal(pi.ui.notifications[0].message, 'No message of another session here contains "mysql".');

  pi.ui.answer({ title: 'Sessions with "database POSTGRES"' }, ({ options }) => options![0]);
  await pi.command("/find database POSTGRES");
  assert.match(pi.ui.dialogs[0].options![0], /^1\. .* Which database\? \| Which database\? Let us use Postgres\.$/);
  const now = await pi.rpc<{ sessionFile: string }>("get_state");
  assert.equal(now.sessionFile, first.sessionFile);
});

test("so does the model", async (t) => {
  const pi = await t.start({
    model: [
      "Let us use Postgres.",
      [call("search_sessions", { words: "database" }), call("search_sessions", { words: "colour" })],
      "Postgres.",
    ],
  });
  await pi.prompt("Which database?");
  await pi.rpc("new_session");
  const { tools } = await pi.prompt("What did we decide?");
  assert.match(tools[0].text, /Let us use Postgres/);
  assert.equal(tools[1].text, "That was not said.");
});
