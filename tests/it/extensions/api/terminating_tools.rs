//! Tools that end the run, and helpers that pi exports to extensions.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Home, Rpc, prompt, with_extension};

const EXTENSION: &str = include_str!("fixtures/terminating-tools.ts");

/// Returns the texts of the tools' results, and whether the model was asked again.
async fn called(server: &ModelServer, rpc: &mut Rpc, tools: &[&str]) -> (Vec<Value>, bool) {
    let before = server.requests().len();
    let calls = tools.iter().map(|name| match *name {
        "bash" => json!({"tool": {"name": "bash", "arguments": {"command": "true"}}}),
        name => json!({"tool": {"name": name, "arguments": {}}}),
    });
    let blocks: Vec<Value> = calls.collect();
    server.push(serde_json::from_value::<Answer>(json!({ "blocks": blocks })).unwrap());
    rpc.run("call").await;
    let requested = server.requests().len() - before;
    let lines = rpc.lines();
    let ended = lines
        .iter()
        .filter(|line| line["type"] == "tool_execution_end");
    let ended: Vec<Value> = ended
        .map(|line| line["result"]["terminate"].clone())
        .collect();
    let new = ended.len() - tools.len();
    (ended[new..].to_vec(), requested > 1)
}

#[tokio::test]
async fn a_run_ends_when_all_results_of_an_answer_terminate_it() {
    let (server, _home, mut rpc) = with_extension(EXTENSION).await;
    server.repeat(Answer::text("Asked again."));
    for (tools, expected) in [
        (&["ends"][..], false),
        (&["ends", "ends_too"], false),
        (&["bash"], false),
        (&["ends", "bash"], false),
        (&["ends", "goes_on"], true),
        (&["odd"], true),
    ] {
        let (output, again) = called(&server, &mut rpc, tools).await;
        assert_eq!(again, expected, "{tools:?}: {output:?}");
        assert_eq!(
            output[0],
            if tools[0] == "odd" {
                Value::Null
            } else {
                json!(true)
            }
        );
    }
    // Queued messages are still sent.
    rpc.ok(json!({"type": "follow_up", "message": "and then?"}))
        .await;
    let (_, again) = called(&server, &mut rpc, &["ends"]).await;
    assert!(again);
    let last = server.last_request().body["messages"].to_string();
    assert!(last.contains("and then?"), "{last}");
}

#[tokio::test]
async fn helpers_for_texts_images_and_the_clipboard_work() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext.ts", EXTENSION);
    let programs = home.cwd().join("bin");
    fs::create_dir_all(&programs).unwrap();
    let clipboard = programs.join("xclip");
    fs::write(&clipboard, "#!/bin/sh\nexec cat > clipboard\n").unwrap();
    fs::set_permissions(&clipboard, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command
        .args(["--mode", "rpc"])
        .env("PATH", format!("{}:{path}", programs.display()))
        .env("DISPLAY", ":9")
        .env_remove("WAYLAND_DISPLAY")
        .env_remove("TERMUX_VERSION");
    let mut rpc = Rpc::start(command);
    rpc.ok(prompt("/services")).await;
    let output = rpc.ui("notify").await;
    let output: Value = serde_json::from_str(output["message"].as_str().unwrap()).unwrap();
    let note = "[Image: original 8x4, displayed at 2x1. Multiply coordinates by 4.00 to map to \
                original image.]";
    let expected = json!([
        {"diff": "   ...\n-2 b\n+2 c", "firstChangedLine": 2},
        "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-a\n+b\n",
        [2, 1, note],
        null,
        [true, true, false],
        "resizeImage",
    ]);
    assert_eq!(output, expected);
    let copied = fs::read_to_string(home.cwd().join("clipboard")).unwrap();
    assert_eq!(copied, "copied");
}

/// The error does not advise to install a program that may be installed.
#[tokio::test]
async fn a_failing_clipboard_reports_the_reason() {
    // A terminal would accept the text.
    if fs::File::open("/dev/tty").is_ok() {
        return;
    }
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext.ts", EXTENSION);
    let programs = home.cwd().join("bin");
    fs::create_dir_all(&programs).unwrap();
    let clipboard = programs.join("xclip");
    fs::write(&clipboard, "#!/bin/sh\nexit 3\n").unwrap();
    fs::set_permissions(&clipboard, fs::Permissions::from_mode(0o755)).unwrap();
    for (display, expected) in [
        (Some(":9"), "xclip: exit status: 3; xsel: not installed; "),
        (
            None,
            "no desktop (neither WAYLAND_DISPLAY nor DISPLAY is set); ",
        ),
    ] {
        let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
        command
            .args(["--mode", "rpc"])
            .env("PATH", &programs)
            .envs(display.map(|display| ("DISPLAY", display)))
            .env_remove("WAYLAND_DISPLAY")
            .env_remove("TERMUX_VERSION");
        if display.is_none() {
            command.env_remove("DISPLAY");
        }
        let mut rpc = Rpc::start(command);
        rpc.ok(prompt("/services")).await;
        let error = rpc.event("extension_error").await["error"].to_string();
        let expected = format!("nothing took the text: {expected}no terminal (/dev/tty: ");
        assert!(error.contains(&expected), "{error}");
    }
}

/// Clients of the original read `isError` there, which means nothing to the agent.
#[tokio::test]
async fn extra_members_of_a_result_are_emitted_and_not_stored() {
    let (server, home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.registerTool({ name: "odd", label: "Odd", description: "d",
                parameters: { type: "object", properties: {} },
                execute: async () => ({ content: [{ type: "text", text: "no" }], details: { a: 1 },
                    isError: true, mine: [2] }) });
            pi.on("tool_execution_end", ({ result, isError }, ctx) =>
                ctx.ui.notify(JSON.stringify([result.isError, result.mine, isError])));
        };"#,
    )
    .await;
    server.push(Answer::tool("odd", json!({})));
    server.push(Answer::text("Done."));
    rpc.ok(prompt("go")).await;
    // Newer versions let a tool return `isError`.
    rpc.notified("[true,[2],true]").await;
    let end = rpc.event("tool_execution_end").await;
    assert_eq!(
        (&end["result"]["isError"], &end["isError"]),
        (&json!(true), &json!(true))
    );
    rpc.event("agent_end").await;
    let stored = home.entries();
    let result = stored.iter().map(|entry| &entry["message"]);
    let result = result
        .into_iter()
        .find(|it| it["role"] == "toolResult")
        .unwrap();
    assert_eq!(result["isError"], true);
    assert_eq!(result.get("mine"), None);
}
