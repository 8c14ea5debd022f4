//! The types that extension authors install, checked by TypeScript's compiler against the modules
//! of the runtime, the original's examples, our own, and the documentation.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::conformance::program::{NEWEST_VERSION, Program};
use crate::support::{Reference, type_packages};

fn types_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("extension-types")
}

#[test]
fn modules_examples_and_types_fit_together() {
    let reference = Reference::install();
    // Install the examples whose imports the compiler has to resolve.
    for name in ["with-deps", "sandbox", "custom-provider-anthropic"] {
        reference.example(name);
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/extensions");
    let mut command = script("check.mjs");
    command
        .arg("--original")
        .arg(reference.examples())
        .arg(examples);
    let output = run(command);
    let fine = output.lines().filter(|line| line.ends_with(": ok"));
    assert_eq!(fine.count(), 8, "{output}");
}

#[test]
fn fixtures_fit_the_types() {
    let mut command = script("fixtures.mjs");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"));
    assert_eq!(run(command), "fixtures: ok\n");
}

#[test]
fn protocol_types_match_the_schema() {
    assert_eq!(run(script("rpc.mjs")), "rpc.d.ts: ok\n");
}

#[test]
fn exported_names_exist_or_have_a_reason() {
    let reference = Reference::install();
    let mut command = script("names.mjs");
    command.arg(reference.package().parent().unwrap());
    assert_eq!(run(command), "names: ok\n");
}

/// `X.Y.Z` is the version beside which the conformance scenarios run; none of its names may be
/// missing without a reason.
#[test]
fn the_claimed_version_has_all_its_names() {
    let mut command = script("names.mjs");
    command.arg(Program::newest_scope());
    assert_eq!(run(command), "names: ok\n");
    let printed = Command::new(env!("CARGO_BIN_EXE_pi"))
        .arg("--version")
        .output();
    let version = String::from_utf8(printed.unwrap().stdout).unwrap();
    assert_eq!(version, format!("{NEWEST_VERSION}\n"));
}

#[test]
fn documented_names_are_those_that_have_types() {
    assert_eq!(run(script("docs.mjs")), "documentation: ok\n");
}

fn script(name: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(types_folder().join(name));
    command.env("PI_TYPES_PACKAGES", type_packages());
    command
}

/// Runs a command that must succeed and returns its output.
fn run(mut command: Command) -> String {
    let output = command.output().expect("node is installed (scripts/setup)");
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    printed.into_owned()
}
