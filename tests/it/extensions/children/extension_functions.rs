//! Extensions that child sessions get as functions (`extensionFactories`).

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt, with_extension};

/// Sub-agents pass guards in this way; the loader refused them, and with them their tools.
#[tokio::test]
async fn a_child_takes_extensions_as_functions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "guarded.ts",
        include_str!("fixtures/extension-functions/a-child-takes-extensions-as-functions.ts"),
    );
    for call in [
        Answer::tool("bash", json!({"command": "rm x"})),
        Answer::tool("bash", json!({"command": "echo given"})),
        Answer::tool("mine", json!({})),
        Answer::text("Fine."),
    ] {
        server.push(call);
    }
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/guard")).await;
    let expected = json!([
        ["no bash", "changed|seen false", "from mine|seen false"],
        [
            "session_start",
            "turn_start 0",
            "turn_end 0",
            "turn_start 1",
            "turn_end 1",
            "turn_start 2",
            "turn_end 2",
            "turn_start 3",
            "turn_end 3",
            "agent_end",
            "session_shutdown"
        ],
        true,
    ]);
    rpc.notified(&expected.to_string()).await;
    rpc.ok(prompt("/refused")).await;
    let here = "is not available to an extension of extensionFactories in this version of pi";
    let expected = json!([
        format!("pi.on(\"input\") {here}"),
        format!("pi.registerCommand {here}"),
        "broken guard",
    ]);
    rpc.notified(&expected.to_string()).await;
}

/// pi-subagents passes such functions to its children, and no child session could start.
#[tokio::test]
async fn extension_functions_change_messages_and_requests() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "changes.ts",
        include_str!(
            "fixtures/extension-functions/extension-functions-change-messages-and-requests.ts"
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(r#"["hello",true]"#).await;
    let body = server.last_request().body;
    let (reported, system) = (body["messages"].to_string(), body["system"].to_string());
    assert!(
        reported.contains("noted") && !reported.contains("secret"),
        "{body}"
    );
    assert!(system.contains("Mine. And mine."), "{system}");
    assert_eq!(body["temperature"], 0.75);
    let slip = |line: &serde_json::Value| line["error"] == "a slip in context";
    rpc.find(0, "the slip", slip).await;
}

/// The usage that the handlers reported was lost.
#[tokio::test]
async fn handlers_of_a_child_report_the_usage_of_a_tool() {
    let server = ModelServer::start().await;
    for tool in ["mine", "other"] {
        server.push(Answer::tool(tool, json!({})));
    }
    server.push(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "costs.ts",
        include_str!(
            "fixtures/extension-functions/handlers-of-a-child-report-the-usage-of-a-tool.ts"
        ),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(r#"[{"input":5},{"input":9}]"#).await;
}

/// Newer versions emit the entry to listeners of the session.
#[tokio::test]
async fn an_extension_of_a_child_appends_entries() {
    let server = ModelServer::start().await;
    server.push(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "notes.ts",
        include_str!("fixtures/extension-functions/an-extension-of-a-child-appends-entries.ts"),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/note")).await;
    let expected = json!(["pi.appendEntry", [["noted", {"turn": 1}]], [true]]);
    rpc.notified(&expected.to_string()).await;
}

/// No event was emitted: the caller of `createAgentSession` sets names and levels, too.
#[tokio::test]
async fn a_child_emits_changes_of_name_and_thinking_level() {
    let (_server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/extension-functions/a-child-emits-changes-of-name-and-thinking-level.ts"
    ))
    .await;
    rpc.ok(prompt("/go")).await;
    let expected = json!({
        "atOnce": 2,
        "heard": [
            ["session_info_changed", "mine"],
            ["thinking_level_changed", "high"],
            ["thinking_level_changed", "off"],
        ],
        "handled": ["mine", "low high", "high off"],
    });
    rpc.notified(&expected.to_string()).await;
}

/// The result was lost, and the session continued without it.
#[tokio::test]
async fn turn_end_results_apply_to_the_child() {
    let server = ModelServer::start().await;
    for text in ["One.", "Two."] {
        server.push(Answer::text(text));
    }
    let home = Home::new(&server);
    home.extension(
        "drafts.ts",
        include_str!("fixtures/extension-functions/turn-end-results-apply-to-the-child.ts"),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    let expected = json!({
        "seen": [
            [0, "completed", "One.", false],
            [["custom", "custom_message"], true, true],
            [1, "completed", "Two.", false],
            [[], false, false],
        ],
        "heard": ["noted", "more"],
        "stored": ["message", "message", "noted", "more", "message"],
    });
    rpc.notified(&expected.to_string()).await;
    let request = server.last_request().body["messages"].to_string();
    assert!(request.contains("And more?"), "{request}");
    // The report may come before the notification or after it.
    let is_error = |line: &Value| line["type"] == "extension_error";
    let (_, error) = rpc.find(0, "an extension_error", is_error).await;
    let text = error["error"].as_str().unwrap();
    assert!(
        text.contains("entries[2]") && text.contains("nonsense"),
        "{text}"
    );
}

/// Published sub-agents write their guard as an object, as the original's loaders return
/// extensions.
#[tokio::test]
async fn an_extension_object_guards_a_child() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "written.ts",
        include_str!("fixtures/extension-functions/an-extension-object-guards-a-child.ts"),
    );
    server.push(Answer::tools([
        ("bash", json!({"command": "ls"})),
        ("mine", json!({})),
    ]));
    server.push(Answer::text("Fine."));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    let expected = json!([
        ["no bash", "from mine"],
        "written:gate: what its `commands` have is not available to an extension of extensionFactories in this version \
         of pi",
    ]);
    rpc.notified(&expected.to_string()).await;
}
