//! Processes that extensions have started end with the extensions.

use model_server::ModelServer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Home, Rpc, TIMEOUT, is_running, pause, prompt, with_extension};

/// Starts children in every way and reports their ids. The children run longer than any test waits,
/// but not for ever: a leftover child keeps open what it inherited.
const PARENT: &str = include_str!("fixtures/child-processes.ts");

/// Returns the children that must end and the one that stays.
async fn start(rpc: &mut Rpc) -> (Vec<u64>, u64) {
    rpc.ok(prompt("/start")).await;
    let children = |line: &Value| {
        let text = line["message"].as_str()?.strip_prefix("children ")?;
        serde_json::from_str::<Value>(text).ok()
    };
    let reported = |line: &Value| children(line).is_some();
    let line = rpc.wait("the children", reported).await;
    let started = children(&line).unwrap();
    let numbers = started["ends"].as_array().unwrap();
    let ends: Vec<u64> = numbers.iter().filter_map(Value::as_u64).collect();
    assert_eq!(ends.len(), 6, "{started}");
    assert!(ends.iter().all(|child| is_running(*child)), "{started}");
    (ends, started["stays"].as_u64().unwrap())
}

async fn all_end(children: &[u64], cause: &str) {
    let deadline = Instant::now() + TIMEOUT;
    while let Some(child) = children.iter().position(|child| is_running(*child)) {
        let late = Instant::now() > deadline;
        assert!(!late, "{cause}: child {child} is left");
        pause(20).await;
    }
}

async fn all_but_one_end(ends: &[u64], stays: u64, cause: &str) {
    all_end(ends, cause).await;
    assert!(is_running(stays), "{cause}");
    kill(Pid::from_raw(stays.try_into().unwrap()), Signal::SIGKILL).unwrap();
}

/// Grandchildren and detached children of `spawn` ran until the machine was switched off.
#[tokio::test]
async fn children_of_replaced_extensions_end_unless_detached() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    // The usual limits apply: shorter ones would stop the start of the children on a busy machine.
    home.extension("ext.ts", PARENT);
    let mut rpc = home.rpc(&[]);
    let causes = [
        json!({"type": "reload"}),
        json!({"type": "new_session"}),
        prompt("/spin"),
    ];
    for cause in causes {
        let (ends, stays) = start(&mut rpc).await;
        // The response may be an error: the command was stopped.
        rpc.request(cause.clone()).await;
        all_but_one_end(&ends, stays, &cause.to_string()).await;
    }
}

#[tokio::test]
async fn children_of_extensions_end_with_pi_unless_detached() {
    let (_server, _home, mut rpc) = with_extension(PARENT).await;
    let (ends, stays) = start(&mut rpc).await;
    assert_eq!(rpc.close().await.code(), Some(0));
    all_but_one_end(&ends, stays, "the end").await;
}

/// Some children were asked to end; then pi was gone, and the others ran for ever.
#[tokio::test]
async fn many_children_all_end_with_pi() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionHost": "thread" }));
    home.extension(
        "ext.ts",
        r#"import { spawn } from "node:child_process";
        export default (pi) => pi.registerCommand("start", { handler: async (args, ctx) => {
            const children = Array.from({ length: 200 }, () => spawn("sleep", ["200"]).pid);
            ctx.ui.notify(JSON.stringify(children));
        } });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/start")).await;
    let reported = rpc.ui("notify").await;
    let children: Vec<u64> = serde_json::from_str(reported["message"].as_str().unwrap()).unwrap();
    assert_eq!(children.len(), 200);
    assert_eq!(rpc.close().await.code(), Some(0));
    all_end(&children, "the end").await;
}
