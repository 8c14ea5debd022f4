//! Aborts before a run has begun, session switches under a prompt, and programs that are told to
//! end.

use std::time::Duration;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, message_end, prompt, text_of, with_extension};

#[tokio::test]
async fn an_abort_during_an_input_handler_sends_no_request() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("input", async (event, ctx) => {
            ctx.ui.notify("waiting");
            await new Promise(() => {});
        });"#,
    )
    .await;
    rpc.send(&json!({"id": "p", "type": "prompt", "message": "go"}).to_string())
        .await;
    rpc.notified("waiting").await;
    rpc.ok(json!({"type": "abort"})).await;
    let answer = rpc
        .wait("the answer to the prompt", |line| line["id"] == "p")
        .await;
    assert_eq!(answer["success"], false);
    assert_eq!(answer["error"], "Operation aborted");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn an_abort_during_a_dialog_leaves_the_session_unchanged() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("session_before_switch", async (event, ctx) => {
            if (!(await ctx.ui.confirm("destroy?", "really"))) return { cancel: true };
        });"#,
    )
    .await;
    let before = rpc.ok(json!({"type": "get_state"})).await;
    rpc.send(&json!({"id": "n", "type": "new_session"}).to_string())
        .await;
    rpc.wait("the question", |line| line["method"] == "confirm")
        .await;
    rpc.ok(json!({"type": "abort"})).await;
    let answer = rpc.wait("the answer", |line| line["id"] == "n").await;
    assert_eq!(answer["data"]["cancelled"], true);
    let after = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(before["sessionId"], after["sessionId"]);
}

#[tokio::test]
async fn an_abort_during_new_session_also_aborts_a_waiting_prompt() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("session_before_switch", async (event, ctx) => {
            if (!(await ctx.ui.confirm("destroy?", "really"))) return { cancel: true };
        });"#,
    )
    .await;
    rpc.send(&json!({"type": "new_session"}).to_string()).await;
    rpc.wait("the question", |line| line["method"] == "confirm")
        .await;
    rpc.send(&json!({"id": "p", "type": "prompt", "message": "go"}).to_string())
        .await;
    rpc.ok(json!({"type": "abort"})).await;
    let answer = rpc
        .wait("the answer to the prompt", |line| line["id"] == "p")
        .await;
    assert_eq!(answer["error"], "Operation aborted");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_prompt_during_new_session_goes_to_the_new_one() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("session_shutdown", () =>
            new Promise((resolve) => setTimeout(resolve, 300)));"#,
    )
    .await;
    server.push(Answer::tool("bash", json!({"command": "true"})));
    server.push(Answer::text("Done."));
    rpc.send(&json!({"type": "new_session"}).to_string()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    rpc.ok(prompt("go")).await;
    rpc.event("agent_end").await;
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    let roles: Vec<&str> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
}

#[tokio::test]
async fn a_dialog_at_the_end_does_not_delay_the_program() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("session_shutdown", (event, ctx) =>
            ctx.ui.confirm("leave?", "really"));"#,
    )
    .await;
    rpc.ok(json!({"type": "get_state"})).await;
    rpc.close().await;
}

#[tokio::test]
async fn a_dialog_at_the_start_does_not_delay_the_program() {
    let (_server, _home, rpc) = with_extension(
        r#"export default (pi) => pi.on("session_start", (event, ctx) =>
            ctx.ui.confirm("begin?", "really"));"#,
    )
    .await;
    rpc.close().await;
}

#[tokio::test]
async fn messages_of_extensions_keep_their_order() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("many", { handler: async () => {
            for (const n of [1, 2, 3, 4]) pi.sendUserMessage(`m${n}`, { deliverAs: "followUp" });
        } });"#,
    )
    .await;
    for _ in 0..4 {
        server.push(Answer::text("ok"));
    }
    rpc.ok(prompt("/many")).await;
    server.wait_until_received(4).await;
    rpc.event("agent_end").await;
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    let output: Vec<String> = messages["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"][0]["text"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(output, ["m1", "m2", "m3", "m4"]);
}

#[tokio::test]
async fn a_shell_result_during_a_run_is_stored_at_the_end() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let mut rpc = home.rpc(&[]);
    server.push(Answer::stall());
    rpc.ok(prompt("go")).await;
    server.wait_until_received(1).await;
    rpc.ok(json!({"type": "bash", "command": "echo precious"}))
        .await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    let file = state["sessionFile"].as_str().unwrap().to_string();
    rpc.close().await;
    let stored = std::fs::read_to_string(file).unwrap();
    assert!(stored.contains("precious"), "{stored}");
}

#[tokio::test]
async fn abort_bash_aborts_the_latest_command() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let mut rpc = home.rpc(&[]);
    rpc.send(&json!({"id": "long", "type": "bash", "command": "sleep 30"}).to_string())
        .await;
    rpc.send(&json!({"id": "short", "type": "bash", "command": "true"}).to_string())
        .await;
    rpc.send(&json!({"id": "last", "type": "bash", "command": "sleep 31"}).to_string())
        .await;
    rpc.wait("the short one", |line| line["id"] == "short")
        .await;
    rpc.ok(json!({"type": "abort_bash"})).await;
    let last = rpc.wait("the last one", |line| line["id"] == "last").await;
    assert_eq!(last["data"]["cancelled"], true);
    rpc.close().await;
}

/// Chance decided which of the two came first.
#[tokio::test]
async fn the_reason_of_a_gate_that_aborts_and_blocks_is_sent() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("tool_call", (event, ctx) => {
            ctx.abort();
            return { block: true, reason: "BLOCKED by the gate" };
        });"#,
    )
    .await;
    for _ in 0..8 {
        server.push(Answer::tool("bash", json!({"command": "echo 1"})));
        rpc.ok(prompt("go")).await;
        let end = rpc.event("tool_execution_end").await;
        assert_eq!(end["result"]["content"][0]["text"], "BLOCKED by the gate");
        rpc.event("agent_settled").await;
    }
}

/// The abort returned at once, and the next prompt waited for the handler.
#[tokio::test]
async fn an_abort_abandons_the_handler_that_blocks_the_queue() {
    let rename = json!({"type": "set_session_name", "name": "n"});
    for (event, command) in [
        ("turn_end", prompt("one")),
        ("message_update", prompt("one")),
        ("agent_before_settle", prompt("one")),
        ("agent_settled", prompt("one")),
        ("session_info_changed", rename),
    ] {
        let source = format!(
            r#"let calls = 0;
            export default (pi) => pi.on("{event}", (_event, ctx) => {{
                calls += 1;
                if (calls > 1) return;
                ctx.ui.notify("hangs");
                return new Promise(() => {{}});
            }});"#
        );
        let (server, home, _) = with_extension(&source).await;
        home.settings(json!({"extensionTimeouts": {"handler": 600_000}}));
        let mut rpc = home.rpc(&[]);
        if command["type"] == "prompt" {
            server.push(Answer::text("One."));
        }
        rpc.ok(command).await;
        rpc.notified("hangs").await;
        rpc.ok(json!({"type": "abort"})).await;
        server.push(Answer::text("Two."));
        rpc.ok(prompt("two")).await;
        rpc.wait(&format!("the answer after {event}"), |line| {
            message_end("assistant")(line) && text_of(&line["message"]) == "Two."
        })
        .await;
    }
}

/// Handlers of an aborted `agent_end` have a short time each, and handlers after them still get the
/// event.
#[tokio::test]
async fn an_abandoned_handler_gets_missed_events_once_settled() {
    let source = r#"export default (pi) => {
        let turns = 0;
        let settle;
        pi.on("turn_end", async (event, ctx) => {
            turns += 1;
            ctx.ui.notify(`turn ${turns}`);
            if (turns > 1) return;
            await new Promise((resolve) => (settle = resolve));
            ctx.ui.notify("settled");
        });
        pi.on("agent_end", (event, ctx) => ctx.ui.notify("end"));
        pi.registerCommand("settle", { handler: async () => settle() });
    };"#;
    let (server, home, _) = with_extension(source).await;
    home.settings(json!({"extensionTimeouts": {"handler": 600_000}}));
    let mut rpc = home.rpc(&[]);
    for text in ["One.", "Two.", "Three."] {
        server.push(Answer::text(text));
    }
    rpc.ok(prompt("one")).await;
    rpc.notified("turn 1").await;
    rpc.ok(json!({"type": "abort"})).await;
    rpc.notified("end").await;
    for message in ["two", "three"] {
        // The aborted run has ended, before or after its notification.
        let from = rpc.count();
        rpc.ok(prompt(message)).await;
        let is_end = |line: &Value| line["type"] == "agent_settled";
        rpc.find(from, "the end of the run", is_end).await;
    }
    rpc.ok(prompt("/settle")).await;
    for output in ["settled", "turn 2", "turn 3"] {
        rpc.notified(output).await;
    }
    let reported = rpc.lines();
    let output = reported.iter().filter(|line| line["method"] == "notify");
    let output: Vec<&str> = output.filter_map(|line| line["message"].as_str()).collect();
    let expected = ["turn 1", "end", "end", "end", "settled", "turn 2", "turn 3"];
    assert_eq!(output, expected);
    // From here on the handler is treated like others.
    rpc.ok(prompt("four")).await;
    rpc.notified("turn 4").await;
}

/// The wait took the whole shutdown time whatever the user did.
#[tokio::test]
async fn an_abort_ends_the_wait_for_session_shutdown() {
    let source = r#"export default (pi) => pi.on("session_shutdown", (event, ctx) => {
        if (event.reason === "quit") return;
        ctx.ui.notify(`hangs: ${event.reason}`);
        return new Promise(() => {});
    });"#;
    let (_server, home, _) = with_extension(source).await;
    home.settings(json!({"extensionTimeouts": {"shutdown": 600_000}}));
    let mut rpc = home.rpc(&[]);
    for (command, reason) in [("new_session", "new"), ("reload", "reload")] {
        rpc.send(&json!({"id": command, "type": command}).to_string())
            .await;
        rpc.notified(&format!("hangs: {reason}")).await;
        rpc.ok(json!({"type": "abort"})).await;
        let answer = rpc.wait(command, |line| line["id"] == command).await;
        assert_eq!(answer["success"], true, "{answer}");
        assert_ne!(answer["data"]["cancelled"], true);
    }
}

/// pi waited two seconds for the tool, whatever it returned.
#[tokio::test]
async fn an_immediate_result_of_an_aborted_tool_counts() {
    let source = r#"export default (pi) => {
        const tool = (name, takes) => pi.registerTool({
            name, label: name, description: "d",
            parameters: { type: "object", properties: {} },
            execute: (id, params, signal, update, ctx) => new Promise((resolve) => {
                signal.addEventListener("abort", () => setTimeout(() => resolve({
                    content: [{ type: "text", text: `${name} was stopped` }], details: {},
                }), takes));
                ctx.ui.notify("runs");
            }),
        });
        tool("quick", 0);
        tool("slow", 1200);
        pi.on("tool_result", async (event, ctx) => {
            if (event.toolName !== "bash") return;
            ctx.ui.notify("runs");
            await new Promise((resolve) => ctx.signal.addEventListener("abort",
                () => setTimeout(resolve, 1200)));
            return { content: [{ type: "text", text: "too late" }] };
        });
    };"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    for (tool, output) in [
        ("quick", "quick was stopped"),
        ("slow", "Operation aborted"),
        ("bash", "1\n"),
    ] {
        server.push(Answer::tool(tool, json!({"command": "echo 1"})));
        rpc.ok(prompt("go")).await;
        rpc.notified("runs").await;
        rpc.ok(json!({"type": "abort"})).await;
        let end = rpc.event("tool_execution_end").await;
        assert_eq!(text_of(&end["result"]), output);
        rpc.event("agent_settled").await;
    }
}

/// Each prompt cost the full limit again.
#[tokio::test]
async fn the_limit_of_an_unsettled_handler_shrinks() {
    let source = r#"export default (pi) => {
        let settle = [];
        pi.on("context", async (event, ctx) => {
            await new Promise((resolve) => settle.push(resolve));
        });
        pi.registerCommand("settle", { handler: async () => {
            settle.splice(0).forEach((one) => one());
            // The handlers have settled once the command has.
            await new Promise((resolve) => setTimeout(resolve));
        } });
    };"#;
    let (server, home, _) = with_extension(source).await;
    home.settings(json!({"extensionTimeouts": {"handler": 1600}}));
    let mut rpc = home.rpc(&[]);
    server.repeat(Answer::text("Yes."));
    for (limit, settles) in [("1.6", false), ("0.4", false), ("0.1", true), ("1.6", true)] {
        rpc.ok(prompt("go")).await;
        // No notice precedes it if the program gets no time between half of the limit and its end.
        let error = rpc.event("extension_error").await;
        let text = error["error"].as_str().unwrap();
        let expected = format!("The context handler timed out after {limit} s");
        assert!(text.starts_with(&expected), "{error}");
        rpc.event("agent_settled").await;
        if settles {
            rpc.ok(prompt("/settle")).await;
        }
    }
}

/// The results of such handlers were not awaited, and the user did not learn which extension it
/// was.
#[tokio::test]
async fn a_handler_that_hangs_after_an_abort_is_reported() {
    let source = r#"export default (pi) => {
        for (const name of ["turn_start", "context"]) pi.on(name, (event, ctx) => {
            ctx.ui.notify(`${name} hangs`);
            return new Promise(() => {});
        });
    };"#;
    let (_server, home, _) = with_extension(source).await;
    home.settings(json!({"extensionTimeouts": {"handler": 3000}}));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("one")).await;
    rpc.notified("turn_start hangs").await;
    rpc.ok(json!({"type": "abort"})).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["event"], "turn_start");
    // The aborted run calls no further handlers.
    let is_next = |line: &Value| line["message"] == "context hangs";
    assert!(!rpc.lines().iter().any(is_next));
    rpc.ok(prompt("two")).await;
    rpc.notified("context hangs").await;
    rpc.ok(json!({"type": "abort"})).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["event"], "context");
    let text = error["error"].as_str().unwrap();
    assert!(text.contains("after the wait for it was aborted"), "{text}");
}
