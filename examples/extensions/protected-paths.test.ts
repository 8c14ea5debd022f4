import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { call, test } from "@mariozechner/pi-coding-agent/test";

const write = (path: string) => call("write", { path, content: "changed" });

test("protected files stay as they are, whatever they are called", async (t) => {
  const names = [".env", "src/../.env", "link", "package-lock.json", "free.txt"];
  const pi = await t.start({
    files: { ".env": "KEY=1", "package-lock.json": "{}" },
    model: [names.map(write), "I see."],
  });
  symlinkSync(".env", join(pi.project, "link"));
  const { tools } = await pi.prompt("change everything");
  assert.deepEqual(
    tools.filter(({ isError }) => isError).map(({ text }) => text),
    [
      ".env is protected (.env): do not change it",
      ".env is protected (.env): do not change it",
      ".env is protected (.env): do not change it",
      "package-lock.json is protected (package-lock.json): do not change it",
    ],
  );
  assert.equal(pi.read(".env"), "KEY=1");
  assert.equal(pi.read("free.txt"), "changed");
});

test("the project says what is protected", async (t) => {
  const pi = await t.start({
    files: { ".pi/protected": "# contracts\nlegal/**\n" },
    model: [[write("legal/a/terms.md"), write(".env")], "I see."],
  });
  await pi.prompt("write them");
  assert.ok(!pi.exists("legal/a/terms.md"));
  assert.ok(pi.exists(".env"));
});

test("the agent does not say what is protected", async (t) => {
  const policy = call("write", { path: ".pi/protected", content: "" });
  const pi = await t.start({ files: { ".env": "KEY=1" }, model: [[policy, write(".env")], "I see."] });
  await pi.prompt("write them");
  assert.ok(!pi.exists(".pi/protected"));
  assert.equal(pi.read(".env"), "KEY=1");
});

test("a shell command that names one is asked about", async (t) => {
  const show = call("bash", { command: "cat .env" });
  const pi = await t.start({ files: { ".env": "KEY=1" }, model: [show, "No?", show, "KEY is 1."] });
  pi.ui.answer("confirm", false);
  pi.ui.answer("confirm", true);
  await pi.prompt("what is the key?");
  await pi.prompt("you may look");
  assert.equal(
    pi.transcript(),
    `user: what is the key?
dialog confirm "This command names .env, which is protected" "cat .env" -> false
tool bash {"command":"cat .env"} failed: .env is protected, and the user did not allow this command
model: No?
user: you may look
dialog confirm "This command names .env, which is protected" "cat .env" -> true
tool bash {"command":"cat .env"} -> KEY=1
model: KEY is 1.
`,
  );
});
