//! Members and events of newer versions in the stream of 0.67, and the capability that withholds
//! the events from clients that fail on unknown ones.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, command, finish, idle, prompt, with_extension};

const EXTENSION: &str = include_str!("fixtures/newer-events.ts");

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

#[tokio::test]
async fn a_run_has_the_members_of_newer_versions() {
    let (server, _home, mut rpc) = with_extension(EXTENSION).await;
    server.push(Answer::tools([("count", json!({})), ("hidden", json!({}))]).usage(70, 7));
    server.push(Answer::text("Done."));
    let events = rpc.run("count").await;
    let updates = of_type(&events, "message_update");
    assert!(
        updates
            .iter()
            .all(|update| update["usage"] == update["message"]["usage"])
    );
    let steps = updates
        .iter()
        .map(|update| &update["assistantMessageEvent"]);
    let starts: Vec<&Value> = steps
        .filter(|step| step["type"] == "toolcall_start")
        .collect();
    for (start, name) in starts.iter().zip(["count", "hidden"]) {
        let index = start["contentIndex"].as_u64().unwrap() as usize;
        assert_eq!(start["id"], start["partial"]["content"][index]["id"]);
        assert!(start["id"].is_string(), "{start}");
        assert_eq!(start["toolName"], name);
    }
    assert_eq!(starts.len(), 2);
    let ends = of_type(&events, "tool_execution_end");
    assert!(
        ends.iter().all(|end| end["durationMs"].is_u64()),
        "{ends:?}"
    );
    assert_eq!(ends[0]["result"]["structuredContent"], json!({"count": 3}));
    // A handler may have replaced the content.
    assert_eq!(ends[1]["result"]["content"][0]["text"], "not 4");
    assert_eq!(ends[1]["result"].get("structuredContent"), None);
    assert_eq!(events.last().unwrap()["willRetry"], false);
}

#[tokio::test]
async fn a_tool_that_did_not_run_has_no_duration() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::tool("nobody_has_it", json!({})));
    server.push(Answer::text("Oh."));
    let events = rpc.run("go").await;
    assert_eq!(
        of_type(&events, "tool_execution_end")[0].get("durationMs"),
        None
    );
}

#[tokio::test]
async fn agent_end_of_a_failed_attempt_announces_the_retry() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::text("half a thought").then_error("Overloaded"));
    server.push(Answer::text("Here again."));
    rpc.ok(prompt("go")).await;
    rpc.event("agent_settled").await;
    let lines = rpc.lines();
    let ends = of_type(&lines, "agent_end");
    let will_retry: Vec<&Value> = ends.iter().map(|end| &end["willRetry"]).collect();
    assert_eq!(will_retry, [true, false]);
}

#[tokio::test]
async fn changes_of_the_session_have_events() {
    let (_server, _home, mut rpc) = with_extension(EXTENSION).await;
    rpc.ok(json!({"type": "set_session_name", "name": "notes"}))
        .await;
    let named = rpc.event("session_info_changed").await;
    assert_eq!(
        named,
        json!({"type": "session_info_changed", "name": "notes"})
    );
    rpc.ok(json!({"type": "set_thinking_level", "level": "high"}))
        .await;
    let level = rpc.event("thinking_level_changed").await;
    assert_eq!(
        level,
        json!({"type": "thinking_level_changed", "level": "high"})
    );
    rpc.ok(prompt("/note")).await;
    let appended = rpc.event("entry_appended").await;
    let entries = rpc.ok(command("get_entries")).await;
    let stored = entries["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(appended["entry"], *stored);
    assert_eq!(stored["data"], json!({"said": "\u{e9}"}));
}

#[tokio::test]
async fn an_edit_reports_its_patch() {
    let (server, home, mut rpc) = idle().await;
    home.file("notes.txt", "one\ntwo\nthree\n");
    let edits = json!([{"oldText": "two", "newText": "2"}]);
    server.push(Answer::tool(
        "edit",
        json!({"path": "notes.txt", "edits": edits}),
    ));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    assert_eq!(
        of_type(&events, "tool_execution_end")[0]["result"]["details"],
        json!({
            "diff": " 1 one\n-2 two\n+2 2\n 3 three",
            "patch": "--- notes.txt\n+++ notes.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
            "firstChangedLine": 2,
        })
    );
}

/// All event types that version 0.67 sends.
const KNOWN_TO_067: [&str; 18] = [
    "response",
    "agent_start",
    "agent_end",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "queue_update",
    "compaction_start",
    "compaction_end",
    "auto_retry_start",
    "auto_retry_end",
    "extension_error",
    "extension_ui_request",
];

/// Causes each event that 0.67 does not have. Returns the types of lines that 0.67 does not know.
async fn go_through(server: &ModelServer, rpc: &mut Rpc) -> Vec<String> {
    server.push(Answer::text("Fine."));
    rpc.run("go").await;
    rpc.ok(json!({"type": "bash", "command": "echo hi"})).await;
    rpc.ok(json!({"type": "set_session_name", "name": "x"}))
        .await;
    rpc.ok(json!({"type": "set_thinking_level", "level": "high"}))
        .await;
    rpc.ok(prompt("/note")).await;
    rpc.ok(command("wait_for_idle")).await;
    let lines = rpc.lines();
    let kinds = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap().to_owned());
    kinds
        .filter(|kind| !KNOWN_TO_067.contains(&kind.as_str()))
        .collect()
}

#[tokio::test]
async fn newer_events_can_be_withheld_from_clients_of_067() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext.ts", EXTENSION);
    let mut rpc = home.rpc(&[]);
    let all = go_through(&server, &mut rpc).await;
    for kind in [
        "agent_settled",
        "bash_execution_update",
        "session_info_changed",
        "entry_appended",
    ] {
        assert!(
            all.iter().any(|one| one == kind),
            "{kind} is not in {all:?}"
        );
    }
    rpc.close().await;

    let mut rpc = home.rpc(&["--rpc-capabilities", "events067"]);
    assert_eq!(go_through(&server, &mut rpc).await, [""; 0]);
    rpc.close().await;

    let mut pi = home.command(env!("CARGO_BIN_EXE_pi"));
    pi.args(["--mode", "rpc"])
        .env("PI_RPC_CAPABILITIES", "events067");
    let mut rpc = Rpc::start(pi);
    assert_eq!(go_through(&server, &mut rpc).await, [""; 0]);
    rpc.close().await;

    let mut rpc = home.rpc(&[]);
    let hello = rpc
        .ok(json!({"type": "hello", "capabilities": ["events067", "seq"]}))
        .await;
    assert_eq!(hello["enabled"], json!(["seq", "events067"]));
    assert_eq!(go_through(&server, &mut rpc).await, [""; 0]);
    // Events that are not sent have no number, so that none seems to be missing.
    let lines = rpc.lines();
    let numbers: Vec<u64> = lines
        .iter()
        .filter_map(|line| line["seq"].as_u64())
        .collect();
    let expected: Vec<u64> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected);
    rpc.close().await;
}

#[tokio::test]
async fn an_unknown_capability_is_refused_by_name() {
    let home = Home::bare();
    let arguments = ["--mode", "rpc", "--rpc-capabilities", "seq,wings"];
    let output = home.run(&arguments, "").await.failed(1);
    assert!(
        output.contains("wings") && output.contains("events067"),
        "{output}"
    );
    let mut pi = home.command(env!("CARGO_BIN_EXE_pi"));
    pi.args(["--mode", "rpc"])
        .env("PI_RPC_CAPABILITIES", "seq, event067");
    let output = finish(pi, "").await.failed(1);
    assert!(
        output.contains("PI_RPC_CAPABILITIES has \"event067\"") && output.contains("events067"),
        "{output}"
    );
}
