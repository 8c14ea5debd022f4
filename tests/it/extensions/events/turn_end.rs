//! Proposals of handlers of `turn_end` and `agent_before_settle`: entries for the session, and one
//! more request, as in newer versions of the original.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, prompt};

/// The texts of the last request, without the system prompt.
fn request_texts(server: &ModelServer) -> Vec<String> {
    let messages = server.last_request().body["messages"].clone();
    let text = |message: &Value| match &message["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_string(),
    };
    messages.as_array().unwrap().iter().map(text).collect()
}

async fn entries(rpc: &mut Rpc) -> Vec<Value> {
    let entries = rpc.ok(json!({"type": "get_entries"})).await["entries"].clone();
    entries.as_array().unwrap().clone()
}

#[tokio::test]
async fn turn_end_replaces_an_answer_and_continues() {
    let server = ModelServer::start().await;
    server.push(Answer::text("I will not."));
    server.push(Answer::text("Gladly."));
    let home = Home::new(&server);
    home.extension(
        "again.ts",
        include_str!("fixtures/turn-end/turn-end-replaces-an-answer-and-continues.ts"),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("Sing!")).await;
    rpc.notified(r#"["completed",[],false,[],"I will not.",2,2,0,false,false]"#)
        .await;
    rpc.notified(r#"[["custom","context_edit","custom_message"],true,["user","custom"],"custom_message",true]"#)
        .await;
    rpc.event("agent_end").await;
    assert_eq!(request_texts(&server), ["Sing!", "Think again."]);
    assert_eq!(server.requests().len(), 2);
    let kinds: Vec<Value> = entries(&mut rpc)
        .await
        .iter()
        .map(|one| one["type"].clone())
        .collect();
    let last = &kinds[kinds.len() - 6..];
    assert_eq!(
        json!(last),
        json!([
            "message",
            "message",
            "custom",
            "context_edit",
            "custom_message",
            "message"
        ])
    );
    // The file has the replaced answer, too.
    server.push(Answer::text("La."));
    assert_eq!(rpc.answer_to("And now?").await, "La.");
    assert_eq!(
        request_texts(&server),
        ["Sing!", "Think again.", "Gladly.", "And now?"]
    );
}

#[tokio::test]
async fn agent_before_settle_continues_the_run() {
    let server = ModelServer::start().await;
    server.push(Answer::text("Done."));
    server.push(Answer::text("Really done."));
    let home = Home::new(&server);
    home.extension(
        "settle.ts",
        include_str!("fixtures/turn-end/agent-before-settle-continues-the-run.ts"),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("Work!")).await;
    let mut seen = Vec::new();
    loop {
        let event = rpc.wait("an event", |_| true).await;
        match event["type"].as_str().unwrap() {
            kind @ ("agent_start" | "agent_end" | "agent_settled") => seen.push(kind.to_string()),
            "message_end" if event["message"]["role"] == "custom" => seen.push("custom".into()),
            "extension_ui_request" => seen.push(event["message"].as_str().unwrap().to_string()),
            _ => {}
        }
        if seen.last().is_some_and(|last| last == "settled") {
            break;
        }
    }
    seen.retain(|one| one != "agent_settled");
    assert_eq!(
        seen,
        [
            "agent_start",
            "agent_end",
            "settle completed 1",
            "custom",
            "agent_start",
            "agent_end",
            "settle completed 0",
            "settled"
        ]
    );
    assert_eq!(request_texts(&server), ["Work!", "Done.", "Are you sure?"]);
    assert_eq!(server.last_request().body["system"][0]["text"], "Be exact.");
    // In print mode only the end of the program waits for the run.
    for text in ["One.", "Two."] {
        server.push(Answer::text(text));
    }
    let output = home.run(&["-p", "Go!"], "").await.ok();
    assert_eq!(output.trim(), "Two.");
}

#[tokio::test]
async fn an_unusable_proposal_is_reported_and_earlier_ones_hold() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "wrong.ts",
        r#"let turn = 0;
        export default (pi) => {
          pi.on("turn_end", () => { if (turn === 0) return { entries: [{ type: "custom", customType: "good" }] }; });
          for (const entries of [7, [{ type: "message" }], [{ type: "context_edit", targetId: "nobody", replacement: null }]]) {
            pi.on("turn_end", () => { if (turn === 0) return { entries }; });
          }
          pi.on("turn_end", () => { if (turn++ === 0) return { continue: true }; });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("Go!")).await;
    // Effects of handlers are reported beside the run.
    let mut errors = Vec::new();
    while errors.len() < 4 {
        let error = rpc.event("extension_error").await;
        assert_eq!(error["event"], "turn_end");
        errors.push(error["error"].as_str().unwrap().to_string());
    }
    for part in [
        "entries must be an array",
        r#"entries[0]: `type` is "custom" or "custom_message" or "context_edit" or "compaction", not "message""#,
        "nobody",
        "the last message is the model's answer",
    ] {
        assert!(
            errors.iter().any(|error| error.contains(part)),
            "{errors:?}"
        );
    }
    assert_eq!(server.requests().len(), 1);
    assert!(
        entries(&mut rpc)
            .await
            .iter()
            .any(|one| one["customType"] == "good")
    );
}

/// The custom message after it hid the failed answer.
#[tokio::test]
async fn a_failed_answer_is_retried_after_turn_end_adds_a_message() {
    let server = ModelServer::start().await;
    server.push(Answer::text("half a thought").then_error("Overloaded"));
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.settings(json!({"retry": {"baseDelayMs": 1}}));
    home.extension(
        "note.ts",
        r#"export default (pi) => {
          pi.on("turn_end", (event) => event.outcome === "error" && ({
            entries: [{ type: "custom_message", customType: "note", content: "It failed.", display: false }] }));
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("Go!")).await;
    rpc.event("auto_retry_end").await;
    assert_eq!(request_texts(&server), ["Go!", "It failed."]);
}

/// The user presses Escape while a handler hangs.
#[tokio::test]
async fn an_abort_ends_the_wait_before_settling() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "hang.ts",
        r#"export default (pi) => {
          pi.on("agent_before_settle", async (event, ctx) => {
            ctx.ui.notify("hanging");
            await new Promise((done) => setTimeout(done, 600_000));
            return { entries: [{ type: "custom_message", customType: "x", content: "x", display: false }], continue: true };
          });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("Go!")).await;
    rpc.notified("hanging").await;
    rpc.ok(json!({"type": "abort"})).await;
    rpc.event("agent_settled").await;
    assert_eq!(server.requests().len(), 1);
}
