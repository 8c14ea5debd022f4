//! Handlers of events whose results are ignored share the agent's object, as in the original: a
//! secret that a handler removes from a message at its start is gone.

use model_server::{Answer, ModelServer, Received};
use serde_json::{Value, json};

use crate::support::{Home, prompt, text_of};

const CHANGES: &str = include_str!("fixtures/in-place-changes/changes.ts");

fn result_for_model(request: &Received) -> &Value {
    &request.body["messages"][2]["content"][0]
}

/// The change was lost, and the model got the secret.
#[tokio::test]
async fn in_place_changes_at_start_and_end_events_count() {
    for original in [true, false] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.extension("a.ts", CHANGES);
        home.extension(
            "b.ts",
            r#"export default (pi) => {
                pi.on("tool_execution_end", (event, ctx) => ctx.ui.notify(event.result.content[0].text));
            };"#,
        );
        server.push(Answer::tool("say", json!({"x": "it"})));
        server.push(Answer::text("Done."));
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        let events = rpc.run("a secret").await;
        let output = "said it, begun, ended";
        let requests = server.requests();
        let [asked, told] = &requests[..] else {
            panic!("{original}: {requests:#?}")
        };
        assert_eq!(text_of(&asked.body["messages"][0]), "a ***", "{original}");
        assert_eq!(text_of(result_for_model(told)), output, "{original}");
        let shown = |kind: &str| {
            let event = events.iter().find(|one| one["type"] == kind);
            event.unwrap_or_else(|| panic!("no {kind}")).clone()
        };
        assert_eq!(text_of(&shown("message_start")["message"]), "a ***");
        let args = shown("tool_execution_start")["args"].clone();
        assert_eq!(args, json!({"x": "it, begun"}), "{original}");
        assert_eq!(text_of(&shown("tool_execution_end")["result"]), output);
        let notified = events.iter().find(|one| one["method"] == "notify");
        assert_eq!(notified.unwrap()["message"], output, "{original}");
        let stored = rpc.request(json!({"type": "get_messages"})).await;
        let messages = stored["data"]["messages"].as_array().unwrap();
        assert_eq!(text_of(&messages[0]), "a ***", "{original}");
        assert_eq!(text_of(&messages[2]), output, "{original}");
        assert_eq!(messages[2]["details"], json!({"x": "it, begun"}));
    }
}

#[tokio::test]
async fn an_unusable_change_is_reported_and_undone() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("a.ts", CHANGES);
    home.extension(
        "b.ts",
        r#"export default (pi) => {
            pi.on("message_start", ({ message }) => { if (message.role === "user") message.role = "assistant"; });
            pi.on("tool_execution_start", (event) => { event.args = "none"; });
            pi.on("tool_execution_end", ({ result }) => { delete result.content; });
        };"#,
    );
    server.push(Answer::tool("say", json!({"x": "it"})));
    server.push(Answer::text("Done."));
    let mut rpc = home.rpc(&[]);
    let events = rpc.run("a secret").await;
    let reports: Vec<_> = events
        .iter()
        .filter(|one| one["type"] == "extension_error")
        .map(|one| {
            (
                one["event"].as_str().unwrap(),
                one["error"].as_str().unwrap(),
            )
        })
        .collect();
    let refused = |problem: &str| format!("pi ignores the handler's change: {problem}");
    let expected = [
        (
            "message_start",
            refused("a message of the role \"user\" cannot become one of \"assistant\""),
        ),
        (
            "tool_execution_start",
            refused("`args` cannot be used: invalid type: string \"none\", expected an object"),
        ),
        (
            "tool_execution_end",
            refused("`result` cannot be used: content is missing"),
        ),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|(event, text)| (*event, &**text))
        .collect();
    assert_eq!(reports, expected);
    let reported = &server.requests()[1];
    assert_eq!(text_of(result_for_model(reported)), "said it, begun, ended");
}

/// In queued events the listeners had not run when `setModel` returned.
#[tokio::test]
async fn model_select_listeners_run_before_set_model_returns() {
    for original in [true, false] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.extension(
            "a.ts",
            include_str!(
                "fixtures/in-place-changes/model-select-listeners-run-before-set-model-returns.ts"
            ),
        );
        server.push(Answer::text("Done."));
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        rpc.ok(prompt("go")).await;
        let notified = rpc.ui("notify").await;
        let story: Value = serde_json::from_str(notified["message"].as_str().unwrap()).unwrap();
        let expected = json!([
            "message_end",
            "selected",
            "selected",
            true,
            "turn_end",
            "selected",
            true,
            "agent_end",
            "selected",
            true,
        ]);
        assert_eq!(story, expected, "{original}");
    }
}
