//! Manual and automatic compactions of a session.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use super::{TURN, compact, keeping, message_texts, of_type, request_texts, talk};
use crate::support::{Rpc, prompt, text_of, without};

/// Runs a prompt whose answer reports a nearly full context.
async fn fill(server: &ModelServer, rpc: &mut Rpc, text: &str) {
    server.push(Answer::text(&format!("About {text}.")).usage(190_000, 5));
    rpc.run(text).await;
}

fn position(entries: &[Value], id: &Value) -> usize {
    let found = entries.iter().position(|entry| entry["id"] == *id);
    found.unwrap_or_else(|| panic!("there is no entry {id}"))
}

#[tokio::test]
async fn a_client_compacts_a_session() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one", "two"]).await;
    server.push(Answer::text("The summary."));
    let command = json!({"type": "compact", "customInstructions": "the tests"});
    rpc.begin("c", command).await;
    let start = rpc.event("compaction_start").await;
    assert_eq!(
        start,
        json!({"type": "compaction_start", "reason": "manual"})
    );
    let end = rpc.event("compaction_end").await;
    let answer = rpc.response("c").await;

    let entries = home.entries();
    let last = entries.last().unwrap();
    let kept = &entries[entries.len() - 3];
    assert_eq!(text_of(&kept["message"]), "two");
    let request = server.requests()[2].body.clone();
    let prompt = text_of(&request["messages"][0]);
    assert!(
        prompt.starts_with(
            "<conversation>\n[User]: one\n\n[Assistant]: About one.\n</conversation>\n\n"
        ),
        "{prompt}"
    );
    assert!(
        prompt.ends_with("\n\nAdditional focus: the tests"),
        "{prompt}"
    );
    assert_eq!(request["tools"], Value::Null);
    let result = &answer["data"];
    assert_eq!(
        without(result, &["summary"]),
        json!({
            "firstKeptEntryId": kept["id"],
            "tokensBefore": 15,
            "estimatedTokensAfter": 7,
            "details": {"readFiles": [], "modifiedFiles": []},
        })
    );
    assert_eq!(
        end,
        json!({
            "type": "compaction_end", "reason": "manual", "result": result, "aborted": false,
            "willRetry": false,
        })
    );
    let names: Vec<&String> = last.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "type",
            "id",
            "parentId",
            "timestamp",
            "summary",
            "firstKeptEntryId",
            "tokensBefore",
            "details",
            "fromHook"
        ]
    );
    assert_eq!(last["summary"], result["summary"]);
    assert_eq!(last["fromHook"], false);

    let stats = rpc.ok(json!({"type": "get_session_stats"})).await;
    assert_eq!(stats["contextUsage"]["tokens"], Value::Null);
    assert!(
        stats["contextUsage"]
            .as_object()
            .unwrap()
            .contains_key("tokens")
    );
    talk(&server, &mut rpc, &["three"]).await;
    let reported = request_texts(&server);
    assert!(
        reported[0].starts_with(
            "The conversation history before this point was compacted into the following \
             summary:\n\n<summary>\nThe summary."
        ),
        "{reported:?}"
    );
    assert_eq!(&reported[1..], ["two", "About two.", "three"]);
    let stats = rpc.ok(json!({"type": "get_session_stats"})).await;
    assert_eq!(stats["contextUsage"]["tokens"], 15);
}

#[tokio::test]
async fn a_session_that_is_too_small_is_not_compacted() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    let error = rpc.refused(compact()).await;
    assert_eq!(error, "Nothing to compact (session too small)");
    let end = rpc.event("compaction_end").await;
    assert_eq!(
        end["errorMessage"],
        "Compaction failed: Nothing to compact (session too small)"
    );
    // Everything would be kept, so the model is not asked.
    talk(&server, &mut rpc, &["one"]).await;
    let before = home.entries();
    let error = rpc.refused(compact()).await;
    assert_eq!(error, "Nothing to compact (session too small)");
    assert_eq!((server.requests().len(), home.entries()), (1, before));
    talk(&server, &mut rpc, &["two"]).await;
    server.push(Answer::text("The summary."));
    rpc.ok(compact()).await;
    assert_eq!(rpc.refused(compact()).await, "Already compacted");
    talk(&server, &mut rpc, &["three"]).await;
    server.push(Answer::text("The second summary."));
    rpc.ok(compact()).await;
}

#[tokio::test]
async fn a_summary_that_fails_changes_nothing() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one", "two"]).await;
    let before = home.entries();
    server.push(Answer::error(400, "not today"));
    let error = rpc.refused(compact()).await;
    assert!(
        error.contains("ummarization failed: ") && error.contains("not today"),
        "{error}"
    );
    let end = rpc.event("compaction_end").await;
    assert_eq!(end["errorMessage"], format!("Compaction failed: {error}"));
    assert_eq!(end["aborted"], false);
    assert_eq!(home.entries(), before);
    assert_eq!(message_texts(&mut rpc).await.len(), 4);
}

#[tokio::test]
async fn a_manual_compaction_stops_the_run() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one"]).await;
    server.push(Answer::stall());
    rpc.ok(prompt("two")).await;
    server.received(2).await;
    server.repeat(Answer::text("The summary."));
    rpc.ok(compact()).await;
    let messages = message_texts(&mut rpc).await;
    assert!(
        messages[0].starts_with("compactionSummary: "),
        "{messages:?}"
    );
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isStreaming"], false);
}

#[tokio::test]
async fn a_full_context_is_compacted_after_the_run() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one"]).await;
    server.push(Answer::text("About two.").usage(190_000, 5));
    // The next prompt arrives while the summary is being written.
    server.push(Answer::text("The summary.").held());
    server.push(Answer::text("About three."));
    rpc.run("two").await;
    let start = rpc.event("compaction_start").await;
    assert_eq!(start["reason"], "threshold");
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isStreaming"], false);
    rpc.begin("p", prompt("three")).await;
    rpc.ok(json!({"type": "get_state"})).await;
    server.release();
    let end = rpc.event("compaction_end").await;
    assert_eq!(rpc.response("p").await["success"], true);
    assert_eq!(end["result"]["tokensBefore"], 190_005);
    assert_eq!(end["willRetry"], false);
    rpc.event("agent_start").await;
    rpc.event("agent_end").await;
    let reported = request_texts(&server);
    assert_eq!(&reported[1..], ["two", "About two.", "three"]);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn the_reserve_is_a_setting() {
    let (server, home) = keeping(TURN).await;
    let settings = json!({"compaction": {"keepRecentTokens": TURN, "reserveTokens": 9_990}});
    home.settings(settings);
    let mut rpc = home.rpc(&[]);
    // Fill the context to the limit of the setting.
    server.push(Answer::text("About one.").usage(190_005, 5));
    rpc.run("one").await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isCompacting"], false);
    server.push(Answer::text("About two.").usage(190_006, 5));
    server.push(Answer::text("The summary."));
    rpc.run("two").await;
    rpc.event("compaction_start").await;
    rpc.event("compaction_end").await;
    // Four fifths of the reserve, and the budget for thinking.
    assert_eq!(server.last_request().body["max_tokens"], 7_992 + 16_384);
}

#[tokio::test]
async fn automatic_compaction_can_be_turned_off() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "set_auto_compaction", "enabled": false}))
        .await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["autoCompactionEnabled"], false);
    fill(&server, &mut rpc, "one").await;
    fill(&server, &mut rpc, "two").await;
    rpc.close().await;
    let settings = fs::read_to_string(home.agent_dir().join("settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(
        settings["compaction"],
        json!({"keepRecentTokens": TURN, "enabled": false})
    );
    assert_eq!(server.requests().len(), 2);
    assert!(of_type(&home.entries(), "compaction").is_empty());

    // Once turned on again, a context that is already too long is compacted before the prompt.
    let mut rpc = home.rpc(&["-c"]);
    rpc.ok(json!({"type": "set_auto_compaction", "enabled": true}))
        .await;
    server.push(Answer::text("The summary."));
    server.push(Answer::text("About three."));
    rpc.ok(prompt("three")).await;
    rpc.event("compaction_start").await;
    rpc.event("compaction_end").await;
    rpc.event("agent_end").await;
    assert_eq!(request_texts(&server).last().unwrap(), "three");
    assert_eq!(of_type(&home.entries(), "compaction").len(), 1);
}

#[tokio::test]
async fn an_abort_ends_a_compaction() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one", "two"]).await;
    let before = home.entries();
    server.push(Answer::stall());
    rpc.begin("c", compact()).await;
    server.received(3).await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isCompacting"], true);
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.event("compaction_end").await;
    assert_eq!(
        end,
        json!({
            "type": "compaction_end", "reason": "manual", "aborted": true, "willRetry": false,
        })
    );
    let answer = rpc.response("c").await;
    assert_eq!(answer["error"], "Compaction cancelled");
    server.hung_up(1).await;
    assert_eq!(home.entries(), before);
    talk(&server, &mut rpc, &["three"]).await;
    assert_eq!(request_texts(&server).len(), 5);
}

#[tokio::test]
async fn an_abort_ends_an_automatic_compaction() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one"]).await;
    server.push(Answer::text("About two.").usage(190_000, 5));
    server.push(Answer::stall());
    rpc.run("two").await;
    rpc.event("compaction_start").await;
    server.received(3).await;
    // This prompt waits for the end of the compaction.
    rpc.begin("p", prompt("three")).await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.event("compaction_end").await;
    assert_eq!(end["aborted"], true);
    assert_eq!(end["errorMessage"], Value::Null);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isCompacting"], false);
    assert!(of_type(&home.entries(), "compaction").is_empty());
}

#[tokio::test]
async fn queued_messages_are_sent_after_a_compaction() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one"]).await;
    server.push(Answer::text("About two.").usage(190_000, 5));
    server.push(Answer::text("The summary.").held());
    server.push(Answer::text("About three."));
    rpc.run("two").await;
    rpc.event("compaction_start").await;
    rpc.ok(json!({"type": "follow_up", "message": "three"}))
        .await;
    server.release();
    rpc.event("compaction_end").await;
    rpc.event("agent_end").await;
    assert_eq!(request_texts(&server)[1..], ["two", "About two.", "three"]);
}

#[tokio::test]
async fn a_new_session_ends_a_compaction() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one", "two"]).await;
    let old = home.session();
    server.push(Answer::stall());
    rpc.begin("c", compact()).await;
    server.received(3).await;
    rpc.ok(json!({"type": "new_session"})).await;
    let answer = rpc.response("c").await;
    assert_eq!(answer["error"], "Compaction cancelled");
    let entries = crate::support::read_jsonl(&old);
    assert!(of_type(&entries, "compaction").is_empty());
    assert_eq!(message_texts(&mut rpc).await, [""; 0]);
}

#[tokio::test]
async fn a_second_compaction_extends_the_first_summary() {
    let (server, home) = keeping(TURN).await;
    home.file("a.txt", "a");
    let mut rpc = home.rpc(&[]);
    server.push(Answer::tool("read", json!({"path": "a.txt"})));
    server.push(Answer::tool(
        "write",
        json!({"path": "b.txt", "content": "b"}),
    ));
    talk(&server, &mut rpc, &["one", "two"]).await;
    server.push(Answer::text("The first summary."));
    let first = rpc.ok(compact()).await;
    let files = json!({"readFiles": ["a.txt"], "modifiedFiles": ["b.txt"]});
    assert_eq!(first["details"], files);
    let summary = first["summary"].as_str().unwrap().to_owned();
    assert_eq!(
        summary,
        "The first summary.\n\n<read-files>\na.txt\n</read-files>\n\n<modified-files>\nb.txt\n\
         </modified-files>"
    );
    server.push(Answer::tool(
        "edit",
        json!({
            "path": "a.txt", "edits": [{"oldText": "a", "newText": "c"}],
        }),
    ));
    talk(&server, &mut rpc, &["three", "four"]).await;
    server.push(Answer::text("The second summary."));
    let second = rpc.ok(compact()).await;
    let prompt = request_texts(&server).remove(0);
    // The second compaction summarises what the first one kept.
    assert!(
        prompt.starts_with(
            "<conversation>\n[User]: two\n\n[Assistant]: About two.\n\n[User]: three\n\n"
        ),
        "{prompt}"
    );
    assert!(
        prompt.contains(&format!(
            "\n</conversation>\n\n<previous-summary>\n{summary}\n</previous-summary>\n\n"
        )),
        "{prompt}"
    );
    assert_eq!(
        second["details"],
        json!({"readFiles": [], "modifiedFiles": ["a.txt", "b.txt"]})
    );
    let entries = home.entries();
    let kept = &entries[position(&entries, &second["firstKeptEntryId"])];
    assert_eq!(text_of(&kept["message"]), "four");
}

#[tokio::test]
async fn a_long_turn_is_split() {
    let (server, home) = keeping(12).await;
    home.file("a.txt", "a");
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one"]).await;
    for _ in 0..4 {
        server.push(Answer::tool("read", json!({"path": "a.txt"})));
    }
    talk(&server, &mut rpc, &["two"]).await;
    server.push(Answer::text("What was before."));
    server.push(Answer::text("How the turn began."));
    let result = rpc.ok(compact()).await;
    assert_eq!(
        result["summary"],
        "What was before.\n\n---\n\n**Turn Context (split turn):**\n\nHow the turn began.\n\n\
         <read-files>\na.txt\n</read-files>"
    );
    let prompt = request_texts(&server).remove(0);
    assert!(
        prompt.starts_with("<conversation>\n[User]: two\n\n"),
        "{prompt}"
    );
    assert!(prompt.contains("## Original Request"), "{prompt}");
    let entries = home.entries();
    let kept = &entries[position(&entries, &result["firstKeptEntryId"])];
    // A result is never kept without its call.
    assert_eq!(kept["message"]["role"], "assistant");
    talk(&server, &mut rpc, &["three"]).await;
}

#[tokio::test]
async fn the_original_continues_a_compacted_session() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one", "two"]).await;
    server.push(Answer::text("The summary."));
    rpc.ok(compact()).await;
    talk(&server, &mut rpc, &["three"]).await;
    assert!(rpc.close().await.success());
    let before = home.entries();
    server.push(Answer::text("About four."));
    home.run_original(&["-c", "-p", "four"]).await.ok();
    let reported = request_texts(&server);
    assert!(reported[0].contains("The summary."), "{reported:?}");
    assert_eq!(
        reported[1..],
        ["two", "About two.", "three", "About three.", "four"]
    );
    let after = home.entries();
    assert_eq!(after[..before.len()], before);
}

#[tokio::test]
async fn two_compactions_at_a_time_are_one() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one", "two"]).await;
    server.push(Answer::text("The summary.").held());
    rpc.begin("a", compact()).await;
    rpc.begin("b", compact()).await;
    rpc.ok(json!({"type": "get_state"})).await;
    server.release();
    // Either of the two may be first: both wait for the session.
    let is_answer = |line: &Value| line["type"] == "response" && line["command"] == "compact";
    let mut failed = Vec::new();
    for _ in 0..2 {
        let answer = rpc.wait("the response to one of them", is_answer).await;
        if answer["success"] == false {
            failed.push(answer["error"].clone());
        }
    }
    assert_eq!(failed, ["Already compacted"]);
}

#[tokio::test]
async fn reload_is_refused_during_a_run_or_compaction() {
    let (server, home) = keeping(TURN).await;
    let mut rpc = home.rpc(&[]);
    talk(&server, &mut rpc, &["one", "two"]).await;
    server.push(Answer::stall());
    rpc.begin("c", compact()).await;
    server.received(3).await;
    let error = rpc.refused(json!({"type": "reload"})).await;
    assert!(
        error.starts_with("Wait for the current response"),
        "{error}"
    );
    rpc.ok(json!({"type": "abort"})).await;
    server.push(Answer::stall());
    rpc.ok(prompt("three")).await;
    server.received(4).await;
    let error = rpc.refused(json!({"type": "reload"})).await;
    assert!(
        error.starts_with("Wait for the current response"),
        "{error}"
    );
    rpc.ok(json!({"type": "abort"})).await;
    rpc.ok(json!({"type": "reload"})).await;
}
