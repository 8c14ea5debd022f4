//! Asks Node, and pi in its place, the same questions (`fixtures/*.mjs`): Node's answers are right.
//! The answers must be equal in all versions of Node from 20 on.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PI: &str = env!("CARGO_BIN_EXE_pi");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/node/fixtures")
}

/// A command in the folder `place`, with an environment variable that is not UTF-8.
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

fn run_questions(name: &str, questions: &str) -> Output {
    let place = tempfile::tempdir().unwrap();
    let answered = program(name, place.path())
        .arg(folder().join(questions))
        .output()
        .unwrap();
    let reported = text(&answered.stderr);
    assert!(answered.status.success(), "{name}: {reported}");
    answered
}

pub(crate) fn answers_of_node(questions: &str) -> String {
    text(&run_questions("node", questions).stdout)
}

fn answers_are_those_of_node(questions: &str) {
    let answers = |name| text(&run_questions(name, questions).stdout);
    assert_eq!(answers(PI), answers("node"));
}

#[tokio::test]
async fn files_children_and_connections_match_node() {
    answers_are_those_of_node("questions.mjs");
}

#[tokio::test]
async fn lazily_loaded_modules_match_node() {
    answers_are_those_of_node("stand_ins.mjs");
}

#[tokio::test]
async fn descriptor_numbers_behave_as_in_node() {
    answers_are_those_of_node("descriptors.mjs");
}

/// `process.env.X` threw for values that are not UTF-8, the first argument of a child became a
/// path, and file times were whole milliseconds.
#[tokio::test]
async fn environment_arguments_and_file_times_match_node() {
    answers_are_those_of_node("environment.mjs");
}

/// `deflate` and two more encodings were not decoded, and of several gzip members only the first
/// was. The 101st header was an error, and dispatchers of undici were refused.
#[tokio::test]
async fn encodings_headers_and_dispatchers_match_node() {
    answers_are_those_of_node("network.mjs");
}

/// A child that answered during a synchronous call hung for ever, as did a child that wrote too
/// much behind a shell. Inherited descriptors of scripts were missing.
#[tokio::test]
async fn synchronous_children_and_inherited_files_match_node() {
    answers_are_those_of_node("children.mjs");
}

/// Errors of `new URL()` had no code, and missing parts of packages were reported in Deno's words.
#[tokio::test]
async fn errors_about_missing_things_match_node() {
    answers_are_those_of_node("modules.mjs");
}

/// Some errors had another code or none, and a stream without `duplex` was sent.
#[tokio::test]
async fn errors_of_impossible_operations_match_node() {
    answers_are_those_of_node("errors.mjs");
}

#[tokio::test]
async fn async_contexts_match_node() {
    answers_are_those_of_node("contexts.mjs");
}

/// Strings in objects had double quotes, and levels below the second were printed.
#[tokio::test]
async fn console_output_matches_node() {
    let [ours, nodes] = [PI, "node"].map(|name| run_questions(name, "console.mjs"));
    assert_eq!(text(&ours.stdout), text(&nodes.stdout));
    assert_eq!(text(&ours.stderr), text(&nodes.stderr));
}

/// Runs a program with these arguments and returns its output and whether it succeeded.
fn run_script(name: &str, place: &Path, words: &[&str], input: &str) -> (String, bool) {
    let mut child = program(name, place)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A program that does not read stdin may have ended.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    (text(&output.stdout), output.status.success())
}

/// All of these options except `-e` were taken for options of pi.
#[tokio::test]
async fn command_line_options_match_node() {
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
        let [ours, nodes] = [PI, "node"].map(|name| run_script(name, place.path(), words, input));
        assert_eq!(ours, nodes, "{words:?}");
    }
}

#[tokio::test]
async fn an_unsupported_node_option_is_named() {
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
