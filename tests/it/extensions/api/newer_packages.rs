//! Parts of the API that packages for newer versions use.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt, with_extension};

#[tokio::test]
async fn session_entries_become_messages_of_a_model() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    home.extension(
        "ext.ts",
        include_str!("fixtures/newer-packages/session-entries-become-messages-of-a-model.ts"),
    );
    let mut rpc = home.rpc(&[]);
    for text in ["one", "two"] {
        rpc.run(text).await;
    }
    server.push(Answer::text("They counted."));
    rpc.ok(json!({"type": "compact"})).await;
    rpc.run("three").await;
    rpc.ok(prompt("/look")).await;
    let output = rpc.ui("notify").await["message"].clone();
    let output: Value = serde_json::from_str(output.as_str().unwrap()).unwrap();
    for (member, expected) in [
        ("same", json!(true)),
        ("agrees", json!(true)),
        ("none", json!([])),
        ("folder", json!(".pi")),
    ] {
        assert_eq!(output[member], expected, "{output}");
    }
    let reported = output["told"].to_string();
    assert!(
        reported.contains("They counted.")
            && reported.contains("three")
            && !reported.contains("one"),
        "{reported}"
    );
}

#[tokio::test]
async fn providers_can_be_looked_up_and_called() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "ext.ts",
        include_str!("fixtures/newer-packages/providers-can-be-looked-up-and-called.ts"),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/look")).await;
    let output = rpc.ui("notify").await["message"].clone();
    let output: Value = serde_json::from_str(output.as_str().unwrap()).unwrap();
    let expected = json!({
        "asked": "Fine.", "last": "done", "id": "scripted", "models": 1,
        "nobody": null, "ids": ["mine"], "same": true, "not": null,
        "names": ["Of mine", "xAI", "nobody"],
        "status": [{"configured": true, "source": "fallback"}, {"configured": false}],
    });
    assert_eq!(output, expected);
}

#[tokio::test]
async fn a_switch_to_the_open_session_restarts_it() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "ext.ts",
        r#"export default (pi) => { for (const name of ["session_shutdown", "session_start"])
          pi.on(name, (event) => console.error(`${name} ${event.reason}.`)); };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.run("one").await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    let file = &state["sessionFile"];
    let done = rpc
        .ok(json!({"type": "switch_session", "sessionPath": file}))
        .await;
    assert_eq!(done["cancelled"], false);
    let again = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(again["sessionFile"], *file);
    assert_eq!(again["messageCount"], 2);
    rpc.run("two").await;
    let messages = server.last_request().body["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 3, "{messages}");
    for reported in ["session_shutdown resume.", "session_start resume."] {
        rpc.stderr_line(reported).await;
    }
}

#[tokio::test]
async fn prompt_guidelines_and_transient_errors_are_known() {
    let (_server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/newer-packages/prompt-guidelines-and-transient-errors-are-known.ts"
    ))
    .await;
    rpc.ok(prompt("/look")).await;
    rpc.notified(r#"[["Be brief"],true,false,false,false,true,true,false,[1],{}]"#)
        .await;
}

/// A member that pi ignored would be a surprise.
#[tokio::test]
async fn a_provider_without_auth_is_reported() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "ext.ts",
        r#"export default (pi) => {
          pi.registerCommand("native", { handler: async () => pi.registerProvider({ id: "n", name: "N", getModels: () => [] }) });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/native")).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["event"], "command");
    let part = "auth of an object with getModels() must have apiKey or oauth";
    assert!(error["error"].as_str().unwrap().contains(part), "{error}");
}

/// The functions were there and threw: packages that check `if (pi.registerVirtualModel)` did not
/// load.
#[tokio::test]
async fn unsupported_functions_are_absent_and_explain_their_use() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "careful.ts",
        r#"export default (pi) => {
          if (typeof pi.registerVirtualModel === "function") pi.registerVirtualModel({});
          pi.registerMcpServer?.("x", {});
          pi.registerCommand("fine", { handler: async (_args, ctx) => ctx.ui.notify("fine") });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/fine")).await;
    rpc.notified("fine").await;
    home.extension(
        "rash.ts",
        "export default (pi) => { pi.registerMcpServer('x', { command: 'x' }); };",
    );
    let mut rpc = home.rpc(&[]);
    let error = rpc.event("extension_error").await;
    let text = error["error"].as_str().unwrap();
    let reported =
        "pi.registerMcpServer is not a function in this version of pi: pi speaks no MCP itself";
    assert!(text.contains(reported), "{error}");
}
