//! Arguments and results of tools in handlers of extensions are treated as in the original.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, text_of, with_extension};

/// An assigned `event.input` reached the tool; the original ignores it.
#[tokio::test]
async fn an_assigned_input_is_ignored_with_one_warning() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.on("tool_call", (event) => {
                event.input = { ...event.input, command: "echo replaced" };
            });
            pi.on("tool_call", (event) => {
                event.input.command += " in place";
            });
        };"#,
    )
    .await;
    let mut reports = Vec::new();
    for _ in 0..2 {
        server.push(Answer::tool("bash", json!({"command": "echo original"})));
        server.push(Answer::text("Done."));
        let events = rpc.run("go").await;
        let of = |kind: &str| -> Vec<Value> {
            let events = events.iter().filter(|one| one["type"] == kind);
            events.cloned().collect()
        };
        let [end] = &of("tool_execution_end")[..] else {
            panic!("{events:#?}")
        };
        assert_eq!(text_of(&end["result"]).trim_end(), "original in place");
        reports.extend(of("extension_warning"));
    }
    let [report] = &reports[..] else {
        panic!("{reports:#?}")
    };
    assert_eq!(
        report["message"],
        "The handler assigned event.input, which pi ignores: change it in place"
    );
    assert_eq!(report["event"], "tool_call");
    assert_eq!(report["location"]["line"], 2, "{report}");
}

/// The model was told that a call had failed although it had its effects, and extra members of
/// blocks were lost.
#[tokio::test]
async fn extra_members_of_result_blocks_are_kept() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let content = json!([
        {"type": "text", "text": "beside it", "annotations": {"audience": ["user"]}},
        {"type": "resource", "resource": {"uri": "x:1", "text": "of a server"}},
    ]);
    home.extension(
        "ext.ts",
        &format!(
            r#"export default (pi) => {{
                const parameters = {{ type: "object", properties: {{}} }};
                const content = {content};
                for (const name of ["kept", "told"]) {{
                    pi.registerTool({{ name, label: name, description: name, parameters,
                        execute: async () => ({{ content, details: {{}} }}) }});
                }}
                pi.on("tool_result", ({{ toolName, content, isError }}, ctx) => {{
                    ctx.ui.notify(JSON.stringify([toolName, isError, content[1]]));
                    if (toolName === "kept") return;
                    return {{ content: content.map((block) => block.resource ? {{ type: "text", text: block.resource.text }} : block) }};
                }});
            }};"#
        ),
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::tool("kept", json!({})));
    server.push(Answer::tool("told", json!({})));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;

    let ends = events
        .iter()
        .filter(|one| one["type"] == "tool_execution_end");
    for end in ends {
        assert_eq!(end["isError"], false, "{end}");
    }
    for name in ["kept", "told"] {
        let seen = json!([name, false, content[1]]).to_string();
        let notified = |line: &Value| line["message"] == seen.as_str();
        assert!(events.iter().any(notified), "{seen}: {events:#?}");
    }
    let errors = |line: &Value| line["type"] == "extension_error";
    assert_eq!(events.iter().find(|line| errors(line)), None);

    let request = server.last_request().body.to_string();
    assert!(request.contains("beside it"), "{request}");
    assert!(!request.contains("audience"), "{request}");
    // The text appears only where a handler has made one.
    assert_eq!(request.matches("of a server").count(), 1, "{request}");

    assert_eq!(rpc.close().await.code(), Some(0));
    let results: Vec<Value> = home
        .entries()
        .into_iter()
        .map(|mut entry| entry["message"].take())
        .filter(|message| message["role"] == "toolResult")
        .collect();
    assert_eq!(results[0]["content"], content, "{results:#?}");
    assert_eq!(results[0]["isError"], false);
    assert_eq!(results[1]["content"][1]["text"], "of a server");

    // The stored result can be read again.
    let mut rpc = home.rpc(&["-c"]);
    server.push(Answer::text("Still here."));
    assert_eq!(rpc.answer_to("and now?").await, "Still here.");
    let request = server.last_request().body.to_string();
    assert_eq!(request.matches("beside it").count(), 2, "{request}");
}

/// The block was stored with its unknown type, and models never got it.
#[tokio::test]
async fn a_block_of_unknown_type_is_reported_and_dropped() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("tool_result", ({ content }) => (
            { content: [...content, { type: "txt", text: "more" }] }
        ));"#,
    )
    .await;
    server.push(Answer::tool("bash", json!({"command": "echo all"})));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    let report = events.iter().find(|one| one["type"] == "extension_error");
    assert_eq!(
        report.expect("a report")["error"],
        "pi ignores the handler's change: content[1].type: unknown value `txt`, is `text` meant?"
    );
    let end = events
        .iter()
        .find(|one| one["type"] == "tool_execution_end");
    let content = &end.expect("an end")["result"]["content"];
    assert_eq!(content.as_array().map(Vec::len), Some(1), "{content}");
}
