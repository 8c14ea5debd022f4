//! The order of prompts that have to wait.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::compaction::{TURN, keeping, talk};
use crate::support::{Home, Rpc, command, text_of, with_extension};

const PROMPTS: [&str; 6] = ["q0", "q1", "q2", "q3", "q4", "q5"];

/// Sends all prompts without waiting for a response.
async fn say_at_once(rpc: &mut Rpc) {
    let lines = PROMPTS.map(|text| {
        let mut line = json!({ "type": "prompt", "id": text, "message": text });
        if text != "q0" {
            line["streamingBehavior"] = json!("followUp");
        }
        format!("{line}\n")
    });
    rpc.write(lines.concat().as_bytes()).await;
}

async fn prompt_messages(rpc: &mut Rpc) -> Vec<String> {
    let mut heard: Vec<String> = Vec::new();
    while heard.len() < PROMPTS.len() {
        let is_prompt = |line: &Value| {
            line["type"] == "message_end"
                && line["message"]["role"] == "user"
                && text_of(&line["message"]).starts_with('q')
        };
        let line = rpc.wait("a prompt", is_prompt).await;
        heard.push(text_of(&line["message"]));
    }
    heard
}

/// A session with a slow summary that has been requested.
async fn summarising(answer: Answer) -> (ModelServer, Home, Rpc) {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one", "two"]).await;
    server.push(answer);
    server.repeat(Answer::text("Yes."));
    rpc.send(r#"{"type":"compact","id":"c"}"#).await;
    server.received(3).await;
    (server, home, rpc)
}

/// All waiting prompts woke at once.
#[tokio::test]
async fn prompts_that_wait_for_a_compaction_keep_their_order() {
    let (server, _home, mut rpc) = summarising(Answer::text("The summary.").held()).await;
    say_at_once(&mut rpc).await;
    rpc.ok(command("get_state")).await;
    server.release();
    assert_eq!(prompt_messages(&mut rpc).await, PROMPTS);
}

#[tokio::test]
async fn an_input_handler_does_not_change_the_order_of_prompts() {
    let source = r#"export default (pi) => pi.on("input", () => undefined);"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    server.push(Answer::text("Yes.").held());
    server.repeat(Answer::text("Yes."));
    say_at_once(&mut rpc).await;
    for prompt in PROMPTS {
        rpc.response(prompt).await;
    }
    server.release();
    assert_eq!(prompt_messages(&mut rpc).await, PROMPTS);
}

/// The prompt was sent in the replaced session, and its run aborted.
#[tokio::test]
async fn a_prompt_waiting_for_a_compaction_ends_with_the_session() {
    let (server, _home, mut rpc) = summarising(Answer::stall()).await;
    rpc.send(r#"{"type":"prompt","id":"p","message":"Hello"}"#)
        .await;
    rpc.ok(command("get_state")).await;
    rpc.ok(command("new_session")).await;
    let response = rpc
        .wait("the response", |line| {
            line["type"] == "response" && line["id"] == "p"
        })
        .await;
    assert_eq!(response["error"], "Operation aborted");
    assert_eq!(server.requests().len(), 3);
    rpc.run("Hello").await;
    assert_eq!(server.requests().len(), 4);
}

/// The message came one request late, after one more tool call, or in a run of its own.
#[tokio::test]
async fn steering_in_turn_end_joins_the_next_request() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "remind.ts",
        r#"import { setTimeout as pause } from "node:timers/promises";
        export default (pi) => {
            let turns = 0;
            pi.on("input", ({ text }) => pause(text === "REMINDER 2" ? 100 : 0));
            pi.on("turn_end", () => {
                if (++turns <= 2) pi.sendUserMessage(`REMINDER ${turns}`, { deliverAs: "steer" });
            });
        };"#,
    );
    server.push(Answer::tool("bash", json!({"command": "true"})));
    server.push(Answer::text("Done."));
    server.push(Answer::text("Reminded."));
    let mut rpc = home.rpc(&[]);
    let events = rpc.run("go").await;
    let starts = events.iter().filter(|event| event["type"] == "agent_start");
    assert_eq!(starts.count(), 1);
    let requests = server.requests();
    let reported = |index: usize| requests[index].body["messages"].to_string();
    assert_eq!(requests.len(), 3);
    assert!(!reported(0).contains("REMINDER"), "{}", reported(0));
    assert!(reported(1).contains("REMINDER 1"), "{}", reported(1));
    assert!(reported(2).contains("REMINDER 2"), "{}", reported(2));
}

/// The order of prompts does not wait for ever for an input handler that waits for the end of the
/// run.
#[tokio::test]
async fn an_input_handler_that_waits_for_the_run_delays_it_once() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "waits.ts",
        r#"import { setTimeout as pause } from "node:timers/promises";
        export default (pi) => {
            let ended = false;
            pi.on("input", async ({ source }) => {
                while (source === "extension" && !ended) await pause(5);
            });
            pi.on("agent_end", () => { ended = true; });
            pi.on("tool_call", () => pi.sendUserMessage("later", { deliverAs: "steer" }));
        };"#,
    );
    server.push(Answer::tool("bash", json!({"command": "true"})));
    server.push(Answer::text("Done."));
    server.push(Answer::text("And more."));
    let mut rpc = home.rpc(&[]);
    rpc.run("go").await;
    rpc.event("agent_end").await;
    let last = server.last_request().body["messages"].to_string();
    assert!(last.contains("later"), "{last}");
}
