//! Navigation between branches of a session.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, prompt, text_of};

/// `/go {"to": 3, …}` goes to the third entry and reports the outcome.
const GO: &str = include_str!("fixtures/navigation.ts");

/// Indices of the entries that `talk` creates, after those of the model and the thinking level.
const FIRST: usize = 2;
const FIRST_ANSWER: usize = 3;
const SECOND: usize = 4;
const SECOND_ANSWER: usize = 5;

async fn with(more: &str) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("go.ts", GO);
    if !more.is_empty() {
        home.extension("more.ts", more);
    }
    let mut rpc = home.rpc(&[]);
    for text in ["one", "two"] {
        server.push(Answer::text(&format!("About {text}.")));
        rpc.run(text).await;
    }
    (server, home, rpc)
}

async fn go(rpc: &mut Rpc, to: usize, mut options: Value) -> Value {
    options["to"] = json!(to);
    rpc.ok(prompt(&format!("/go {options}"))).await;
    let reported = rpc
        .wait("the result", |line| {
            let message = line["message"].as_str().unwrap_or_default();
            message.starts_with("result ") || message.starts_with("error ")
        })
        .await;
    let message = reported["message"].as_str().unwrap();
    match message.strip_prefix("result ") {
        Some(result) => serde_json::from_str(result).unwrap(),
        None => json!(message),
    }
}

async fn message_texts(rpc: &mut Rpc) -> Vec<String> {
    let data = rpc.ok(json!({"type": "get_messages"})).await;
    let messages = data["messages"].as_array().unwrap().iter();
    let text = |message: &Value| match &message["summary"] {
        Value::String(summary) => summary.clone(),
        _ => text_of(message),
    };
    messages.map(text).collect()
}

/// All entries without the header.
fn entries(home: &Home) -> Vec<Value> {
    home.entries().split_off(1)
}

#[tokio::test]
async fn the_conversation_continues_from_an_answer() {
    let (server, home, mut rpc) = with("").await;
    rpc.ok(prompt(&format!("/go {}", json!({"to": FIRST_ANSWER}))))
        .await;
    rpc.notified("moved 5 3 false undefined true").await;
    rpc.notified(r#"result {"cancelled":false}"#).await;
    assert_eq!(message_texts(&mut rpc).await, ["one", "About one."]);
    server.push(Answer::text("About three."));
    rpc.run("three").await;
    let entries = entries(&home);
    assert_eq!(entries[6]["parentId"], entries[FIRST_ANSWER]["id"]);
    // Nothing happens if it is the current entry.
    let last = entries.len() - 1;
    assert_eq!(
        go(&mut rpc, last, json!({})).await,
        json!({"cancelled": false})
    );
    rpc.ok(prompt(r#"/go {"to": "nowhere"}"#)).await;
    rpc.notified("error Entry nowhere not found").await;
}

#[tokio::test]
async fn a_message_of_the_user_can_be_sent_again() {
    let (server, home, mut rpc) = with("").await;
    let result = go(&mut rpc, SECOND, json!({})).await;
    assert_eq!(result, json!({"cancelled": false, "editorText": "two"}));
    assert_eq!(message_texts(&mut rpc).await, ["one", "About one."]);
    server.push(Answer::text("About two, again."));
    rpc.run("two, again").await;
    let entries = entries(&home);
    assert_eq!(entries[6]["parentId"], entries[FIRST_ANSWER]["id"]);
    // Only settings come before the first message.
    let result = go(&mut rpc, FIRST, json!({})).await;
    assert_eq!(result["editorText"], "one");
    assert_eq!(message_texts(&mut rpc).await, [""; 0]);
}

#[tokio::test]
async fn the_abandoned_branch_is_summarised() {
    let (server, home, mut rpc) = with("").await;
    server.push(Answer::text("It was about two."));
    let options = json!({"summarize": true, "customInstructions": "numbers", "label": "left"});
    let result = go(&mut rpc, FIRST_ANSWER, options).await;
    assert_eq!(result["cancelled"], false);
    let request = server.last_request().body;
    let requested = text_of(&request["messages"][0]);
    assert!(
        requested.starts_with(
            "<conversation>\n[User]: two\n\n[Assistant]: About two.\n</conversation>\n\n"
        ),
        "{requested}"
    );
    assert!(
        requested.ends_with("\n\nAdditional focus: numbers"),
        "{requested}"
    );
    assert_eq!(request["max_tokens"], 2048);

    let entries = entries(&home);
    let (summary, label) = (&entries[6], &entries[7]);
    let names: Vec<&String> = summary.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "type",
            "id",
            "parentId",
            "timestamp",
            "fromId",
            "summary",
            "details",
            "fromHook"
        ]
    );
    assert_eq!(summary["type"], "branch_summary");
    assert_eq!(summary["parentId"], entries[FIRST_ANSWER]["id"]);
    assert_eq!(summary["fromId"], entries[FIRST_ANSWER]["id"]);
    assert_eq!(
        summary["summary"],
        "The user explored a different conversation branch before returning here.\n\
         Summary of that exploration:\n\nIt was about two."
    );
    assert_eq!(
        summary["details"],
        json!({"readFiles": [], "modifiedFiles": []})
    );
    assert_eq!(summary["fromHook"], false);
    assert_eq!(label["type"], "label");
    assert_eq!(
        (&label["targetId"], &label["label"]),
        (&summary["id"], &json!("left"))
    );
    assert_eq!(result["summaryEntry"], *summary);

    server.push(Answer::text("About three."));
    rpc.run("three").await;
    let request = server.last_request().body;
    let reported: Vec<String> = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(text_of)
        .collect();
    assert_eq!(
        reported[2],
        format!(
            "The following is a summary of a branch that this conversation came back from:\n\n\
             <summary>\n{}</summary>",
            summary["summary"].as_str().unwrap()
        )
    );

    // The original reads the summary and sends the same to the model.
    assert!(rpc.close().await.success());
    server.push(Answer::text("About four."));
    home.run_original(&["-c", "--no-extensions", "-p", "four"])
        .await
        .ok();
    let original = server.last_request().body;
    let theirs: Vec<String> = original["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(text_of)
        .collect();
    assert_eq!(theirs[..4], reported[..4]);
    assert_eq!(theirs[4..], ["About three.", "four"]);
}

#[tokio::test]
async fn a_label_may_be_set_without_a_summary() {
    let (_server, home, mut rpc) = with("").await;
    go(&mut rpc, FIRST_ANSWER, json!({"label": "here"})).await;
    let entries = entries(&home);
    assert_eq!(entries[6]["targetId"], entries[FIRST_ANSWER]["id"]);
    assert_eq!(entries[6]["parentId"], entries[FIRST_ANSWER]["id"]);
}

#[tokio::test]
async fn a_summary_that_fails_leaves_the_session_where_it_is() {
    let (server, home, mut rpc) = with("").await;
    server.push(Answer::error(400, "not today"));
    let result = go(&mut rpc, FIRST_ANSWER, json!({"summarize": true})).await;
    assert!(result.as_str().unwrap().contains("not today"), "{result}");
    assert_eq!(message_texts(&mut rpc).await.len(), 4);
    assert_eq!(entries(&home).len(), 6);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isCompacting"], false);
}

#[tokio::test]
async fn an_abort_ends_the_summary() {
    let (server, home, mut rpc) = with("").await;
    server.push(Answer::stall());
    let command = format!("/go {}", json!({"to": FIRST_ANSWER, "summarize": true}));
    rpc.send(&prompt(&command).to_string()).await;
    server.received(3).await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isCompacting"], true);
    rpc.ok(json!({"type": "abort"})).await;
    rpc.notified(r#"result {"cancelled":true,"aborted":true}"#)
        .await;
    assert_eq!(message_texts(&mut rpc).await.len(), 4);
    assert_eq!(entries(&home).len(), 6);
}

#[tokio::test]
async fn an_extension_may_cancel_the_navigation() {
    let more = r#"export default (pi) =>
        pi.on("session_before_tree", () => ({ cancel: true }));"#;
    let (server, _home, mut rpc) = with(more).await;
    let result = go(&mut rpc, FIRST_ANSWER, json!({"summarize": true})).await;
    assert_eq!(result, json!({"cancelled": true}));
    assert_eq!(message_texts(&mut rpc).await.len(), 4);
    assert_eq!(server.requests().len(), 2);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isCompacting"], false);
}

#[tokio::test]
async fn an_extension_may_write_the_summary() {
    let more = r#"export default (pi) =>
        pi.on("session_before_tree", ({ preparation: p, signal }, ctx) => {
            const at = (id) => ctx.sessionManager.getEntries().findIndex((e) => e.id === id);
            ctx.ui.notify(JSON.stringify([at(p.targetId), at(p.oldLeafId), at(p.commonAncestorId),
                p.entriesToSummarize.map((e) => at(e.id)), p.userWantsSummary,
                p.customInstructions, p.replaceInstructions, p.label, signal.aborted]));
            return { summary: { summary: "Mine.", details: { by: "me" } }, label: "theirs" };
        });"#;
    let (server, home, mut rpc) = with(more).await;
    let options = json!({
        "to": FIRST_ANSWER, "summarize": true, "label": "ours", "replaceInstructions": true,
    });
    rpc.ok(prompt(&format!("/go {options}"))).await;
    rpc.notified(r#"[3,5,3,[4,5],true,null,true,"ours",false]"#)
        .await;
    rpc.notified("moved 5 7 true true true").await;
    rpc.ui("notify").await;
    let entries_now = entries(&home);
    let (summary, label) = (&entries_now[6], &entries_now[7]);
    assert_eq!(summary["summary"], "Mine.");
    assert_eq!(summary["details"], json!({"by": "me"}));
    assert_eq!(summary["fromHook"], true);
    assert_eq!(label["label"], "theirs");
    assert_eq!(server.requests().len(), 2);
    // An unrequested summary is not used.
    let again = go(&mut rpc, SECOND_ANSWER, json!({})).await;
    assert_eq!(again, json!({"cancelled": false}));
    assert_eq!(entries(&home).last().unwrap()["type"], "label");
}

#[tokio::test]
async fn an_extension_may_change_the_instructions() {
    let more = r#"export default (pi) => pi.on("session_before_tree", () =>
        ({ customInstructions: "Only the colours.", replaceInstructions: true }));"#;
    let (server, _home, mut rpc) = with(more).await;
    server.push(Answer::text("Red."));
    go(&mut rpc, FIRST_ANSWER, json!({"summarize": true})).await;
    let requested = text_of(&server.last_request().body["messages"][0]);
    assert!(
        requested.ends_with("</conversation>\n\nOnly the colours."),
        "{requested}"
    );
}

#[tokio::test]
async fn navigation_is_refused_during_a_run() {
    let (server, _home, mut rpc) = with("").await;
    server.push(Answer::stall());
    rpc.ok(prompt("three")).await;
    server.received(3).await;
    let result = go(&mut rpc, FIRST_ANSWER, json!({})).await;
    assert!(
        result.as_str().unwrap().starts_with("error Wait for"),
        "{result}"
    );
    rpc.ok(json!({"type": "abort"})).await;
    go(&mut rpc, FIRST_ANSWER, json!({})).await;
    assert_eq!(message_texts(&mut rpc).await, ["one", "About one."]);
}
