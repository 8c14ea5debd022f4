//! Session files of other programs, with members in other forms.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, text_of};

/// A user's message with an id of any form.
fn user_entry(id: Value, parent: Value, timestamp: Value, text: &str) -> String {
    json!({
        "type": "message", "id": id, "parentId": parent, "timestamp": timestamp,
        "message": {"role": "user", "content": text, "timestamp": 1},
    })
    .to_string()
}

#[tokio::test]
async fn entries_of_other_writers_are_read_reported_and_kept() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let header = json!({
        "type": "session", "version": "3", "id": "other", "timestamp": 1_700_000_000_000_i64,
        "cwd": home.cwd(),
    });
    let content = [
        header.to_string(),
        user_entry(json!(1), json!(null), json!(1_700_000_000_001_i64), "one"),
        user_entry(json!(2), json!(1), json!(null), "two"),
        user_entry(
            json!("c"),
            json!(2),
            json!("2026-01-01T00:00:00.000Z"),
            "three",
        ),
    ]
    .join("\n")
        + "\n";
    let file = home.file("other.jsonl", &content);
    let path = file.to_str().unwrap();
    server.repeat(Answer::text("Yes."));
    let mut rpc = home.rpc(&["-ne", "--session", path]);
    assert_eq!(rpc.answer_to("four").await, "Yes.");
    let warning = rpc.stderr_line("not in the form that pi writes").await;
    assert!(warning.contains("4 line(s)"), "{warning}");
    assert_eq!(rpc.stderr().matches("not in the form").count(), 1);
    assert!(rpc.close().await.success());
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.starts_with(&content), "what was there is as it was");
    // The original finds all entries where it compares ids by type.
    let more = home
        .run_original(&["-ne", "--session", path, "-p", "five"])
        .await;
    more.ok();
    let body = server.last_request().body;
    let reported = body["messages"].as_array().unwrap().iter().map(text_of);
    let expected = ["one", "two", "three", "four", "Yes.", "five"];
    assert_eq!(reported.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_entry_with_a_numeric_id_can_be_visited_and_labelled() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let header = json!({"type": "session", "version": 3, "id": "other", "cwd": home.cwd()});
    let content = [
        header.to_string(),
        user_entry(
            json!(1),
            json!(null),
            json!("2026-01-01T00:00:00.000Z"),
            "one",
        ),
        user_entry(json!(2), json!(1), json!("2026-01-01T00:00:00.000Z"), "two"),
    ]
    .join("\n");
    let file = home.file("other.jsonl", &(content + "\n"));
    home.extension(
        "look.ts",
        r#"export default (pi) => pi.registerCommand("look", { handler: async (_, ctx) => {
            const branch = ctx.sessionManager.getBranch();
            pi.setLabel(branch[0].id, "first");
            const label = ctx.sessionManager.getLabel(branch[0].id);
            ctx.ui.notify(`${branch.map((entry) => typeof entry.id + entry.id)} ${label}`);
        } });"#,
    );
    let mut rpc = home.rpc(&["--session", file.to_str().unwrap()]);
    rpc.ok(json!({"type": "prompt", "message": "/look"})).await;
    rpc.notified("string1,string2 first").await;
    let forked = rpc.ok(json!({"type": "fork", "entryId": "2"})).await;
    assert_eq!(forked["text"], "two", "{forked}");
    assert!(rpc.close().await.success());
}
