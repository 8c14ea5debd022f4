//! Framing: line boundaries, responses, and the end of the process.

use model_server::Answer;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{idle, pause, prompt, until_ended, with_extension, without};

fn get_state() -> Value {
    json!({"type": "get_state"})
}

#[tokio::test]
async fn a_response_has_its_members_in_order() {
    let (_server, _home, mut rpc) = idle().await;
    rpc.send(r#"{"type":"set_thinking_level","level":"low","id":"seven"}"#)
        .await;
    rpc.send(r#"{"type":"get_last_assistant_text"}"#).await;
    rpc.ok(get_state()).await;
    let mut lines = rpc.raw_lines();
    lines.retain(|line| !line.contains("get_state"));
    lines.sort();
    assert_eq!(
        lines,
        [
            r#"{"id":"seven","type":"response","command":"set_thinking_level","success":true}"#,
            r#"{"type":"response","command":"get_last_assistant_text","success":true,"data":{}}"#,
            r#"{"type":"thinking_level_changed","level":"low"}"#,
        ]
    );
}

#[tokio::test]
async fn nothing_a_client_sends_ends_the_process() {
    let (_server, _home, mut rpc) = idle().await;
    let lines = [
        "",
        "{",
        "null",
        "[]",
        "7",
        "true",
        "\"x\"",
        "{}",
        r#"{"type":null}"#,
        r#"{"type":5}"#,
        r#"{"type":"prompt"}"#,
        r#"{"type":"prompt","message":7}"#,
        r#"{"type":"set_model"}"#,
        r#"{"type":"bash"}"#,
        r#"{"type":"switch_session","sessionPath":[]}"#,
        "\u{1F980}",
    ];
    for line in lines {
        let before = rpc.lines().len();
        rpc.send(line).await;
        let what = format!("an answer to {line:?}");
        let answer = rpc.wait(&what, |line| line["type"] == "response").await;
        assert_eq!(answer["success"], false, "{line:?} got {answer}");
        assert!(answer["error"].is_string(), "{line:?} got {answer}");
        assert_eq!(rpc.lines().len(), before + 1, "{line:?}");
    }
    rpc.send(r#"{"type":"extension_ui_response","id":"nobody asked","value":"x"}"#)
        .await;
    let before = rpc.lines().len();
    rpc.ok(get_state()).await;
    assert_eq!(rpc.lines().len(), before + 1, "a UI answer has no response");
}

#[tokio::test]
async fn a_dialog_response_with_both_members_is_read_by_the_dialog() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("ask", { handler: async (_, ctx) => {
            const sure = await ctx.ui.confirm("Sure?", "");
            const name = await ctx.ui.input("Name?");
            ctx.ui.notify(JSON.stringify([sure, name]));
        } });"#,
    )
    .await;
    rpc.send(r#"{"type":"prompt","message":"/ask"}"#).await;
    for method in ["confirm", "input"] {
        let requested = rpc.wait(method, |line| line["method"] == method).await;
        let answer = json!({"type": "extension_ui_response", "id": requested["id"],
            "value": "me", "confirmed": true});
        rpc.send(&answer.to_string()).await;
    }
    let reported = rpc.wait("notify", |line| line["method"] == "notify").await;
    assert_eq!(reported["message"], r#"[true,"me"]"#);
}

#[tokio::test]
async fn bytes_that_are_not_utf_8_are_a_bad_line() {
    let (_server, _home, mut rpc) = idle().await;
    rpc.write(b"\xff\xfe\xfd\n").await;
    let answer = rpc.event("response").await;
    assert_eq!(answer["command"], "parse");
    rpc.ok(get_state()).await;
}

#[tokio::test]
async fn a_bad_line_gets_a_parse_error() {
    let (_server, _home, mut rpc) = idle().await;
    for line in ["{\"type\": \"prompt\", ", ""] {
        rpc.send(line).await;
        let answer = rpc.event("response").await;
        let error = answer["error"].as_str().unwrap();
        assert!(error.starts_with("Failed to parse command: "), "{error}");
        let expected = json!({"type": "response", "command": "parse", "success": false,
            "errorCode": "parse_error"});
        assert_eq!(without(&answer, &["error"]), expected);
    }
}

#[tokio::test]
async fn an_unknown_command_is_named() {
    let (_server, _home, mut rpc) = idle().await;
    rpc.send(r#"{"type":"fly_away"}"#).await;
    let answer = rpc.event("response").await;
    assert_eq!(
        answer,
        json!({"type": "response", "command": "fly_away", "success": false,
            "error": "Unknown command: fly_away", "errorCode": "unknown_command"})
    );
}

#[tokio::test]
async fn a_carriage_return_belongs_to_the_line_end() {
    let (_server, _home, mut rpc) = idle().await;
    rpc.write(b"{\"type\":\"get_state\",\"id\":\"dos\"}\r\n")
        .await;
    let answer = rpc.event("response").await;
    assert_eq!(
        (&answer["id"], &answer["success"]),
        (&json!("dos"), &json!(true))
    );
}

#[tokio::test]
async fn only_line_feeds_end_a_line() {
    let (_server, _home, mut rpc) = idle().await;
    let id = "a\u{2028}b\u{2029}c\u{85}d";
    rpc.send(&format!(r#"{{"type":"get_state","id":"{id}"}}"#))
        .await;
    let answer = rpc.event("response").await;
    assert_eq!(
        (&answer["id"], &answer["success"]),
        (&json!(id), &json!(true))
    );
}

#[tokio::test]
async fn a_character_may_come_in_two_writes() {
    let (_server, _home, mut rpc) = idle().await;
    let line = "{\"type\":\"get_state\",\"id\":\"🦀\"}\n".as_bytes();
    let middle = line.len() - 5;
    rpc.write(&line[..middle]).await;
    pause(50).await;
    rpc.write(&line[middle..]).await;
    assert_eq!(rpc.event("response").await["id"], "🦀");
}

#[tokio::test]
async fn a_last_line_without_an_end_counts() {
    let (_server, _home, mut rpc) = idle().await;
    rpc.write(br#"{"type":"set_thinking_level","level":"low","id":"last"}"#)
        .await;
    rpc.close_stdin();
    assert_eq!(rpc.event("response").await["id"], "last");
    assert_eq!(rpc.end().await.code(), Some(0));
}

#[tokio::test]
async fn closing_stdin_ends_pi() {
    let (_server, _home, mut rpc) = idle().await;
    rpc.ok(get_state()).await;
    assert_eq!(rpc.close().await.code(), Some(0));
}

#[tokio::test]
async fn closing_stdin_ends_a_run() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::stall());
    rpc.ok(prompt("go")).await;
    server.received(1).await;
    assert_eq!(rpc.close().await.code(), Some(0));
}

/// A client that waited for the run kept the process, and the session's lock, for as long as
/// commands may take.
#[tokio::test]
async fn closing_stdin_ends_a_run_that_a_command_waits_for() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::stall());
    rpc.ok(prompt("go")).await;
    server.received(1).await;
    rpc.send(&json!({"type": "wait_for_idle", "id": "idle"}).to_string())
        .await;
    rpc.close_stdin();
    let ended = rpc.event("agent_end").await;
    assert_eq!(ended["messages"][1]["stopReason"], "aborted", "{ended}");
    rpc.wait("the answer", |line| {
        line["id"] == "idle" && line["success"] == true
    })
    .await;
    assert_eq!(rpc.end().await.code(), Some(0));
}

#[tokio::test]
async fn signals_have_their_exit_codes() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let (_server, _home, mut rpc) = idle().await;
        rpc.ok(get_state()).await;
        let process = i32::try_from(rpc.process_id()).unwrap();
        kill(Pid::from_raw(process), signal).unwrap();
        assert_eq!(rpc.end().await.code(), Some(code), "{signal}");
    }
}

#[tokio::test]
async fn sigterm_ends_running_commands() {
    let (_server, home, mut rpc) = idle().await;
    let command = "echo $$ > pid; sleep 300";
    rpc.send(&json!({"type": "bash", "command": command}).to_string())
        .await;
    let file = home.cwd().join("pid");
    let pid = loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        match text.trim().parse::<u64>() {
            Ok(pid) => break pid,
            Err(_) => pause(10).await,
        }
    };
    let process = i32::try_from(rpc.process_id()).unwrap();
    kill(Pid::from_raw(process), Signal::SIGTERM).unwrap();
    assert_eq!(rpc.end().await.code(), Some(143));
    until_ended(pid, "the command").await;
}

#[tokio::test]
async fn commands_overtake_each_other() {
    let (_server, _home, mut rpc) = idle().await;
    rpc.ok(get_state()).await;
    rpc.send(r#"{"type":"bash","command":"until [ -e go ]; do sleep 0.01; done","id":"slow"}"#)
        .await;
    rpc.ok(get_state()).await;
    let answered = rpc.lines().iter().any(|line| line["id"] == "slow");
    assert!(!answered, "it waits for the file");
    rpc.ok(json!({"type": "bash", "command": "touch go"})).await;
    rpc.wait("the slow one", |line| line["id"] == "slow").await;
}

/// The response came while an `input` handler still had the prompt.
#[tokio::test]
async fn wait_for_idle_waits_for_prompts_in_input_handlers() {
    let source = r#"export default (pi) => {
        const pause = () => new Promise((resolve) => setTimeout(resolve, 300));
        pi.on("input", async () => { await pause(); });
        pi.registerCommand("later", { handler: async () => {
            await pause();
            pi.sendUserMessage("from the command");
        }});
    };"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    for text in ["go", "/later"] {
        server.push(Answer::text("Done."));
        rpc.send(&prompt(text).to_string()).await;
        rpc.ok(json!({"type": "wait_for_idle"})).await;
        let state = rpc.ok(json!({"type": "get_last_assistant_text"})).await;
        assert_eq!(state["text"], "Done.", "{text}");
        rpc.ok(json!({"type": "new_session"})).await;
    }
}
