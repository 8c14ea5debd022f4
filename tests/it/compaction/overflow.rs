//! Conversations that the model refuses because they do not fit.

use model_server::Answer;
use serde_json::{Value, json};

use crate::compaction::{TURN, keeping, message_texts, request_texts, talk};
use crate::support::prompt;

/// An error of Anthropic's API for a request that is too long.
const TOO_LONG: &str = "prompt is too long: 213462 tokens > 200000 maximum";

#[tokio::test]
async fn a_request_that_is_too_long_is_compacted_and_retried() {
    let (server, home) = keeping(1).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one"]).await;
    server.push(Answer::error(400, TOO_LONG));
    server.push(Answer::text("The summary."));
    server.push(Answer::text("It fits."));
    rpc.ok(prompt("two")).await;
    rpc.event("agent_end").await;
    assert_eq!(rpc.event("compaction_start").await["reason"], "overflow");
    let end = rpc.event("compaction_end").await;
    assert_eq!(
        (&end["reason"], &end["willRetry"]),
        (&json!("overflow"), &json!(true))
    );
    rpc.event("agent_start").await;
    rpc.event("agent_end").await;
    assert_eq!(request_texts(&server)[1..], ["two"]);
    let messages = message_texts(&mut rpc).await;
    assert_eq!(messages[1..], ["two", "It fits."]);
    // The failed answer stays in the file.
    let failed = home
        .entries()
        .into_iter()
        .find(|entry| entry["message"]["stopReason"] == "error");
    assert!(failed.is_some());
}

#[tokio::test]
async fn a_second_overflow_after_a_compaction_is_an_error() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one"]).await;
    server.push(Answer::error(400, TOO_LONG));
    server.push(Answer::text("The summary."));
    server.push(Answer::error(400, TOO_LONG));
    rpc.ok(prompt("two")).await;
    assert_eq!(rpc.event("compaction_end").await["willRetry"], true);
    rpc.event("agent_end").await;
    let end = rpc.event("compaction_end").await;
    assert_eq!(
        end,
        json!({
            "type": "compaction_end", "reason": "overflow", "aborted": false, "willRetry": false,
            "errorMessage": "Context overflow recovery failed after one compact-and-retry \
                attempt. Try reducing context or switching to a larger-context model.",
        })
    );
    assert_eq!(server.requests().len(), 4);
    // Another prompt tries again.
    server.push(Answer::text("It fits."));
    rpc.run("three").await;
    server.push(Answer::error(400, TOO_LONG));
    server.repeat(Answer::text("The summary."));
    rpc.ok(prompt("four")).await;
    rpc.event("compaction_start").await;
    assert_eq!(rpc.event("compaction_end").await["willRetry"], true);
}

/// The next prompt got the error that the recovery had failed, and nothing was compacted.
#[tokio::test]
async fn the_next_prompt_restarts_an_aborted_recovery() {
    let (server, home) = keeping(1).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one"]).await;
    server.push(Answer::error(400, TOO_LONG));
    server.push(Answer::stall());
    rpc.ok(prompt("two")).await;
    rpc.event("compaction_start").await;
    server.received(3).await;
    rpc.ok(json!({"type": "abort"})).await;
    assert_eq!(rpc.event("compaction_end").await["aborted"], true);
    server.push(Answer::text("The summary."));
    server.push(Answer::text("It fits."));
    rpc.ok(prompt("three")).await;
    assert_eq!(rpc.event("compaction_start").await["reason"], "overflow");
    let end = rpc.event("compaction_end").await;
    assert_eq!(end["errorMessage"], Value::Null, "{end}");
    assert!(end["result"]["summary"].is_string(), "{end}");
}

#[tokio::test]
async fn print_mode_continues_after_an_overflow() {
    let (server, home) = keeping(1).await;
    server.push(Answer::text("About one."));
    home.run(&["-p", "one"], "").await.ok();
    server.push(Answer::error(400, TOO_LONG));
    server.push(Answer::text("The summary."));
    server.push(Answer::text("It fits."));
    assert_eq!(home.run(&["-c", "-p", "two"], "").await.ok(), "It fits.\n");
}
