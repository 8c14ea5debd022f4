//! Node and pi in its place are asked the same (`fixtures/*.mjs`); what Node answers is
//! right. The answers have to be those of every Node from 20 on.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PI: &str = env!("CARGO_BIN_EXE_pi");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/node/fixtures")
}

/// In the folder `place`, with a variable that is no UTF-8.
fn program(program: &str, place: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(place)
        .env("BROKEN", OsStr::from_bytes(b"a\xffb"))
        .env("PI_CODING_AGENT", "true")
        .env("PI_CODING_AGENT_DIR", place.join("agent"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn asked(name: &str, questions: &str) -> Output {
    let place = tempfile::tempdir().unwrap();
    let answered = program(name, place.path())
        .arg(folder().join(questions))
        .output()
        .unwrap();
    let told = text(&answered.stderr);
    assert!(answered.status.success(), "{name}: {told}");
    answered
}

pub(crate) fn answers_of_node(questions: &str) -> String {
    text(&asked("node", questions).stdout)
}

fn answers_are_those_of_node(questions: &str) {
    let answers = |name| text(&asked(name, questions).stdout);
    assert_eq!(answers(PI), answers("node"));
}

#[tokio::test]
async fn files_children_and_connections_are_those_of_node() {
    answers_are_those_of_node("questions.mjs");
}

#[tokio::test]
async fn what_is_loaded_when_it_is_used_is_that_of_node() {
    answers_are_those_of_node("stand_ins.mjs");
}

#[tokio::test]
async fn what_is_done_with_numbers_of_descriptors_is_what_node_does() {
    answers_are_those_of_node("descriptors.mjs");
}

/// `process.env.X` threw for what is no UTF-8, a child's first word was a path, and the
/// times of files were whole milliseconds.
#[tokio::test]
async fn variables_words_of_children_and_times_are_those_of_node() {
    answers_are_those_of_node("environment.mjs");
}

/// `deflate` and two encodings came as they were, of several members of gzip only the first.
/// The 101st header was an error, a dispatcher of undici was refused.
#[tokio::test]
async fn encodings_headers_and_dispatchers_are_those_of_node() {
    answers_are_those_of_node("network.mjs");
}

/// A child that answered while it was asked stood still for ever, as did one that wrote too
/// much behind a shell. Descriptors that a script inherits were none.
#[tokio::test]
async fn children_that_are_waited_for_and_inherited_files_are_those_of_node() {
    answers_are_those_of_node("children.mjs");
}

/// `new URL()` had no code, and what is missing in packages was named in Deno's words.
#[tokio::test]
async fn what_is_not_found_is_told_as_in_node() {
    answers_are_those_of_node("modules.mjs");
}

/// Some had another code or none, a stream without `duplex` was sent.
#[tokio::test]
async fn errors_of_what_cannot_be_done_are_those_of_node() {
    answers_are_those_of_node("errors.mjs");
}

#[tokio::test]
async fn contexts_of_scripts_are_those_of_node() {
    answers_are_those_of_node("contexts.mjs");
}

/// Texts in objects had double quotes, and what was deeper than two was there.
#[tokio::test]
async fn what_is_printed_reads_as_in_node() {
    let [ours, nodes] = [PI, "node"].map(|name| asked(name, "console.mjs"));
    assert_eq!(text(&ours.stdout), text(&nodes.stdout));
    assert_eq!(text(&ours.stderr), text(&nodes.stderr));
}

/// What comes out of the words, and how it ends.
fn said(name: &str, place: &Path, words: &[&str], input: &str) -> (String, bool) {
    let mut child = program(name, place)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A program that does not read it may be over.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    (text(&output.stdout), output.status.success())
}

/// All of these but `-e` were taken for words of pi's own.
#[tokio::test]
async fn options_of_node_are_those_of_node() {
    let place = tempfile::tempdir().unwrap();
    for (name, code) in [
        ("before.mjs", "globalThis.before = 'imported';"),
        ("before.cjs", "globalThis.before = 'required';"),
        (
            "told.mjs",
            "console.log(globalThis.before, process.execArgv, process.argv.slice(2));",
        ),
        (
            "forks.cjs",
            "require('node:child_process').fork('./told.mjs', ['forked'], { execArgv: ['--import', './before.mjs'] });",
        ),
        ("broken.js", "let x = ;"),
        ("typed.mjs", "const x: number = 1;"),
        ("returns.cjs", "if (module.parent) return; var let = 010;"),
    ] {
        std::fs::write(place.path().join(name), code).unwrap();
    }
    let typed = "import { sep } from 'node:path'; console.log(sep, process.argv.length);";
    for (words, input) in [
        (&["-p", "process.argv.length"][..], ""),
        (
            &["-p", "[1, 'a', typeof fs.readFileSync, require('os').EOL]"],
            "",
        ),
        (&["-pe", "1 + 1"], ""),
        (
            &[
                "-p",
                "process.execArgv.concat(process.argv.slice(1))",
                "--",
                "a",
                "b",
            ],
            "",
        ),
        (&["-p", "process.exitCode = 3; throw new Error('no')"], ""),
        (&["--import", "./before.mjs", "told.mjs", "a"], ""),
        (
            &["--require", "./before.cjs", "--no-warnings", "told.mjs"],
            "",
        ),
        (
            &["-r", "./before.cjs", "--import=./before.mjs", "told.mjs"],
            "",
        ),
        (&["--import", "./nothing.mjs", "told.mjs"], ""),
        (&["forks.cjs"], ""),
        (
            &[
                "-e",
                "require('node:child_process').fork('./told.mjs', ['of code'])",
            ],
            "",
        ),
        (&["--check", "told.mjs"], ""),
        (&["--check", "broken.js"], ""),
        (&["--check", "typed.mjs"], ""),
        (&["--check", "returns.cjs"], ""),
        (&["-c", "broken.js"], ""),
        (&["--check", "nothing.js"], ""),
        (
            &["-", "a"],
            "console.log(typeof require, process.argv.slice(1));",
        ),
        (&["--input-type=module"], typed),
        (&["--no-warnings"], "console.log(process.execArgv);"),
    ] {
        let [ours, nodes] = [PI, "node"].map(|name| said(name, place.path(), words, input));
        assert_eq!(ours, nodes, "{words:?}");
    }
}

#[tokio::test]
async fn an_option_of_node_that_is_missing_is_named() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("x.mjs"), "console.log('ran')").unwrap();
    for option in [
        "--test",
        "--watch",
        "--env-file=x",
        "--experimental-loader=x",
    ] {
        let refused = program(PI, place.path())
            .args([option, "x.mjs"])
            .output()
            .unwrap();
        let name = option.split('=').next().unwrap();
        assert_eq!(
            (
                text(&refused.stdout),
                text(&refused.stderr),
                refused.status.code()
            ),
            (
                String::new(),
                format!(
                    "Error: {name} is an option of node that pi does not have: scripts run here without it\n"
                ),
                Some(9),
            )
        );
    }
}
