//! Runs the same script against the original's `SessionManager` and ours.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Home, Reference, prompt};

/// Uses a `SessionManager` in every way and reports the results; ids and times, which differ, are
/// numbered.
const EXERCISE: &str = r##"
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const user = (text) => ({ role: "user", content: text, timestamp: 1, more: { kept: 1.5 } });
const assistant = (text) => ({
  role: "assistant", content: [{ type: "text", text }], api: "a", provider: "p", model: "m",
  usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
  stopReason: "stop", timestamp: 2,
});

function plain(value) {
  const names = new Map();
  const name = (found) => {
    if (!names.has(found)) names.set(found, `#${names.size}`);
    return names.get(found);
  };
  const text = JSON.stringify(value, null, 1)
    .replace(/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_/g, "TIME_")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "TIME")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, name)
    .replace(/(?<=")[0-9a-f]{8}(?=\\?")/g, name)
    .replace(/\b1[789]\d{11}\b/g, "NOW");
  return text;
}

const look = (sm) => ({
  id: sm.getSessionId(), file: sm.getSessionFile(), dir: sm.getSessionDir(), cwd: sm.getCwd(),
  persisted: sm.isPersisted(), header: sm.getHeader(), leaf: sm.getLeafId(),
  leafEntry: sm.getLeafEntry(), entries: sm.getEntries(), tree: sm.getTree(),
  branch: sm.getBranch(), name: sm.getSessionName(), children: sm.getChildren(null),
  sameId: sm.sessionId === sm.getSessionId(), context: sm.buildSessionContext(), content: content(sm.getSessionFile()),
});
const content = (file) => (file && existsSync(file) ? readFileSync(file, "utf8").split("\n") : null);
const failed = (work) => {
  try {
    work();
    return "worked";
  } catch {
    return "failed";
  }
};

export default async function exercise(pi, dir) {
  const { SessionManager, buildSessionContext, migrateSessionEntries, parseSessionEntries } = pi;
  const told = {};
  const sm = SessionManager.create("/work/of/mine", join(dir, "own"));
  sm.newSession({ id: "given", parentSession: "/parent.jsonl" });
  sm.appendModelChange("p", "m");
  sm.appendThinkingLevelChange("high");
  const one = sm.appendMessage(user("one"));
  const two = sm.appendMessage(assistant("two"));
  sm.appendCustomEntry("mine", { z: 1, a: [null] });
  sm.appendCustomMessageEntry("mine", "hello", true, { d: 1 });
  sm.appendCustomMessageEntry("mine", [{ type: "text", text: "hidden" }], false);
  sm.appendSessionInfo("  a name ");
  told.open = look(sm);
  const kept = sm.appendMessage(user("kept"));
  sm.appendMessage(assistant("and answered"));
  sm.appendCompaction("summed up", kept, 99, { files: [] }, true);
  told.compacted = look(sm);
  sm.branch(two);
  const label = sm.appendLabelChange(one, "first");
  sm.branch(two);
  sm.appendLabelChange(two, "second");
  sm.branch(two);
  sm.appendLabelChange(two, undefined);
  sm.branch(two);
  const away = sm.branchWithSummary(one, "was away", { n: 1 });
  told.label = [sm.getLabel(one), sm.getLabel(two) ?? null, sm.getEntry(label).targetId === one];
  told.children = sm.getChildren(one).map((entry) => entry.type);
  told.ofOne = sm.getBranch(one);
  sm.branchWithSummary(null, "from the beginning", undefined, true);
  sm.resetLeaf();
  told.reset = [sm.getLeafId(), sm.buildSessionContext()];
  sm.appendMessage(user("again"));
  told.branched = look(sm);
  told.wrong = [
    failed(() => sm.branch("nope")),
    failed(() => sm.appendLabelChange("nope", "x")),
    failed(() => sm.branchWithSummary("nope", "x")),
    failed(() => sm.createBranchedSession("nope")),
  ];

  const file = sm.getSessionFile();
  const again = SessionManager.open(file);
  told.again = look(again);
  again.createBranchedSession(away);
  told.copied = look(again);
  // The original has no file before the model has answered.
  delete told.copied.content;
  told.copied.own = again.getSessionFile() !== file;
  again.appendMessage(user("goes on"));
  again.appendMessage(assistant("there"));
  told.goesOn = look(again);
  again.setSessionFile(file);
  told.back = look(again);

  const forked = SessionManager.forkFrom(file, "/other", join(dir, "forks"));
  told.forked = look(forked);
  told.fromNothing = failed(() => SessionManager.forkFrom(join(dir, "none.jsonl"), "/other", dir));
  told.override = SessionManager.open(file, dir, "/elsewhere").getCwd();
  const recent = SessionManager.continueRecent("/work/of/mine", join(dir, "forks"));
  told.recent = [recent.getSessionFile() === forked.getSessionFile(), recent.getCwd()];
  const none = SessionManager.continueRecent("/work/of/mine", join(dir, "empty"));
  told.none = [none.getEntries(), basename(none.getSessionDir())];

  const memory = SessionManager.inMemory("/m");
  memory.appendMessage(user("kept nowhere"));
  told.memory = look(memory);
  memory.createBranchedSession(memory.getLeafId());
  told.memoryCopy = look(memory);

  const listed = await SessionManager.list("/other", join(dir, "forks"));
  told.list = listed.map((info) => ({ ...info, created: info.created instanceof Date }));
  told.listNone = await SessionManager.list("/other", join(dir, "nothing"));

  const old = [
    { type: "session", id: "old", timestamp: "2025-01-01T00:00:00.000Z", cwd: "/old", more: [1] },
    { type: "message", timestamp: "2025-01-01T00:00:01.000Z", message: user("a"), more: { x: 1 } },
    { type: "message", timestamp: "2025-01-01T00:00:02.000Z", message: assistant("b") },
    { type: "message", timestamp: "2025-01-01T00:00:03.000Z",
      message: { role: "hookMessage", customType: "c", content: "d", display: true, timestamp: 3 } },
    { type: "compaction", timestamp: "2025-01-01T00:00:04.000Z", summary: "s", firstKeptEntryIndex: 2,
      tokensBefore: 7 },
    { type: "message", timestamp: "2025-01-01T00:00:05.000Z", message: user("e") },
  ];
  const versions = { one: old };
  versions.two = structuredClone(old).map((entry, n) => {
    if (n === 0) return { ...entry, version: 2 };
    const { firstKeptEntryIndex, ...rest } = entry;
    const more = firstKeptEntryIndex === undefined ? {} : { firstKeptEntryId: "0000000a" };
    return { ...rest, ...more, id: `0000000${n.toString(16)}`, parentId: n > 1 ? `0000000${n - 1}` : null };
  });
  versions.three = [
    { ...old[0], version: 3, new: true },
    { type: "message", id: "0000000a", parentId: null, timestamp: "2025-01-01T00:00:01.000Z", message: user("a") },
    { type: "mood", weather: { sun: 1e-7 }, id: "0000000b", parentId: "0000000a", timestamp: "2025-01-01T00:00:01.000Z" },
    { type: "message", id: "0000000c", parentId: "0000000b", timestamp: "2025-01-01T00:00:02.000Z", message: assistant("b"), tags: ["x"] },
    { type: "session_info", id: "0000000d", parentId: "0000000c", timestamp: "2025-01-01T00:00:02.000Z", name: "" },
  ];
  for (const [name, entries] of Object.entries(versions)) {
    const path = join(dir, `${name}.jsonl`);
    writeFileSync(path, entries.map((entry) => JSON.stringify(entry)).join("\n") + "\n");
    const opened = SessionManager.open(path);
    told[name] = look(opened);
    opened.createBranchedSession(opened.getLeafId());
    told[`${name} copied`] = look(opened);
    const parsed = parseSessionEntries(content(path).join("\n"));
    const migrated = structuredClone(entries);
    migrateSessionEntries(migrated);
    told[`${name} migrated`] = migrated;
    told[`${name} context`] = [
      buildSessionContext(parsed.slice(1)),
      buildSessionContext(parsed.slice(1), parsed[1].id),
      buildSessionContext(parsed.slice(1), null),
    ];
  }
  return plain(told).replaceAll(dir, "DIR");
}

/// Returns the content of a file that another program wrote.
export function read(pi, dir) {
  const found = readdirSync(dir).filter((name) => name.endsWith(".jsonl")).sort();
  return plain(found.map((name) => look(pi.SessionManager.open(join(dir, name)))));
}
"##;

/// A call of the script that writes its result to a file.
fn call(work: &str, folder: &Path, out: &Path) -> String {
    format!("writeFileSync({out:?}, await {work}(pi, {folder:?}));")
}

/// The file as lines, so that a failed assertion shows single lines.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn imports(script: &Path) -> String {
    format!(
        "import exercise, {{ read }} from {script:?}; import {{ writeFileSync }} from 'node:fs';\n"
    )
}

async fn original(home: &Home, script: &Path, calls: &str) {
    let module = Reference::install().program().with_file_name("index.js");
    let code = format!("import * as pi from {module:?}; {}{calls}", imports(script));
    let mut command = home.command("node");
    command.args(["--input-type=module", "-e", &code]);
    let output = command.output().await.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

async fn ours(home: &Home, script: &Path, calls: &str) {
    home.extension(
        "exercise.js",
        &format!(
            "import * as pi from '@mariozechner/pi-coding-agent'; {}\
             export default (api) => api.registerCommand('exercise', {{\
               handler: async (_, ctx) => {{ {calls} ctx.ui.notify('done'); }} }});",
            imports(script)
        ),
    );
    let mut rpc = home.rpc(&["--no-session", "--provider", "demo", "--model", "demo"]);
    rpc.ok(prompt("/exercise")).await;
    let told = rpc.lines();
    let errors = told.iter().filter(|line| line["type"] == "extension_error");
    let errors: Vec<&Value> = errors.collect();
    assert_eq!(errors, Vec::<&Value>::new());
    rpc.notified("done").await;
    assert!(rpc.close().await.success());
}

fn assert_same(ours: &Path, theirs: &Path) {
    let (ours, theirs) = (lines(ours), lines(theirs));
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[tokio::test]
async fn a_session_manager_does_what_the_original_s_does() {
    let home = Home::bare();
    let script = home.file("exercise.mjs", EXERCISE);
    let cwd = home.cwd().canonicalize().unwrap();
    let path = |name: &str| -> PathBuf { cwd.join(name) };
    for folder in ["theirs", "ours"] {
        fs::create_dir_all(path(folder)).unwrap();
    }
    let (theirs, told) = (path("theirs"), path("theirs.txt"));
    original(&home, &script, &call("exercise", &theirs, &told)).await;
    let (mine, mine_told) = (path("ours"), path("ours.txt"));
    // The original must also read our files as we do.
    let both = call("exercise", &mine, &mine_told)
        + call("read", &theirs.join("own"), &path("theirs-by-us.txt")).as_str()
        + call("read", &mine.join("own"), &path("ours-by-us.txt")).as_str();
    ours(&home, &script, &both).await;
    assert_same(&mine_told, &told);
    let both = call("read", &theirs.join("own"), &path("theirs-by-them.txt"))
        + call("read", &mine.join("own"), &path("ours-by-them.txt")).as_str();
    original(&home, &script, &both).await;
    assert_same(&path("theirs-by-us.txt"), &path("theirs-by-them.txt"));
    assert_same(&path("ours-by-us.txt"), &path("ours-by-them.txt"));
}
