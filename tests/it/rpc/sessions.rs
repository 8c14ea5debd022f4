//! Commands take effect in the session in which they were sent, whichever session is open when they
//! end; and other guarantees about session switches.

use std::path::{Path, PathBuf};

use model_server::{Answer, ModelServer, Received};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{Home, Rpc, read_jsonl, text_of};

async fn with(extension: &str) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    if !extension.is_empty() {
        home.extension("it.ts", extension);
    }
    let rpc = home.rpc(&[]);
    (server, home, rpc)
}

async fn file(rpc: &mut Rpc) -> PathBuf {
    let state = rpc.ok(json!({"type": "get_state"})).await;
    state["sessionFile"].as_str().unwrap().into()
}

fn switch_to(path: &Path) -> Value {
    json!({"type": "switch_session", "sessionPath": path})
}

/// The stored output of the user's shell commands and the user's messages.
fn stored(path: &Path) -> Vec<String> {
    let messages = read_jsonl(path).into_iter().filter_map(|mut entry| {
        let message = entry["message"].take();
        match message["role"].as_str()? {
            "bashExecution" => Some(message["output"].as_str()?.to_owned()),
            "user" => Some(text_of(&message)),
            _ => None,
        }
    });
    messages.collect()
}

/// Starts a shell command that prints its name and ends when a file of that name exists.
async fn command(rpc: &mut Rpc, name: &str) {
    let script = format!("echo {name}; until [ -e {name} ]; do sleep 0.05; done");
    rpc.begin(name, json!({"type": "bash", "command": script}))
        .await;
    rpc.wait("its output", |line| {
        line["type"] == "bash_execution_update" && line["id"] == name
    })
    .await;
}

async fn finish(home: &Home, rpc: &mut Rpc, name: &str) {
    home.file(name, "");
    let ended = rpc.response(name).await;
    assert_eq!(ended["data"]["exitCode"], 0, "{ended}");
}

#[tokio::test]
async fn shell_output_belongs_to_the_session_of_its_command() {
    let (server, home, mut rpc) = with("").await;
    rpc.run("one of A").await;
    let a = file(&mut rpc).await;
    command(&mut rpc, "first-of-A").await;
    command(&mut rpc, "second-of-A").await;
    command(&mut rpc, "third-of-A").await;
    rpc.ok(json!({"type": "new_session"})).await;
    finish(&home, &mut rpc, "first-of-A").await;
    rpc.run("one of B").await;
    let b = file(&mut rpc).await;
    command(&mut rpc, "first-of-B").await;
    let sent = server.last_request();
    assert!(!sent.body.to_string().contains("of-A"), "{sent:?}");
    assert_eq!(stored(&a), ["one of A", "first-of-A\n"]);
    // Return to a session in which commands still run.
    rpc.ok(switch_to(&a)).await;
    finish(&home, &mut rpc, "first-of-B").await;
    finish(&home, &mut rpc, "second-of-A").await;
    rpc.run("two of A").await;
    let sent = server.last_request().body.to_string();
    assert!(sent.contains("second-of-A") && !sent.contains("of-B"));
    let entry = &rpc.ok(json!({"type": "get_fork_messages"})).await["messages"][1]["entryId"];
    rpc.ok(json!({"type": "fork", "entryId": entry})).await;
    finish(&home, &mut rpc, "third-of-A").await;
    let of_a = [
        "one of A",
        "first-of-A\n",
        "second-of-A\n",
        "two of A",
        "third-of-A\n",
    ];
    assert_eq!(stored(&a), of_a);
    assert_eq!(stored(&b), ["one of B", "first-of-B\n"]);
    assert_eq!(stored(&file(&mut rpc).await), of_a[..3]);
    // No lock is left on the file.
    let mut other = home.rpc(&["--session", b.to_str().unwrap()]);
    other.run("two of B").await;
    assert_eq!(stored(&b).last().unwrap(), "two of B");
}

const SLOW: &str = r#"export default (pi) => {
    const wait = (ctx, text) => text.includes("slow") && ctx.ui.input("go on?");
    pi.on("input", async ({ text }, ctx) => { if (text.startsWith("slow input")) await wait(ctx, text); });
    pi.on("before_agent_start", async ({ prompt }, ctx) => {
        if (prompt.startsWith("slow start")) await wait(ctx, prompt);
    });
    pi.registerCommand("elsewhere", { handler: async (_, ctx) => { await ctx.newSession(); } });
};"#;

#[tokio::test]
async fn pending_prompts_do_not_move_to_another_session() {
    let (server, _home, mut rpc) = with(SLOW).await;
    rpc.run("one of A").await;
    let a = file(&mut rpc).await;
    rpc.ok(json!({"type": "new_session"})).await;
    rpc.run("one of B").await;
    let b = file(&mut rpc).await;
    for text in ["slow input", "slow start"] {
        rpc.ok(switch_to(&a)).await;
        rpc.begin(
            text,
            json!({"type": "prompt", "message": text, "streamingBehavior": "steer"}),
        )
        .await;
        let question = rpc.ui("input").await;
        let went = rpc.ok(switch_to(&b)).await;
        assert_eq!(went["cancelled"], false);
        // Dialogs of a replaced session end without a response.
        let refused = rpc.response(text).await;
        assert_eq!(refused["errorCode"], "aborted", "{refused}");
        rpc.reply(&question, json!({"value": "yes"})).await;
        rpc.ok(json!({"type": "wait_for_idle"})).await;
    }
    assert_eq!(stored(&a), ["one of A"]);
    assert_eq!(stored(&b), ["one of B"]);
    assert_eq!(server.requests().len(), 2);
    // Commands during the replacement are for the new session, and do not cause the replacing
    // command to be refused.
    let lines = [
        json!({"type": "prompt", "message": "/elsewhere", "id": "c"}),
        json!({"type": "new_session", "id": "n"}),
        json!({"type": "prompt", "message": "at last", "id": "p"}),
    ];
    let lines = lines.map(|line| format!("{line}\n")).concat();
    rpc.write(lines.as_bytes()).await;
    for id in ["c", "n", "p"] {
        let answer = rpc.response(id).await;
        assert_eq!(answer["success"], true, "{answer}");
    }
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    assert_eq!(stored(&file(&mut rpc).await), ["at last"]);
    assert_eq!(stored(&b), ["one of B"]);
}

const WAITS: &str = include_str!("fixtures/sessions.ts");

/// The user's messages since a line, in order.
fn said_since(rpc: &Rpc, from: usize) -> Vec<String> {
    let ends = rpc.lines().into_iter().skip(from);
    let users = ends.filter(crate::support::message_end("user"));
    users.map(|line| text_of(&line["message"])).collect()
}

/// Starts a compaction and waits until its handler opens a dialog.
async fn compacting(server: &ModelServer, rpc: &mut Rpc) -> (Value, usize) {
    server.push(Answer::text("Long.").usage(190_000, 5));
    rpc.ok(json!({"type": "prompt", "message": "long"})).await;
    rpc.event("compaction_start").await;
    (rpc.ui("input").await, rpc.lines().len())
}

#[tokio::test]
async fn messages_during_a_compaction_are_sent_in_order() {
    let (server, home, _) = with(WAITS).await;
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    let mut rpc = home.rpc(&[]);
    rpc.run("one").await;
    let yes = json!({"value": "yes"});
    let queue = |kind: &str, text: &str| json!({"type": kind, "message": text});

    let (question, from) = compacting(&server, &mut rpc).await;
    rpc.ok(queue("follow_up", "F")).await;
    rpc.ok(queue("steer", "S")).await;
    rpc.reply(&question, yes.clone()).await;
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    assert_eq!(said_since(&rpc, from), ["S", "F"]);

    // The prompt is accepted, however long its handlers take.
    let (question, from) = compacting(&server, &mut rpc).await;
    rpc.ok(queue("steer", "S")).await;
    rpc.ok(queue("follow_up", "F")).await;
    rpc.begin("X", queue("prompt", "wait, X")).await;
    let at = rpc.lines().len();
    rpc.reply(&question, yes.clone()).await;
    rpc.event("compaction_end").await;
    // The prompt may go on before the client gets `compaction_end`, so the order is open.
    let is_question = |line: &Value| line["method"] == "input";
    let (_, question) = rpc.find(at, "the question about X", is_question).await;
    rpc.reply(&question, yes.clone()).await;
    let accepted = rpc.response("X").await;
    assert_eq!(accepted["data"]["disposition"], "started", "{accepted}");
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    assert_eq!(said_since(&rpc, from), ["wait, X", "S", "F"]);

    // A queued message waits no longer than until the prompt is dropped.
    let (question, from) = compacting(&server, &mut rpc).await;
    rpc.ok(queue("steer", "S")).await;
    rpc.begin("Y", queue("prompt", "drop Y")).await;
    let other = rpc.ui("input").await;
    rpc.reply(&question, yes.clone()).await;
    rpc.event("compaction_end").await;
    rpc.reply(&other, yes.clone()).await;
    assert_eq!(rpc.response("Y").await["data"]["disposition"], "handled");
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    assert_eq!(said_since(&rpc, from), ["S"]);

    // After an abort the message waits for the next run, and starts none.
    let (question, from) = compacting(&server, &mut rpc).await;
    rpc.ok(queue("steer", "S")).await;
    rpc.begin("Z", queue("prompt", "drop Z")).await;
    rpc.ui("input").await;
    rpc.reply(&question, yes.clone()).await;
    rpc.event("compaction_end").await;
    rpc.ok(json!({"type": "abort"})).await;
    let aborted = rpc.response("Z").await;
    assert_eq!(aborted["error"], "Operation aborted", "{aborted}");
    rpc.begin("W", queue("prompt", "drop W")).await;
    let question = rpc.ui("input").await;
    rpc.reply(&question, yes).await;
    assert_eq!(rpc.response("W").await["data"]["disposition"], "handled");
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    assert!(said_since(&rpc, from).is_empty());
    rpc.run("next").await;
    assert_eq!(said_since(&rpc, from), ["next", "S"]);
}

#[tokio::test]
async fn commands_that_need_not_wait_are_answered_in_order() {
    let (_server, _home, mut rpc) = with("").await;
    rpc.ok(json!({"type": "get_state"})).await;
    let from = rpc.lines().len();
    let line = |id| match id % 3 {
        0 => json!({"id": id, "type": "ping"}),
        _ => json!({"id": id, "type": "get_state"}),
    };
    let lines: Vec<String> = (0..2000).map(|id| format!("{}\n", line(id))).collect();
    rpc.write(lines.concat().as_bytes()).await;
    rpc.ok(json!({"type": "get_state"})).await;
    let answers = rpc.lines().into_iter().skip(from);
    let ids: Vec<u64> = answers.filter_map(|line| line["id"].as_u64()).collect();
    assert_eq!(ids, (0..2000).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_empty_path_is_no_session() {
    let (_server, home, mut rpc) = with("").await;
    rpc.run("one").await;
    let open = file(&mut rpc).await;
    let refused = rpc.request(switch_to(Path::new(""))).await;
    assert_eq!(refused["errorCode"], "invalid_name", "{refused}");
    assert_eq!(file(&mut rpc).await, open);
    rpc.run("two").await;
    assert_eq!(stored(&open), ["one", "two"]);
    // An empty name counts as an omitted one where names are optional.
    let page = rpc
        .ok(json!({"type": "export_html", "outputPath": ""}))
        .await;
    let page = home.cwd().join(page["path"].as_str().unwrap());
    assert!(page.extension().is_some_and(|end| end == "html") && page.is_file());
    rpc.ok(json!({"type": "new_session", "parentSession": ""}))
        .await;
    rpc.run("three").await;
    let header = read_jsonl(&file(&mut rpc).await).remove(0);
    assert_eq!(header.get("parentSession"), None, "{header}");
}

#[tokio::test]
async fn a_shell_command_that_pi_ends_keeps_its_output() {
    for stdin in [true, false] {
        let (_server, home, mut rpc) = with("").await;
        let path = file(&mut rpc).await;
        command(&mut rpc, "never").await;
        match stdin {
            true => rpc.close_stdin(),
            false => {
                let pid = i32::try_from(rpc.process_id()).unwrap();
                kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
            }
        }
        rpc.end().await;
        let answer = rpc.response("never").await;
        let reported = json!({"output": "never\n", "cancelled": true, "truncated": false});
        assert_eq!(answer["data"], reported, "{answer}");
        let entries = read_jsonl(&path);
        let kept = &entries.last().unwrap()["message"];
        assert_eq!(kept["role"], "bashExecution", "{entries:?}");
        assert_eq!(
            (&kept["output"], &kept["cancelled"]),
            (&json!("never\n"), &json!(true))
        );
        assert_eq!(kept.get("exitCode"), None);
        drop(home);
    }
}

const QUESTIONS: &str = r#"export default (pi) => {
    pi.registerCommand("ask", { handler: async (_, { ui }) => {
        const said = [await ui.input("?"), await ui.confirm("?", "?"), await ui.select("?", ["a"])];
        ui.notify(JSON.stringify(said.map((one) => one ?? "nothing")));
    } });
};"#;

#[tokio::test]
async fn a_dialog_response_gets_no_response() {
    let (_server, _home, mut rpc) = with(QUESTIONS).await;
    rpc.ok(json!({"type": "hello", "capabilities": null, "client": null}))
        .await;
    rpc.begin("ask", json!({"type": "prompt", "message": "/ask"}))
        .await;
    let question = rpc.ui("input").await;
    rpc.send(r#"{"type":"extension_ui_response","value":"whose?"}"#)
        .await;
    rpc.reply(&question, json!({"value": 5})).await;
    let question = rpc.ui("confirm").await;
    rpc.reply(&question, json!({"confirmed": "yes"})).await;
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"value": {"a": 1}})).await;
    rpc.notified(r#"["5",true,"nothing"]"#).await;
    let done = rpc.response("ask").await;
    assert_eq!(done["success"], true, "{done}");
    let lines = rpc.lines();
    let answered = lines
        .iter()
        .find(|line| line["command"] == "extension_ui_response");
    assert_eq!(answered, None);
}

const THROWS: &str = r#"export default (pi) => {
    const thrown = {
        error: () => new TypeError("boom"),
        text: () => "it's \"so\"\nand so",
        named: () => Object.assign(new Error("mine: all mine"), { name: "Refusal" }),
        caused: () => new Error("outside", { cause: new Error("inside") }),
        number: () => 7,
        nothing: () => undefined,
    };
    const wrong = (what) => { throw thrown[what](); };
    pi.registerCommand("throws", { handler: async (what) => wrong(what) });
    pi.registerCommand("later", { handler: async (what) => void setTimeout(wrong, 0, what) });
    pi.on("input", ({ text }) => { if (text in thrown) wrong(text); });
    pi.on("agent_settled", async () => wrong("named"));
};"#;

#[tokio::test]
async fn an_error_is_the_thrown_text_with_details_beside_it() {
    let (_server, _home, mut rpc) = with(THROWS).await;
    let cases = [
        ("error", "boom", Some("TypeError: boom\n    at ")),
        ("text", "it's \"so\"\nand so", None),
        ("named", "mine: all mine", Some("mine: all mine\n    at ")),
        ("caused", "outside", Some("inside\n    at ")),
        ("number", "7", None),
        ("nothing", "undefined", None),
    ];
    for (what, plain, stack) in cases {
        let ways = ["/throws ", "/later ", ""];
        for text in ways.map(|way| format!("{way}{what}")) {
            rpc.ok(json!({"type": "prompt", "message": text})).await;
            let error = rpc.event("extension_error").await;
            assert_eq!(error["error"], plain, "{text}: {error}");
            let reported = error["stack"].as_str();
            assert!(
                stack.is_none_or(|stack| reported.is_some_and(|reported| reported.contains(stack))),
                "{text}: {error}"
            );
            if text == what {
                // A handler whose result is ignored.
                let error = rpc.event("extension_error").await;
                assert_eq!(error["error"], "mine: all mine", "{error}");
            }
        }
    }
}

/// The output went to the copied file, or waited for another prompt.
#[tokio::test]
async fn a_shell_command_joins_the_branch_when_the_session_is_idle() {
    let (server, _home, mut rpc) = with("").await;
    let echo = |text: &str| json!({"type": "bash", "command": format!("echo {text}")});
    server.push(Answer::text("Slow.").stall_after(1));
    rpc.ok(json!({"type": "prompt", "message": "one"})).await;
    rpc.event("message_update").await;
    rpc.ok(echo("important")).await;
    rpc.ok(json!({"type": "clone"})).await;
    assert_eq!(stored(&file(&mut rpc).await), ["one", "important\n"]);

    let go = "until [ -e go ]; do sleep 0.05; done";
    server.push(Answer::tool("bash", json!({ "command": go })));
    rpc.ok(json!({"type": "prompt", "message": "two"})).await;
    rpc.event("tool_execution_start").await;
    rpc.ok(echo("now; touch go")).await;
    rpc.event("agent_settled").await;
    let path = file(&mut rpc).await;
    assert_eq!(stored(&path), ["one", "important\n", "two", "now\n"]);
}

#[tokio::test]
async fn a_file_that_was_truncated_externally_is_not_written() {
    let (_server, home, mut rpc) = with("").await;
    rpc.run("one").await;
    let path = file(&mut rpc).await;
    std::fs::write(&path, "").unwrap();
    rpc.ok(json!({"type": "prompt", "message": "two"})).await;
    let error = rpc.event("extension_error").await["error"].clone();
    let error = error.as_str().unwrap();
    assert!(
        error.contains("was shortened") && error.contains("/clone"),
        "{error}"
    );
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    rpc.ok(json!({"type": "clone"})).await;
    assert_eq!(stored(&file(&mut rpc).await), ["one", "two"]);
    assert_eq!(home.sessions().len(), 2);
}

/// Starts runs by itself for a while, as loop extensions do.
const GOES_ON: &str = r#"export default (pi) => {
    let count = 0;
    pi.on("agent_end", async () => {
        if (count++ >= 3) return;
        await new Promise((resolve) => setTimeout(resolve, 5));
        pi.sendUserMessage("go on " + count);
    });
};"#;

#[tokio::test]
async fn messages_of_agent_end_do_not_move_to_another_session() {
    for command in ["new_session", "clone"] {
        let (server, _home, mut rpc) = with(GOES_ON).await;
        server.push(Answer::text("Slow.").stall_after(1));
        rpc.ok(json!({"type": "prompt", "message": "one"})).await;
        rpc.event("message_update").await;
        rpc.ok(json!({"type": command})).await;
        rpc.ok(json!({"type": "wait_for_idle"})).await;
        assert_eq!(server.requests().len(), 1, "{command}");
    }
}

/// Both waited for runs that began while they waited for the end of the first.
#[tokio::test]
async fn compaction_and_abort_do_not_wait_for_later_runs() {
    let (server, home, _) = with(GOES_ON).await;
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    server.answer_by(|request: &Received| {
        let messages = request.body["messages"].as_array().unwrap();
        let last = messages.last().unwrap().to_string();
        let stalls = !last.contains("</conversation>") && !last.contains("one");
        let fine = Answer::text("Fine.");
        Some(if stalls { fine.stall_after(1) } else { fine })
    });
    for command in ["compact", "abort"] {
        let mut rpc = home.rpc(&["--no-extensions"]);
        rpc.run("one").await;
        assert!(rpc.close().await.success());
        let mut rpc = home.rpc(&["-c"]);
        rpc.ok(json!({"type": "prompt", "message": "two"})).await;
        rpc.event("message_update").await;
        rpc.ok(json!({"type": command})).await;
        rpc.event("agent_start").await;
        rpc.kill().await;
    }
}

/// An extension that restarted the agent whenever it stopped prevented session switches and
/// compactions for ever.
#[tokio::test]
async fn an_extension_that_always_continues_blocks_no_switch() {
    let never = "export default (pi) => pi.on('agent_end', async () => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        pi.sendMessage({ customType: 'more', content: 'Go on.', display: false }, { triggerTurn: true });
    });";
    let (server, home, _) = with(never).await;
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    server.answer_by(|_: &Received| Some(Answer::text("Fine.")));
    for command in ["compact", "new_session", "clone"] {
        let mut rpc = home.rpc(&[]);
        rpc.ok(json!({"type": "prompt", "message": "one"})).await;
        for _ in 0..3 {
            rpc.event("agent_end").await;
        }
        rpc.ok(json!({"type": command})).await;
        if command == "compact" {
            // The extension continues after that.
            rpc.event("agent_start").await;
            rpc.kill().await;
            continue;
        }
        let state = rpc.ok(json!({"type": "get_state"})).await;
        assert_eq!(state["isStreaming"], false, "{state}");
        rpc.close_stdin();
        rpc.end().await;
    }
}
