//! Descriptors that a script closes twice, while threads of pi open files of the disk cache.

use crate::support::{Home, finish};

const MODULES: usize = 200;

/// Ended pi with "IO Safety violation: owned file descriptor already closed". How many of the
/// cache's files the script meets depends on the threads; `files_of_the_program_are_known_by_their_flag`
/// of js-runtime-ext checks what tells them from others.
#[tokio::test]
async fn files_of_the_cache_cannot_be_closed_by_a_script() {
    let home = Home::bare();
    let functions: String = (0..60)
        .map(|number| format!("function f{number}() {{ return {number}; }}\n"))
        .collect();
    for number in 0..MODULES {
        home.file(
            &format!("m{number}.cjs"),
            &format!("exports.number = {number};\n{functions}"),
        );
    }
    let script = home.file(
        "script.cjs",
        include_str!("fixtures/reused-descriptors.cjs"),
    );
    let mut pi = home.command(env!("CARGO_BIN_EXE_pi"));
    pi.arg(script)
        .arg(MODULES.to_string())
        .env("PI_CODING_AGENT", "true");
    let output = finish(pi, "").await.ok();
    let result: serde_json::Value = serde_json::from_str(&output).unwrap();
    let only_refused = result["codes"]
        .as_array()
        .unwrap()
        .iter()
        .all(|code| code == "EBADF");
    assert!(only_refused, "{result}");
}
