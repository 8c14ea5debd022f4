//! Every action of an extension in every event (`tests/matrix`): a fixed tenth of the cells is
//! compared with both originals. `./x matrix` plays all of them.

use std::path::Path;

use tokio::process::Command;

#[tokio::test]
async fn actions_in_events_do_what_the_originals_do() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/matrix/run.mjs");
    let mut command = Command::new("node");
    command
        .arg(script)
        .args(["--slice", "--binary", env!("CARGO_BIN_EXE_pi")])
        .kill_on_drop(true);
    // The other value of `extensionHost` (CONTRIBUTING.md).
    if let Ok(host) = std::env::var("PI_TEST_EXTENSION_HOST") {
        command.args(["--extension-host", &host]);
    }
    let done = command.output().await.expect("node starts");
    let printed = String::from_utf8_lossy(&done.stdout);
    let complained = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{printed}\n{complained}");
}
