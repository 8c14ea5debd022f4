//! Prompts that are kept waiting.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::compaction::{TURN, keeping, talk};
use crate::support::{Home, Rpc, command, text_of, with_extension};

const PROMPTS: [&str; 6] = ["q0", "q1", "q2", "q3", "q4", "q5"];

/// Says all of them without waiting for a response.
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

async fn heard(rpc: &mut Rpc) -> Vec<String> {
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

/// A summary that takes its time, and has been asked for.
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

/// All of them woke at once.
#[tokio::test]
async fn prompts_that_wait_for_a_compaction_keep_their_order() {
    let (_server, _home, mut rpc) = summarising(Answer::text("The summary.").delay(400)).await;
    say_at_once(&mut rpc).await;
    assert_eq!(heard(&mut rpc).await, PROMPTS);
}

#[tokio::test]
async fn an_input_handler_does_not_change_the_order_of_prompts() {
    let source = r#"export default (pi) => pi.on("input", () => undefined);"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    server.push(Answer::text("Yes.").delay(300));
    server.repeat(Answer::text("Yes."));
    say_at_once(&mut rpc).await;
    assert_eq!(heard(&mut rpc).await, PROMPTS);
}

/// It was said in the session that was left, and its run aborted.
#[tokio::test]
async fn a_prompt_that_waits_for_a_compaction_is_refused_when_the_session_is_left() {
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

/// It came a request late, after one more tool call, or in a run of its own.
#[tokio::test]
async fn what_turn_end_steers_is_in_the_next_request_though_input_handlers_are_asked() {
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
    let told = |index: usize| requests[index].body["messages"].to_string();
    assert_eq!(requests.len(), 3);
    assert!(!told(0).contains("REMINDER"), "{}", told(0));
    assert!(told(1).contains("REMINDER 1"), "{}", told(1));
    assert!(told(2).contains("REMINDER 2"), "{}", told(2));
}

/// An input handler that waits for the end of the run is not waited for for ever.
#[tokio::test]
async fn an_input_handler_that_waits_for_the_run_holds_it_up_once() {
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
