//! Output of scripts that use `node:test`, as `process.execPath` runs them.

use serde_json::Value;

use crate::support::{Home, finish};

/// Returns the TAP output without durations, and whether the script succeeded.
async fn tap(script: &str) -> (bool, String) {
    let home = Home::bare();
    let script = format!(
        "import test, {{ after, afterEach, before, beforeEach, describe, it }} from \"node:test\";\nimport assert from \"node:assert\";\n{script}"
    );
    let file = home.file("tests.mjs", &script);
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.arg(&file).env("PI_CODING_AGENT", "true");
    let finished = finish(command, "").await;
    let file = format!("file://{}", file.display());
    let lines = finished.stdout.lines();
    let lines = lines.filter(|line| !line.contains("duration_ms"));
    let text = lines.collect::<Vec<_>>().join("\n").replace(&file, "FILE");
    (finished.status.success(), text)
}

fn numbers(text: &str) -> Vec<(&str, u64)> {
    let counts = text.lines().filter_map(|line| line.strip_prefix("# "));
    let counts = counts.filter_map(|line| line.split_once(' '));
    counts
        .filter_map(|(name, count)| {
            Some((name, serde_json::from_str::<Value>(count).ok()?.as_u64()?))
        })
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The output was `not ok` and nothing else.
#[tokio::test]
async fn a_failed_test_shows_its_error() {
    let (well, text) = tap(r#"
        test("equal", () => { assert.equal(1, 2, "it's # one"); });
        test("thrown", () => { throw new TypeError("two\nlines"); });
        test("later", () => new Promise(() => setTimeout(() => { throw new Error("unseen"); })));
        test("text", async () => { throw "only text"; });"#)
    .await;
    assert!(!well);
    let output = r#"TAP version 13
# Subtest: equal
not ok 1 - equal
  ---
  type: 'test'
  failureType: 'testCodeFailure'
  error: 'it''s # one'
  code: 'ERR_ASSERTION'
  name: 'AssertionError'
  expected: 2
  actual: 1
  operator: '=='
  stack: |-
    NodeTestContext.<anonymous> (FILE:4:38)
  ...
# Subtest: thrown
not ok 2 - thrown
  ---
  type: 'test'
  failureType: 'testCodeFailure'
  error: |-
    two
    lines
  code: 'ERR_TEST_FAILURE'
  name: 'TypeError'
  stack: |-
    NodeTestContext.<anonymous> (FILE:5:38)
  ...
# Subtest: later
not ok 3 - later
  ---
  type: 'test'
  failureType: 'testCodeFailure'
  error: 'unseen'
  code: 'ERR_TEST_FAILURE'
  stack: |-
    Timeout._onTimeout (FILE:6:72)
  ...
# Subtest: text
not ok 4 - text
  ---
  type: 'test'
  failureType: 'testCodeFailure'
  error: 'only text'
  code: 'ERR_TEST_FAILURE'
  ...
1..4
# tests 4
# suites 0
# pass 0
# fail 4
# cancelled 0
# skipped 0
# todo 0"#;
    assert_eq!(text, output);
}

/// Hooks were not run, and a group passed whatever its tests did.
#[tokio::test]
async fn hooks_run_and_groups_fail_with_their_tests() {
    let (well, text) = tap(r#"
        const log = [];
        describe("hooks", () => {
            before(() => log.push("before"));
            beforeEach(() => log.push("each"));
            afterEach(() => log.push("after each"));
            it("one", () => log.push("one"));
            it("two", () => log.push("two"));
        });
        describe("group", () => { it("bad", () => assert.ok(false)); it("good", () => {}); });
        test("parent", async (t) => {
            t.beforeEach(() => log.push("of parent"));
            await t.test("child", () => { throw new Error("of the child"); });
            t.diagnostic("noted");
        });
        test("skipped", { skip: "why" }, () => log.push("never"));
        test("skips itself", (t) => t.skip());
        test("todo", { todo: true }, () => { log.push("todo"); throw new Error("not yet"); });
        test("slow", { timeout: 20 }, () => new Promise((done) => setTimeout(done, 60000).unref()));
        after(() => console.log("log: " + log));"#)
    .await;
    assert!(!well);
    let lines: Vec<&str> = text.lines().collect();
    let log = "log: before,each,one,after each,each,two,after each,of parent,todo";
    assert!(lines.contains(&log), "{text}");
    let outcomes = lines.iter().filter(|line| {
        let line = line.trim_start();
        line.starts_with("ok ") || line.starts_with("not ok ") || line.starts_with("1..")
    });
    let outcomes: Vec<&str> = outcomes.copied().collect();
    let output = [
        "    ok 1 - one",
        "    ok 2 - two",
        "    1..2",
        "ok 1 - hooks",
        "    not ok 1 - bad",
        "    ok 2 - good",
        "    1..2",
        "not ok 2 - group",
        "    not ok 1 - child",
        "    1..1",
        "not ok 3 - parent",
        "ok 4 - skipped # SKIP why",
        "ok 5 - skips itself # SKIP",
        "not ok 6 - todo # TODO",
        "not ok 7 - slow",
        "1..7",
    ];
    assert_eq!(outcomes, output, "{text}");
    assert!(lines.contains(&"  error: '1 subtest failed'"), "{text}");
    assert!(lines.contains(&"# noted"), "{text}");
    let counts = [
        ("tests", 10),
        ("suites", 2),
        ("pass", 3),
        ("fail", 3),
        ("cancelled", 1),
        ("skipped", 2),
        ("todo", 1),
    ];
    assert_eq!(numbers(&text), counts, "{text}");
}

/// The event loop is empty before the test has ended, and it was not reported at all.
#[tokio::test]
async fn a_test_without_pending_work_is_cancelled() {
    let (well, text) = tap(r#"test("for ever", () => new Promise(() => {}));"#).await;
    assert!(!well);
    assert!(text.contains("not ok 1 - for ever"), "{text}");
    assert_eq!(numbers(&text), [("tests", 1), ("cancelled", 1)], "{text}");
}
