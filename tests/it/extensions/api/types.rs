//! The types that extension authors install, checked by TypeScript's compiler: against
//! the modules of the runtime, the original's examples, our own, and the documentation.

use std::fs;
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
    // Those whose imports the compiler has to find.
    for name in ["with-deps", "sandbox", "custom-provider-anthropic"] {
        reference.example(name);
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/extensions");
    let mut command = script("check.mjs");
    command
        .arg("--original")
        .arg(reference.examples())
        .arg(examples);
    let said = run(command);
    let fine = said.lines().filter(|line| line.ends_with(": ok"));
    assert_eq!(fine.count(), 8, "{said}");
}

#[test]
fn the_types_of_the_protocol_are_those_of_its_schema() {
    assert_eq!(run(script("rpc.mjs")), "rpc.d.ts: ok\n");
}

#[test]
fn names_that_the_original_exports_are_there_or_have_a_reason_not_to_be() {
    let reference = Reference::install();
    let mut command = script("names.mjs");
    command.arg(reference.package().parent().unwrap());
    assert_eq!(run(command), "names: ok\n");
}

/// How `X.Y.Z` is chosen: the version that the conformance scenarios run beside, of which
/// no name may be missing without a reason.
#[test]
fn the_version_is_one_whose_names_are_here() {
    let mut command = script("names.mjs");
    command.arg(Program::newest_scope());
    assert_eq!(run(command), "names: ok\n");
    let said = Command::new(env!("CARGO_BIN_EXE_pi"))
        .arg("--version")
        .output();
    let version = String::from_utf8(said.unwrap().stdout).unwrap();
    assert_eq!(version, format!("{NEWEST_VERSION}\n"));
}

#[test]
fn everything_that_has_a_type_is_documented_and_nothing_else() {
    assert_eq!(run(script("docs.mjs")), "documentation: ok\n");
}

fn script(name: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(types_folder().join(name));
    command.env("PI_TYPES_PACKAGES", type_packages());
    command
}

/// Insists on success, and gives what was said.
fn run(mut command: Command) -> String {
    let output = command.output().expect("node is installed (scripts/setup)");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said.into_owned()
}
