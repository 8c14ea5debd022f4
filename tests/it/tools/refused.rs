//! Results of refused calls: their place among those of the calls that run.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::Home;

/// The results of refused calls came first.
#[tokio::test]
async fn refused_calls_have_their_place_among_the_results() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "gate.ts",
        r#"export default (pi) => pi.on("tool_call", (event) =>
            event.input.path === "secret.txt" ? { block: true, reason: "no secrets" } : undefined);"#,
    );
    home.file("a.txt", "first");
    home.file("b.txt", "last");
    server.push(Answer::tools([
        ("read", json!({ "path": "a.txt" })),
        ("unknown", json!({})),
        ("read", json!({ "path": "secret.txt" })),
        ("read", json!({ "path": "b.txt" })),
        ("read", json!({})),
    ]));
    server.push(Answer::text("I see."));
    let mut rpc = home.rpc(&[]);
    let events = rpc.run("go").await;
    let of = |kind: &str, what: &str| -> Vec<Value> {
        let events = events.iter().filter(|event| event["type"] == kind);
        events.map(|event| event[what].clone()).collect()
    };
    let calls = of("tool_execution_start", "toolCallId");
    let messages = of("message_end", "message");
    let results = messages.iter().filter(|one| one["role"] == "toolResult");
    let results: Vec<Value> = results.map(|one| one["toolCallId"].clone()).collect();
    assert_eq!(results, calls);
    let stored = home.entries();
    let stored = stored.iter().map(|entry| &entry["message"]);
    let stored = stored.filter(|message| message["role"] == "toolResult");
    let stored: Vec<Value> = stored.map(|one| one["toolCallId"].clone()).collect();
    assert_eq!(stored, calls);
    // Clients hear of a refusal at once.
    let ends = of("tool_execution_end", "toolCallId");
    let refused = [1, 2, 4].map(|index: usize| calls[index].clone());
    assert_eq!(ends[..3], refused);
    assert_eq!(ends.len(), calls.len());
}
