//! API objects of a replaced extension report that they are stale wherever a call would have no
//! effect.

use model_server::Answer;
use serde_json::json;

use crate::support::{prompt, text_of, with_extension};

#[tokio::test]
async fn stale_calls_throw_and_aborted_calls_have_a_result() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/stale/stale-calls-throw-and-aborted-calls-have-a-result.ts"
    ))
    .await;
    server.push(Answer::tool("slow", json!({})));
    rpc.ok(prompt("go")).await;
    rpc.event("tool_execution_update").await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.event("tool_execution_end").await;
    assert_eq!(text_of(&end["result"]), "it saw the abort, noted");
    rpc.event("agent_end").await;

    rpc.send(&prompt("/replace").to_string()).await;
    let error = rpc.event("extension_error").await;
    let text = error["error"].as_str().unwrap();
    assert!(text.contains("This extension instance is stale"), "{error}");
    rpc.close().await;
}

/// Registrations and events of a replaced extension were lost without an error.
#[tokio::test]
async fn registrations_of_a_replaced_extension_are_stale() {
    let (_server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/stale/registrations-of-a-replaced-extension-are-stale.ts"
    ))
    .await;
    for how in ["new", "reload"] {
        rpc.send(&prompt(&format!("/replace {how}")).to_string())
            .await;
        let error = rpc.event("extension_error").await;
        let text = error["error"].as_str().unwrap();
        assert_eq!(text, format!("{how} silent: ."), "{error}");
    }
    rpc.close().await;
}
