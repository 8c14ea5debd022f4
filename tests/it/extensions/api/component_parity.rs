//! Compares the lines that components draw with the original's (`tests/component-parity`).

use std::path::{Path, PathBuf};

use model_server::ModelServer;
use serde_json::json;
use tokio::process::Command;

use crate::support::{Home, Reference, Rpc, finish};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/component-parity")
}

/// A terminal with colours and no other features.
fn with_colours(mut command: Command) -> Command {
    command
        .envs([("TERM", "xterm-256color"), ("COLORTERM", "truecolor")])
        .envs([("FORCE_COLOR", "3"), ("TZ", "UTC")]);
    command
}

#[tokio::test]
async fn components_draw_the_lines_of_the_original() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    // An unoptimized build on a busy machine takes longer for some cases than users would wait.
    home.settings(json!({"extensionTimeouts": {"handler": 600_000, "spin": 600_000}}));
    let (original, ours) = (
        home.cwd().join("original.json"),
        home.cwd().join("ours.json"),
    );

    let mut command = with_colours(home.command("node"));
    command.arg(cases().join("reference.mjs"));
    command.arg(Reference::install().package()).arg(&original);
    finish(command, "").await.ok();

    let mut command = with_colours(home.command(env!("CARGO_BIN_EXE_pi")));
    command
        .args(["--mode", "rpc", "--extension"])
        .arg(cases().join("ours.mjs"));
    command.env("PI_PARITY_OUTPUT", &ours);
    let mut rpc = Rpc::start(command);
    while !ours.exists() {
        // Each notification is a sign of progress, so that a slow machine is not taken for a hang.
        rpc.ui("notify").await;
    }

    let mut command = home.command("node");
    command
        .arg(cases().join("compare.mjs"))
        .args([&original, &ours]);
    finish(command, "").await.ok();
}
