//! Resources that a replaced extension holds or waits for are released.

use std::fs;

use model_server::ModelServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use tokio::time::Instant;

use crate::support::{Home, TIMEOUT, is_running, pause, prompt, until_exists};

fn open_descriptors(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

/// Three descriptors leaked for each child: after some hundred reloads no extension could be
/// loaded.
#[tokio::test]
async fn pipes_of_children_are_closed_with_their_extension() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionHost": "thread" }));
    home.extension("ext.ts", include_str!("fixtures/leaks.ts"));
    let mut rpc = home.rpc(&[]);
    let process = rpc.process_id();
    rpc.ok(json!({ "type": "reload" })).await;
    let before = open_descriptors(process);
    for _ in 0..8 {
        rpc.ok(json!({ "type": "reload" })).await;
    }
    let deadline = Instant::now() + TIMEOUT;
    while open_descriptors(process) > before + 8 {
        let open = open_descriptors(process);
        assert!(Instant::now() < deadline, "{before} were open, now {open}");
        pause(20).await;
    }
    assert_eq!(rpc.close().await.code(), Some(0));
}

/// pi ended before the process of the extensions, and the awaited command kept running.
#[tokio::test]
async fn the_command_of_exec_sync_ends_with_pi() {
    let deaf = "trap '' TERM; ";
    for (host, first, signals) in [
        ("process", "", 1),
        ("process", deaf, 1),
        ("process", deaf, 2),
        ("thread", deaf, 1),
        ("thread", deaf, 2),
    ] {
        let case = format!("{host}, {first:?}, {signals}");
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        let timeouts = json!({ "shutdown": 300 });
        home.settings(json!({ "extensionHost": host, "extensionTimeouts": timeouts }));
        let script = format!("{first}sleep 200 & echo $$ $! > part; mv part pids; wait");
        home.extension(
            "ext.ts",
            &format!(
                r#"import {{ execSync }} from "node:child_process";
                export default (pi) => pi.registerCommand("wait", {{
                    handler: () => execSync({}) }});"#,
                json!(script)
            ),
        );
        let mut rpc = home.rpc(&[]);
        rpc.send(&prompt("/wait").to_string()).await;
        let pids = home.cwd().join("pids");
        until_exists(&pids).await;
        let pids = fs::read_to_string(pids).unwrap();
        let process = Pid::from_raw(rpc.process_id().cast_signed());
        for _ in 0..signals {
            kill(process, Signal::SIGTERM).unwrap();
            // A second signal at the same time counts as the first.
            pause(50).await;
        }
        assert_eq!(rpc.end().await.code(), Some(143), "{case}");
        for pid in pids.split_whitespace() {
            let deadline = Instant::now() + TIMEOUT;
            while is_running(pid.parse().unwrap()) {
                assert!(Instant::now() < deadline, "{case}: {pid} still runs");
                pause(10).await;
            }
        }
    }
}
