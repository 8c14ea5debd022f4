//! What happens when somebody changes their mind: aborts before a run has begun,
//! sessions that change under a prompt, programs that are told to end.

use std::time::Duration;

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, prompt, with_extension};

#[tokio::test]
async fn an_abort_while_an_input_handler_waits_asks_no_model() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("input", async (event, ctx) => {
            ctx.ui.notify("waiting");
            await new Promise(() => {});
        });"#,
    )
    .await;
    rpc.send(&json!({"id": "p", "type": "prompt", "message": "go"}).to_string())
        .await;
    rpc.notified("waiting").await;
    rpc.ok(json!({"type": "abort"})).await;
    let answer = rpc
        .wait("the answer to the prompt", |line| line["id"] == "p")
        .await;
    assert_eq!(answer["success"], false);
    assert_eq!(answer["error"], "Operation aborted");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn an_abort_while_an_extension_asks_leaves_the_session_as_it_is() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("session_before_switch", async (event, ctx) => {
            if (!(await ctx.ui.confirm("destroy?", "really"))) return { cancel: true };
        });"#,
    )
    .await;
    let before = rpc.ok(json!({"type": "get_state"})).await;
    rpc.send(&json!({"id": "n", "type": "new_session"}).to_string())
        .await;
    rpc.wait("the question", |line| line["method"] == "confirm")
        .await;
    rpc.ok(json!({"type": "abort"})).await;
    let answer = rpc.wait("the answer", |line| line["id"] == "n").await;
    assert_eq!(answer["data"]["cancelled"], true);
    let after = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(before["sessionId"], after["sessionId"]);
}

#[tokio::test]
async fn an_abort_during_new_session_is_also_for_the_prompt_that_waits() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("session_before_switch", async (event, ctx) => {
            if (!(await ctx.ui.confirm("destroy?", "really"))) return { cancel: true };
        });"#,
    )
    .await;
    rpc.send(&json!({"type": "new_session"}).to_string()).await;
    rpc.wait("the question", |line| line["method"] == "confirm")
        .await;
    rpc.send(&json!({"id": "p", "type": "prompt", "message": "go"}).to_string())
        .await;
    rpc.ok(json!({"type": "abort"})).await;
    let answer = rpc
        .wait("the answer to the prompt", |line| line["id"] == "p")
        .await;
    assert_eq!(answer["error"], "Operation aborted");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_prompt_during_new_session_goes_to_the_new_one() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("session_shutdown", () =>
            new Promise((resolve) => setTimeout(resolve, 300)));"#,
    )
    .await;
    server.push(Answer::tool("bash", json!({"command": "true"})));
    server.push(Answer::text("Done."));
    rpc.send(&json!({"type": "new_session"}).to_string()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    rpc.ok(prompt("go")).await;
    rpc.event("agent_end").await;
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    let roles: Vec<&str> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
}

#[tokio::test]
async fn a_question_at_the_end_does_not_keep_the_program() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("session_shutdown", (event, ctx) =>
            ctx.ui.confirm("leave?", "really"));"#,
    )
    .await;
    rpc.ok(json!({"type": "get_state"})).await;
    rpc.close().await;
}

#[tokio::test]
async fn a_question_at_the_start_does_not_keep_the_program() {
    let (_server, _home, rpc) = with_extension(
        r#"export default (pi) => pi.on("session_start", (event, ctx) =>
            ctx.ui.confirm("begin?", "really"));"#,
    )
    .await;
    rpc.close().await;
}

#[tokio::test]
async fn messages_of_extensions_keep_their_order() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("many", { handler: async () => {
            for (const n of [1, 2, 3, 4]) pi.sendUserMessage(`m${n}`, { deliverAs: "followUp" });
        } });"#,
    )
    .await;
    for _ in 0..4 {
        server.push(Answer::text("ok"));
    }
    rpc.ok(prompt("/many")).await;
    server.wait_until_received(4).await;
    rpc.event("agent_end").await;
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    let said: Vec<String> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"][0]["text"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(said, ["m1", "m2", "m3", "m4"]);
}

#[tokio::test]
async fn a_shell_result_from_during_a_run_is_kept_when_the_program_ends() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let mut rpc = home.rpc(&[]);
    server.push(Answer::stall());
    rpc.ok(prompt("go")).await;
    server.wait_until_received(1).await;
    rpc.ok(json!({"type": "bash", "command": "echo precious"}))
        .await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    let file = state["sessionFile"].as_str().unwrap().to_string();
    rpc.close().await;
    let stored = std::fs::read_to_string(file).unwrap();
    assert!(stored.contains("precious"), "{stored}");
}

#[tokio::test]
async fn the_latest_shell_command_is_the_one_that_is_aborted() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let mut rpc = home.rpc(&[]);
    rpc.send(&json!({"id": "long", "type": "bash", "command": "sleep 30"}).to_string())
        .await;
    rpc.send(&json!({"id": "short", "type": "bash", "command": "true"}).to_string())
        .await;
    rpc.send(&json!({"id": "last", "type": "bash", "command": "sleep 31"}).to_string())
        .await;
    rpc.wait("the short one", |line| line["id"] == "short")
        .await;
    rpc.ok(json!({"type": "abort_bash"})).await;
    let last = rpc.wait("the last one", |line| line["id"] == "last").await;
    assert_eq!(last["data"]["cancelled"], true);
    rpc.close().await;
}

/// It was a matter of luck which of the two was heard first.
#[tokio::test]
async fn a_gate_that_aborts_and_blocks_has_its_reason_told() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("tool_call", (event, ctx) => {
            ctx.abort();
            return { block: true, reason: "BLOCKED by the gate" };
        });"#,
    )
    .await;
    for _ in 0..8 {
        server.push(Answer::tool("bash", json!({"command": "echo 1"})));
        rpc.ok(prompt("go")).await;
        let end = rpc.event("tool_execution_end").await;
        assert_eq!(end["result"]["content"][0]["text"], "BLOCKED by the gate");
        rpc.event("agent_settled").await;
    }
}
