//! `pi test` when a test itself is wrong, when a helper fails, and when the run is ended: the
//! report names the cause, and no process is left.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{sleep, timeout};

use crate::support::{Finished, Home};

/// Limit for runs of a few tests that each start pi, beside the other tests of this binary.
const RUN_TIMEOUT: Duration = Duration::from_secs(300);
const FILE_POLL_INTERVAL: Duration = Duration::from_millis(20);

fn command(home: &Home, arguments: &[&str]) -> tokio::process::Command {
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.arg("test").args(arguments);
    command
}

async fn pi_test(home: &Home, arguments: &[&str]) -> Finished {
    let output = timeout(RUN_TIMEOUT, command(home, arguments).output()).await;
    let output = output.expect("it ends").unwrap();
    Finished {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[tokio::test]
async fn a_failure_in_a_helper_also_shows_the_line_of_the_test() {
    let home = Home::bare();
    home.file("x.ts", "export default () => {};");
    home.file(
        "helper.ts",
        "import assert from \"node:assert/strict\";\n\
         export function same(a: number, b: number) {\n\
         \x20 assert.equal(a, b);\n\
         }\n\
         export async function says(pi, text) {\n\
         \x20 assert.equal((await pi.prompt(\"hi\")).text, text);\n\
         }\n",
    );
    home.file(
        "x.test.ts",
        "import { test } from \"@mariozechner/pi-coding-agent/test\";\n\
         import { same, says } from \"./helper.ts\";\n\
         test(\"plain\", () => {\n\
         \x20 same(1, 2);\n\
         });\n\
         test(\"awaited\", async (t) => {\n\
         \x20 const pi = await t.start({ model: [\"no\"] });\n\
         \x20 await says(pi, \"yes\");\n\
         });\n\
         test(\"own\", () => { throw new Error(\"here\"); });\n",
    );
    let output = pi_test(&home, &["x.test.ts", "--timeout", "240000"]).await;
    assert_eq!(output.status.code(), Some(1));
    for text in [
        "at helper.ts:3:10\n      3 |   assert.equal(a, b);\n    called at x.test.ts:4:3\n      4 |   same(1, 2);\n",
        "at helper.ts:6:10\n",
        "called at x.test.ts:8:3\n      8 |   await says(pi, \"yes\");\n",
        "    here\n    at x.test.ts:10:27\n      10 | test(\"own\"",
    ] {
        assert!(
            output.stdout.contains(text),
            "no {text:?} in\n{}",
            output.stdout
        );
    }
    assert_eq!(
        output.stdout.matches("called at").count(),
        2,
        "{}",
        output.stdout
    );
    let json = pi_test(&home, &["x.test.ts", "--json", "--filter", "plain"]).await;
    let report: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    let from = &report["files"][0]["tests"][0]["error"]["from"];
    assert_eq!(from["line"], 4, "{report}");
}

/// Misspelt members were ignored, and a misspelt `which` matched every dialog.
#[tokio::test]
async fn a_misspelt_member_is_an_error_that_names_it() {
    let home = Home::bare();
    home.file("x.ts", "export default () => {};");
    let cases = [
        (
            "t.start({ modle: [] })",
            "t.start has no option \"modle\". The options are: model, files, agentFiles, settings, \
             args, env, extensions, contextWindow, expectErrors",
        ),
        (
            "t.start({ model: \"hello\" })",
            "t.start: model must be an array of answers, or a function, not 'hello'",
        ),
        (
            "t.start({ extensions: \"./x.ts\" })",
            "t.start: extensions must be an array of strings, not './x.ts'",
        ),
        (
            "t.print(\"hi\", { expectErrors: [\"x\"] })",
            "t.print has no option \"expectErrors\". The options are: model, files, agentFiles, \
             settings, args, env, extensions, contextWindow, stdin",
        ),
        (
            "pi.prompt(\"hi\", { image: [] })",
            "pi.prompt has no option \"image\". The options are: images",
        ),
        (
            "pi.ui.answer([\"select\", \"confirm\"], \"a\")",
            "pi.ui.answer: which dialog is meant must be one of \"select\", \"confirm\", \"input\", \
             \"editor\", a regular expression for the title, or { method, title }, not \
             [\"select\",\"confirm\"]",
        ),
        (
            "pi.ui.always({ methods: \"select\" }, \"a\")",
            "pi.ui.always: which has no option \"methods\". The options are: method, title",
        ),
        (
            "pi.ui.ignore({ method: \"choose\" })",
            "pi.ui.ignore: which: method must be one of \"select\", \"confirm\", \"input\", \
             \"editor\", not 'choose'",
        ),
        (
            "pi.ui.answer(\"select\", [\"a\"])",
            "pi.ui.answer: the answer must be a string, a boolean for confirm, null, which cancels, \
             or a function, not [\"a\"]",
        ),
        (
            "pi.ui.answer(\"select\")",
            "pi.ui.answer: the answer must be a string, a boolean for confirm, null, which cancels, \
             or a function, not nothing",
        ),
        (
            "call(\"bash\", \"ls\")",
            "call(\"bash\"): the arguments must be an object, not 'ls'",
        ),
        (
            "(pi.answer({ content: \"a\", inputToken: 5 }), pi.prompt(\"hi\"))",
            "The model cannot answer: An answer of the model has no option \"inputToken\". The \
             options are: content, inputTokens, outputTokens, stop",
        ),
    ];
    let mut source =
        "import { call, test } from \"@mariozechner/pi-coding-agent/test\";\n".to_owned();
    for (index, (code, _)) in cases.iter().enumerate() {
        let pi = match code.contains("pi.") {
            true => "const pi = await t.start();",
            false => "",
        };
        source += &format!("test(\"case {index}\", async (t) => {{ {pi} await {code}; }});\n");
    }
    home.file("x.test.ts", &source);
    home.file(
        "y.test.ts",
        "import { test } from \"@mariozechner/pi-coding-agent/test\";\n\
         test(\"slow\", { timeuot: 5 }, () => {});\n",
    );
    let output = pi_test(&home, &["--timeout", "240000", "--json"]).await;
    let report: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let tests = report["files"][0]["tests"].as_array().unwrap();
    assert_eq!(tests.len(), cases.len());
    for (index, ((code, expected), test)) in cases.iter().zip(tests).enumerate() {
        let message = test["error"]["message"].as_str().unwrap_or_default();
        let message = message.strip_prefix("TypeError: ").unwrap_or(message);
        assert_eq!(message, *expected, "{code}");
        // The test begins in the second line of the file.
        assert_eq!(test["error"]["line"], index + 2, "{code}: {test}");
    }
    let broken = report["files"][1]["error"].as_str().unwrap();
    assert!(
        broken.contains("test(\"slow\") has no option \"timeuot\". The options are: timeout"),
        "{broken}"
    );
}

/// Writes the ids of all processes to a file: pi, the shell that its tool runs, and the children of
/// that shell.
const NOTES: &str = r#"
import { appendFileSync } from "node:fs";
export default function (pi) {
  appendFileSync(process.env.NOTES, `${process.pid}\n`);
  pi.on("session_start", () => appendFileSync(process.env.NOTES, `${process.ppid}\n`));
}
"#;

/// A test that runs code while a tool runs.
const BUSY: &str = r#"
import { call, test } from "@mariozechner/pi-coding-agent/test";
const notes = `${import.meta.dirname}/notes`;
const run = (then) => async (t) => {
  const shell = `echo $$ >> ${notes}; sleep 600 & echo $! >> ${notes}; echo ready >> ${notes}; wait`;
  const pi = await t.start({ env: { NOTES: notes }, model: [call("bash", { command: shell })] });
  void pi.prompt("go").catch(() => {});
  await pi.waitFor("tool_execution_start");
  await then(pi);
};
"#;

/// The noted processes, without the test runner itself.
fn noted(notes: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(notes).unwrap_or_default();
    let numbers = text.lines().filter_map(|line| line.parse().ok());
    numbers.map(Pid::from_raw).collect()
}

fn lives(process: Pid) -> bool {
    // A zombie has ended, too.
    let status = fs::read_to_string(format!("/proc/{process}/stat"));
    match status {
        Ok(status) => !status
            .rsplit(") ")
            .next()
            .unwrap_or_default()
            .starts_with('Z'),
        Err(_) => !Path::new("/proc/self").exists() && kill(process, None).is_ok(),
    }
}

/// Waits until every noted process has ended.
async fn all_gone(notes: &Path) {
    let processes = noted(notes);
    assert!(processes.len() >= 3, "{processes:?}");
    let gone = async {
        while processes.iter().any(|process| lives(*process)) {
            sleep(FILE_POLL_INTERVAL).await;
        }
    };
    let gone = timeout(Duration::from_secs(30), gone).await;
    assert!(gone.is_ok(), "one of {processes:?} is still there");
}

async fn ready(notes: &Path, times: usize) {
    let there = async {
        let count = || {
            let text = fs::read_to_string(notes).unwrap_or_default();
            text.lines().filter(|line| *line == "ready").count()
        };
        while count() < times {
            sleep(FILE_POLL_INTERVAL).await;
        }
    };
    timeout(RUN_TIMEOUT, there).await.expect("the tools run");
}

const UNTIL_READY: &str = r#"
import { readFileSync } from "node:fs";
const until = async (times) => {
  while (readFileSync(notes, "utf8").split("ready\n").length <= times) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};
"#;

#[tokio::test]
async fn a_failed_test_leaves_no_process() {
    let home = Home::bare();
    home.file("x.ts", NOTES);
    let tests = r#"
test("throws", run(async () => { await until(1); throw new Error("on purpose"); }));
test("takes too long", { timeout: 20_000 }, run(() => new Promise(() => {})));
test("ends the process", run(async () => { await until(3); process.exit(3); }));
"#;
    home.file("x.test.ts", &format!("{BUSY}{UNTIL_READY}{tests}"));
    let output = pi_test(&home, &["x.test.ts", "--timeout", "240000"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:#?}");
    for text in [
        "on purpose",
        "It took longer than 20000 ms",
        "it ended too early",
    ] {
        assert!(output.stdout.contains(text), "{text}: {}", output.stdout);
    }
    let notes = home.cwd().join("notes");
    ready(&notes, 3).await;
    all_gone(&notes).await;
}

/// Ctrl-C in a terminal reaches all processes; a signal from a program reaches only the runner.
#[tokio::test]
async fn a_signal_to_the_runner_ends_all_its_processes() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let home = Home::bare();
        home.file("x.ts", NOTES);
        let waits = "test(\"waits\", { timeout: 600_000 }, run(() => new Promise(() => {})));\n\
                     test(\"comes next\", () => { throw new Error(\"it was begun\"); });\n";
        home.file("x.test.ts", &format!("{BUSY}{waits}"));
        home.file(
            "y.test.ts",
            &format!("{BUSY}{waits}").replace("t.start({", "t.start({ extensions: [\"./x.ts\"],"),
        );
        let mut command = command(&home, &["--jobs", "2"]);
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let runner = command.spawn().unwrap();
        let process = Pid::from_raw(runner.id().unwrap().cast_signed());
        let notes = home.cwd().join("notes");
        ready(&notes, 2).await;
        kill(process, signal).unwrap();
        let output = timeout(RUN_TIMEOUT, runner.wait_with_output()).await;
        let output = output.expect("it ends").unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{printed}");
        assert!(!printed.contains("it was begun"), "{printed}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("Interrupted"));
        all_gone(&notes).await;
    }
}
