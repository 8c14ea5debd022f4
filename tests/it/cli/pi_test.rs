//! `pi test` on tests that pass (those of our examples) and on tests that fail.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use crate::support::{Finished, Home};

/// Limit for runs of many tests that each start pi, beside the other tests of this binary.
const RUN_TIMEOUT: Duration = Duration::from_secs(900);

async fn pi_test(home: &Home, arguments: &[&str]) -> Finished {
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.arg("test").args(arguments);
    let output = timeout(RUN_TIMEOUT, command.output()).await;
    let output = output.expect("it ends").unwrap();
    Finished {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[tokio::test]
async fn the_tests_of_our_examples_pass() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/extensions");
    let home = Home::bare();
    // This extension of the user would fail if it were loaded.
    home.extension("broken.ts", "export default 1;");
    let folder = examples.to_str().unwrap();
    let output = pi_test(&home, &[folder, "--timeout", "240000"]).await.ok();
    for file in std::fs::read_dir(&examples).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let test = match name.split_once('.') {
            None => path.join("index.test.ts"),
            Some((stem, "ts")) => examples.join(format!("{stem}.test.ts")),
            Some(_) => continue,
        };
        let listed = output.lines().any(|line| Path::new(line) == test.as_path());
        assert!(listed, "{name} has no test that ran:\n{output}");
    }
    assert!(
        !output.contains("FAILED") && !output.contains("skipped"),
        "{output}"
    );
    assert!(!home.agent_dir().join("cache").exists());
}

const EXTENSION: &str = r#"
export default function (pi) {
  pi.registerCommand("ask", { handler: async (_, ctx) => void (await ctx.ui.confirm("Sure?", "Really")) });
  pi.registerCommand("go", { handler: async () => pi.sendUserMessage("further") });
  pi.registerCommand("throw", { handler: async () => { throw new Error("on purpose"); } });
  pi.registerCommand("hang", { handler: () => new Promise(() => {}) });
  pi.on("agent_end", async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    pi.appendEntry("heard", {});
  });
}
"#;

const TESTS: &str = r#"
import assert from "node:assert/strict";
import { call, fail, test, think } from "@earendil-works/pi-coding-agent/test";

interface Fruit { name: string }

test("passes", async (t) => {
  const echo = (request) => `to ${request.last}`;
  const pi = await t.start({ model: [[think("hm"), "hello"], echo, echo] });
  assert.equal((await pi.prompt("a")).text, "hello");
  assert.equal((await pi.prompt("b")).text, "to b");
  assert.equal((await pi.command("/go")).text, "to further");
  const entries = await pi.entries<{ type: string }>();
  assert.equal(entries.filter(({ type }) => type === "custom").length, 3);
  await pi.reload();
  assert.match(pi.transcript(), /^user: a\nmodel thinks: hm\nmodel: hello\n/);
  assert.match(pi.transcript(), /-- reload\n$/);
});
test("compares", () => {
  const found: Fruit[] = [{ name: "fig" }];
  assert.deepEqual(found, [{ name: "date" }]);
});
test("asks", async (t) => {
  const pi = await t.start();
  await pi.command("/ask");
});
test("throws", async (t) => {
  const pi = await t.start();
  await pi.command("/throw");
});
test("throws as expected", async (t) => {
  const pi = await t.start({ expectErrors: ["on purpose"] });
  await pi.command("/throw");
});
test("says more", async (t) => {
  const pi = await t.start({ model: ["one", "two"] });
  await pi.prompt("a");
});
test("asks too much", async (t) => {
  const pi = await t.start({ model: [call("ls", {})] });
  await pi.prompt("a");
});
test("fails", async (t) => {
  const pi = await t.start({ model: [fail(400, "not that")] });
  assert.match((await pi.prompt("a")).error ?? "", /not that/);
});
test("loses an error", async () => {
  Promise.reject(new Error("lost"));
  await new Promise((resolve) => setTimeout(resolve, 10_000));
});
test("hangs", { timeout: 15_000 }, async (t) => {
  const pi = await t.start();
  await pi.command("/hang");
});
test.skip("comes later", () => {});
"#;

/// The outcome of each test in the report, without durations.
fn outcomes(output: &str) -> Vec<String> {
    let lines = output.lines().filter(|line| line.starts_with("  "));
    lines
        .filter_map(|line| {
            let line = line.strip_prefix("  ")?;
            let (word, name) = line.split_once(' ')?;
            let (word, name) = match name.strip_prefix("run ") {
                Some(name) if word == "not" => ("not run", name),
                _ => (word, name),
            };
            matches!(word, "ok" | "FAILED" | "skipped" | "not run").then(|| {
                let name = name.rsplit_once(" (").map_or(name, |(name, _)| name);
                format!("{word} {}", name.trim())
            })
        })
        .collect()
}

#[tokio::test]
async fn a_failure_shows_its_error_and_line() {
    let home = Home::bare();
    home.file("ext/index.ts", EXTENSION);
    home.file("ext/a.test.ts", TESTS);
    home.file("ext/exits.test.js", EXITS);
    home.file("ext/syntax.test.mts", "let x = ;\n");
    let done = pi_test(&home, &["ext", "--timeout", "240000"]).await;
    assert_eq!(done.status.code(), Some(1), "{done:#?}");
    let output = done.stdout;
    assert_eq!(
        outcomes(&output),
        [
            "ok passes",
            "FAILED compares",
            "FAILED asks",
            "FAILED throws",
            "ok throws as expected",
            "FAILED says more",
            "FAILED asks too much",
            "ok fails",
            "FAILED loses an error",
            "FAILED hangs",
            "skipped comes later",
            "FAILED exits",
            "not run comes too late",
            "FAILED it ended too early",
        ],
        "{output}"
    );
    for text in [
        "    -3     name: 'date'\n    +3     name: 'fig'\n",
        "at ext/a.test.ts:21:10\n      21 |   assert.deepEqual(found, [{ name: \"date\" }]);\n",
        "A dialog that the test has no answer for: confirm \"Sure?\" \"Really\". Call",
        "at ext/a.test.ts:25:12\n",
        "The extension failed (command): Error: on purpose\n",
        "ext/index.ts:5:",
        "The model was not asked for one answer of its script\n",
        "The model cannot answer: it had only 1 answer, and this is request 2, after \"",
        "    lost\n    at ext/a.test.ts:48:",
        "It took longer than 15000 ms:\n      waiting for the end of the command \"/hang\"\n",
        "it ended too early (exit status: 3)\n",
        "It printed:\n  on its way out\n",
        "(exit status: 1)\n",
        "syntax.test.mts:1:9",
        "\n3 passed, 8 failed, 1 skipped, 1 not run, 1 not run to the end in 3 files",
    ] {
        assert!(output.contains(text), "no {text:?} in:\n{output}");
    }
}

#[tokio::test]
async fn a_file_that_ends_early_does_not_pass() {
    let home = Home::bare();
    let import = "import { test } from \"@mariozechner/pi-coding-agent/test\";\n";
    let slow = "test(\"one\", () => new Promise((resolve) => setTimeout(resolve, 50)));\n";
    for (name, then) in [
        (
            "top",
            "throw new Error(\"\\x1b[31mat the top\\x07\");\ntest(\"two\", () => {});\n",
        ),
        (
            "twice",
            "test(\"one\", () => {});\ntest(\"two\", () => {});\n",
        ),
    ] {
        home.file(&format!("{name}.test.js"), &format!("{import}{slow}{then}"));
    }
    let done = pi_test(&home, &["--timeout", "240000"]).await;
    assert_eq!(done.status.code(), Some(1), "{done:#?}");
    let output = done.stdout;
    let expected = [
        "not run one",
        "FAILED it was not read to its end: at the top",
        "not run one",
        "FAILED it was not read to its end: Two tests are called \"one\"",
    ];
    assert_eq!(outcomes(&output), expected, "{output}");
    for place in ["at the top (top.test.js:3:7)", "(twice.test.js:3:1)"] {
        assert!(output.contains(place), "{output}");
    }
    assert!(
        !output.contains('\u{1b}') && !output.contains('\u{7}'),
        "{output:?}"
    );
}

/// The process was killed, and the report did not name a line.
#[tokio::test]
async fn the_line_of_a_test_that_spins_is_reported() {
    let home = Home::bare();
    home.file(
        "parts.ts",
        "interface Nothing {\n  of: this;\n}\n\nexport function grow(n: number): number {\n  \
         while (n > 0) n += 1;\n  return n;\n}\n",
    );
    home.file(
        "spins.test.ts",
        "import { test } from \"@mariozechner/pi-coding-agent/test\";\n\
         import { grow } from \"./parts\";\ntest(\"one\", () => void grow(1));\n\
         test(\"two\", () => {});\n",
    );
    let done = pi_test(&home, &["--timeout", "500"]).await;
    assert_eq!(done.status.code(), Some(1), "{done:#?}");
    let output = done.stdout;
    assert_eq!(outcomes(&output), ["FAILED one", "not run two"], "{output}");
    let place = "and was stopped\n    at parts.ts:6:";
    assert!(output.contains(place), "{output}");
    assert!(output.contains("6 |   while (n > 0) n += 1;"), "{output}");
}

const EXITS: &str = r#"
import { test } from "@mariozechner/pi-coding-agent/test";
test("exits", () => {
  console.log("on its way out");
  process.exit(3);
});
test("comes too late", () => {});
"#;

#[tokio::test]
async fn tests_are_chosen_and_reported_as_json() {
    let home = Home::bare();
    let two = "import { test } from '@mariozechner/pi-coding-agent/test';\n\
               test('one', () => {});\ntest('two', () => { throw new Error('no'); });\n";
    home.file("x.test.ts", two);
    let arguments = ["x.test.ts", "--json", "--filter", "one"];
    let output = pi_test(&home, &arguments).await.ok();
    let report: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        (
            &report["passed"],
            &report["failed"],
            &report["files"][0]["tests"][0]["name"]
        ),
        (&1.into(), &0.into(), &"one".into()),
        "{output}"
    );
    assert_eq!(
        report["files"][0]["tests"].as_array().map(Vec::len),
        Some(1)
    );
    let complaint = pi_test(&home, &["--filter", "three"]).await.failed(1);
    assert_eq!(complaint, "Error: no test has \"three\" in its name\n");
    let complaint = pi_test(&home, &["ext.ts"]).await.failed(1);
    assert!(complaint.starts_with("Error: ext.ts: "), "{complaint}");
    // A test file is not loaded as an extension in any folder.
    home.extension("y.test.ts", "throw new Error('it was loaded');");
    home.extension("y.ts", "export default function () {}");
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    let reload = rpc.ok(serde_json::json!({"type": "reload"})).await;
    assert_eq!(reload["failed"], serde_json::json!([]), "{reload}");
}

/// Such tests passed, or the next test failed in their place; in such a folder no position was
/// shown.
#[tokio::test]
async fn an_unawaited_failure_belongs_to_its_test() {
    let home = Home::bare();
    let folder = home.cwd().join("a b(c%41");
    fs::create_dir_all(&folder).unwrap();
    let tests = r#"import { test } from "@mariozechner/pi-coding-agent/test";
import assert from "node:assert";
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
test("forgets", async () => { assert.rejects(async () => { throw new Error("no"); }, /yes/); });
test("is over", async () => { setTimeout(() => { throw new Error("too late"); }, 5); });
test("innocent", async () => { await sleep(60); });
test("last", async () => { setTimeout(() => { throw new Error("at the end"); }, 5); });
"#;
    fs::write(folder.join("x.test.ts"), tests).unwrap();
    let output = pi_test(&home, &[folder.to_str().unwrap()]).await;
    assert!(!output.status.success());
    let found = ["forgets", "is over", "innocent", "last"].map(|name| {
        let lines = output.stdout.lines();
        let mut lines = lines.filter(|line| line.contains(&format!(" {name} (")));
        lines.next().expect(name).trim().split(' ').next()
    });
    let [failed, ok] = [Some("FAILED"), Some("ok")];
    assert_eq!(found, [failed, failed, ok, failed], "{}", output.stdout);
    for place in ["too late\n    at a b(c%41/x.test.ts:5:56", "x.test.ts:7:53"] {
        assert!(output.stdout.contains(place), "{place}: {}", output.stdout);
    }
}

/// Tests after a top-level `await` were registered too late, and the test before them was blamed.
#[tokio::test]
async fn tests_may_follow_a_top_level_await() {
    let home = Home::bare();
    let head = "import { test } from \"@mariozechner/pi-coding-agent/test\";\n\
        import { readFile } from \"node:fs/promises\";\n\
        const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));\n";
    let read = "await readFile(import.meta.filename, \"utf8\")";
    let bodies = [
        format!(
            "const one = {read}; test(\"a\", () => {{ if (!one) throw 1; }});\n\
             const two = {read}; test(\"b\", () => {{ if (!two) throw 2; }});"
        ),
        "await 1; test(\"a\", () => {}); await sleep(300); test(\"b\", () => {});".into(),
        "test(\"a\", async () => { await sleep(5); }); await sleep(20); test(\"b\", () => {});"
            .into(),
        "await sleep(5); test(\"a\", () => {}); await sleep(5);\n\
         test(\"b\", () => { throw new Error(\"its own\"); });"
            .into(),
        "await sleep(5); test(\"a\", () => {}); await sleep(5); throw new Error(\"at the top\");"
            .into(),
    ];
    for (number, body) in bodies.iter().enumerate() {
        home.file(&format!("{number}.test.ts"), &format!("{head}{body}"));
    }
    let output = pi_test(&home, &["--timeout", "240000"]).await.stdout;
    let mut expected = ["ok a", "ok b"].repeat(3);
    expected.extend(["ok a", "FAILED b"]);
    expected.extend(["not run a", "FAILED it was not read to its end: at the top"]);
    assert_eq!(outcomes(&output), expected, "{output}");
}

#[tokio::test]
async fn a_file_that_exits_the_process_fails_and_lists_its_tests() {
    let home = Home::bare();
    let import = "import { test } from \"@earendil-works/pi-coding-agent/test\";\n";
    let text = format!("{import}test(\"a\", () => {{}});\nprocess.exit(0);");
    home.file("ends.test.ts", &text);
    let done = pi_test(&home, &[]).await;
    assert_eq!(done.status.code(), Some(1), "{done:#?}");
    let output = done.stdout;
    let expected = ["not run a", "FAILED it ended too early"];
    assert_eq!(outcomes(&output), expected, "{output}");
}
