//! Summaries that fail for a transient reason are requested again, with the events that the
//! original has since 1.5.

use model_server::{Answer, ModelServer, Received};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, prompt, text_of};

const GO: &str = r#"export default (pi) => pi.registerCommand("go", {
    handler: async (_args, ctx) => {
        const first = ctx.sessionManager.getEntries().find((entry) => entry.message?.role === "user");
        await ctx.navigateTree(first.id, { summarize: true });
    },
});"#;

fn overloaded() -> Answer {
    Answer::error(529, "Overloaded").with_header("x-should-retry", "false")
}

fn is_about_a_summary(request: &Received) -> bool {
    text_of(&request.body["messages"][0]).contains("</conversation>")
}

/// A conversation of one turn.
async fn talked(base_delay: u64) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("go.ts", GO);
    home.settings(json!({"compaction": {"keepRecentTokens": 52}}));
    let settings = home.agent_dir().join("settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    let text = text.replace(
        "\"baseDelayMs\":1",
        &format!("\"baseDelayMs\":{base_delay}"),
    );
    std::fs::write(&settings, text).unwrap();
    let mut rpc = home.rpc(&[]);
    for answer in ["one", "two"] {
        server.push(Answer::text(&format!(
            "{answer} {}",
            "and so on ".repeat(20)
        )));
        rpc.run(&format!("say {answer}")).await;
        rpc.event("agent_settled").await;
    }
    (server, home, rpc)
}

/// Lines about summaries, up to this event.
async fn until(rpc: &mut Rpc, last: &str) -> Vec<Value> {
    let (at, _) = rpc.find(0, last, |line| line["type"] == last).await;
    let mut lines = rpc.lines();
    lines.truncate(at + 1);
    lines.retain(|line| {
        let kind = line["type"].as_str().unwrap_or_default();
        kind.starts_with("summarization_retry") || kind.starts_with("compaction")
    });
    lines
}

fn scheduled(attempt: u32, delay: u64) -> Value {
    json!({
        "type": "summarization_retry_scheduled", "attempt": attempt, "maxAttempts": 3,
        "delayMs": delay,
        "errorMessage": "529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
    })
}

#[tokio::test]
async fn a_failed_summary_is_retried() {
    let (server, _home, mut rpc) = talked(1).await;
    server.push(overloaded());
    server.push(overloaded());
    server.push(Answer::text("The summary."));
    let compacted = rpc.ok(json!({"type": "compact"})).await;
    let summary = compacted["summary"].as_str().unwrap();
    assert!(summary.contains("The summary."), "{compacted}");
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    // An estimate has four characters to a token, rounded up for each message.
    let tokens = |message: &Value| {
        let text = match &message["summary"] {
            Value::String(summary) => summary.clone(),
            _ => text_of(message),
        };
        text.len().div_ceil(4)
    };
    let messages = messages["messages"].as_array().unwrap();
    let estimated: usize = messages.iter().map(tokens).sum();
    assert_eq!(compacted["estimatedTokensAfter"], estimated);

    let start = json!({
        "type": "summarization_retry_attempt_start", "source": "compaction", "reason": "manual",
    });
    let events = until(&mut rpc, "compaction_end").await;
    assert_eq!(
        events,
        [
            json!({"type": "compaction_start", "reason": "manual"}),
            scheduled(1, 1),
            start.clone(),
            scheduled(2, 2),
            start,
            json!({"type": "summarization_retry_finished"}),
            json!({
                "type": "compaction_end", "reason": "manual", "result": compacted,
                "aborted": false, "willRetry": false,
            }),
        ]
    );

    // A permanent error is not retried; the summary of a branch is retried like that of a
    // conversation.
    server.push(overloaded());
    server.push(Answer::error(400, "No."));
    rpc.ok(prompt("/go")).await;
    let start = rpc.wait("the second attempt", |line| {
        line["type"] == "summarization_retry_attempt_start" && line["source"] == "branchSummary"
    });
    assert_eq!(
        start.await,
        json!({"type": "summarization_retry_attempt_start", "source": "branchSummary"})
    );
    rpc.event("summarization_retry_finished").await;
    assert_eq!(server.unasked(), 0);
    assert!(is_about_a_summary(&server.last_request()));
}

#[tokio::test]
async fn an_abort_ends_the_wait_for_a_retry() {
    for (by, code) in [("abort_retry", "summary_failed"), ("abort", "aborted")] {
        let (server, _home, mut rpc) = talked(600_000).await;
        server.push(overloaded());
        rpc.send(r#"{"type": "compact", "id": "compact"}"#).await;
        rpc.event("summarization_retry_scheduled").await;
        rpc.ok(json!({ "type": by })).await;
        let end = rpc.event("compaction_end").await;
        assert_eq!(end["aborted"], by == "abort", "{end}");
        let is_answer = |line: &Value| line["id"] == "compact";
        let (_, answer) = rpc.find(0, "the answer", is_answer).await;
        assert_eq!(answer["errorCode"], code, "{answer}");
        let kinds: Vec<Value> = rpc
            .lines()
            .iter()
            .map(|line| line["type"].clone())
            .collect();
        assert!(
            kinds.contains(&json!("summarization_retry_finished")),
            "{by}"
        );
        assert!(
            !kinds.contains(&json!("summarization_retry_attempt_start")),
            "{by}"
        );
    }
}
