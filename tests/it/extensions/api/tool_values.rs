//! What goes into a tool's call and comes out of it, in the hands of extensions, is taken as
//! the original takes it.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, text_of, with_extension};

/// It was what the tool got; in the original nothing comes of it.
#[tokio::test]
async fn an_input_that_is_assigned_is_not_taken_and_told_once() {
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
        "The handler assigned event.input, and nothing comes of it: change it in place"
    );
    assert_eq!(report["event"], "tool_call");
    assert_eq!(report["location"]["line"], 2, "{report}");
}

/// The model was told that a call had failed whose effects had happened, and what blocks have
/// besides was lost.
#[tokio::test]
async fn what_blocks_of_a_server_have_besides_stays_in_results() {
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
    // Only where a handler has made a text of it.
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

    // What is stored is read again.
    let mut rpc = home.rpc(&["-c"]);
    server.push(Answer::text("Still here."));
    assert_eq!(rpc.answer_to("and now?").await, "Still here.");
    let request = server.last_request().body.to_string();
    assert_eq!(request.matches("beside it").count(), 2, "{request}");
}

/// It was kept as a block of a type of its own, which no model is told.
#[tokio::test]
async fn a_block_whose_type_a_handler_misspells_is_told_and_left_out() {
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
        "What the handler left was not taken: content[1].type: unknown value `txt`, is `text` meant?"
    );
    let end = events
        .iter()
        .find(|one| one["type"] == "tool_execution_end");
    let content = &end.expect("an end")["result"]["content"];
    assert_eq!(content.as_array().map(Vec::len), Some(1), "{content}");
}
