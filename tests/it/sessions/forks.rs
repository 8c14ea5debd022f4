//! Forks, clones, and sessions that extensions create and open.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, TIMEOUT, pause, prompt, read_jsonl, text_of};

/// An extension that notifies session events.
const WATCH: &str = include_str!("fixtures/forks/watch.js");

async fn session_event(rpc: &mut Rpc, event: &str) -> Value {
    let start = format!("{event} ");
    let line = rpc
        .wait(event, |line| {
            let text = line["message"].as_str().unwrap_or_default();
            line["method"] == "notify" && text.starts_with(&start)
        })
        .await;
    let text = line["message"].as_str().unwrap();
    serde_json::from_str(&text[start.len()..]).unwrap()
}

#[tokio::test]
async fn setup_writes_to_the_new_session_of_a_command() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("watch.js", WATCH);
    home.extension(
        "begin.js",
        include_str!("fixtures/forks/setup-writes-to-the-new-session-of-a-command.js"),
    );
    server.push(Answer::text("First."));
    server.push(Answer::text("Second."));
    let mut rpc = home.rpc(&[]);
    assert_eq!(
        session_event(&mut rpc, "session_start").await,
        json!({"reason": "startup"})
    );
    rpc.run("one").await;
    let old = home.session();
    let old = old.file_name().unwrap().to_str().unwrap();
    rpc.ok(prompt("/begin")).await;
    assert_eq!(
        session_event(&mut rpc, "session_before_switch").await,
        json!({"reason": "new"})
    );
    let left = session_event(&mut rpc, "session_shutdown").await;
    assert_eq!(left["reason"], "new");
    assert_eq!(
        session_event(&mut rpc, "session_start").await,
        json!({"reason": "new", "previousSessionFile": old})
    );
    rpc.notified("in model_change,thinking_level_change,message,label,custom true")
        .await;
    rpc.event("agent_end").await;
    assert_eq!(
        rpc.message_texts().await,
        ["from before true", "go on", "Second."]
    );
    assert_eq!(
        stderr_line(&rpc, 0, "done").await,
        r#"done {"cancelled":false}"#
    );
    let now = rpc.ok(json!({"type": "get_state"})).await;
    let file = now["sessionFile"].as_str().unwrap();
    assert_eq!(left["targetSessionFile"], file.rsplit('/').next().unwrap());
    let text = fs::read_to_string(file).unwrap();
    let message = r#""message":{"role":"user","content":[{"type":"text","text":"from before true"}],"timestamp":7,"extra":[1.5]}}"#;
    assert!(text.contains(message), "{text}");
    assert_eq!(
        text.matches(r#""type":"model_change""#).count(),
        1,
        "{text}"
    );
    assert!(rpc.close().await.success());
}

/// Slash commands for operations that only extensions have.
const COMMANDS: &str = include_str!("fixtures/forks/commands.js");

const VETO: &str = r#"
export default function (pi) {
  for (const name of ["session_before_switch", "session_before_fork"]) {
    pi.on(name, () => ({ cancel: true }));
  }
}
"#;

/// Runs a slash command and returns the line of stderr with its outcome.
async fn logged(rpc: &mut Rpc, command: &str, start: &str) -> String {
    let before = rpc.stderr().len();
    rpc.ok(prompt(command)).await;
    stderr_line(rpc, before, start).await
}

/// The line of stderr that starts with this text, after the first `from` bytes.
async fn stderr_line(rpc: &Rpc, from: usize, start: &str) -> String {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    loop {
        let stderr = rpc.stderr();
        let (whole, _) = stderr[from..].rsplit_once('\n').unwrap_or_default();
        if let Some(line) = whole.lines().find(|line| line.starts_with(start)) {
            return line.to_owned();
        }
        assert!(tokio::time::Instant::now() < deadline, "{start}: {stderr}");
        // stdout and stderr are not ordered with each other.
        pause(10).await;
    }
}

async fn file(rpc: &mut Rpc) -> String {
    let state = rpc.ok(json!({"type": "get_state"})).await;
    state["sessionFile"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn forks_and_clones_copy_the_branch() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("watch.js", WATCH);
    home.extension("commands.js", COMMANDS);
    for answer in ["First.", "Second.", "Third."] {
        server.push(Answer::text(answer));
    }
    let mut rpc = home.rpc(&[]);
    rpc.run("one").await;
    rpc.run("two").await;
    let first = file(&mut rpc).await;
    let entries = rpc.ok(json!({"type": "get_entries"})).await;
    let list = entries["entries"].as_array().unwrap().clone();
    assert_eq!(entries["leafId"], list.last().unwrap()["id"]);
    let id = |text: &str| -> String {
        let found = list.iter().find(|entry| text_of(&entry["message"]) == text);
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let since = json!({"type": "get_entries", "since": id("two")});
    let since = rpc.ok(since).await;
    assert_eq!(since["entries"].as_array().unwrap().len(), 1);
    let unknown = json!({"type": "get_entries", "since": "nope"});
    assert!(rpc.refused(unknown).await.contains("nope"));

    // A fork before a message of the user leaves the message out.
    let forked = rpc.ok(json!({"type": "fork", "entryId": id("two")})).await;
    assert_eq!(forked, json!({"text": "two", "cancelled": false}));
    let requested = session_event(&mut rpc, "session_before_fork").await;
    assert_eq!(
        requested,
        json!({"entryId": id("two"), "position": "before"})
    );
    assert_eq!(
        session_event(&mut rpc, "session_shutdown").await["reason"],
        "fork"
    );
    assert_eq!(
        session_event(&mut rpc, "session_start").await["reason"],
        "fork"
    );
    assert_eq!(rpc.message_texts().await, ["one", "First."]);
    let second = file(&mut rpc).await;
    assert_eq!(
        read_jsonl(second.as_ref())[0]["parentSession"],
        first.as_str()
    );

    // A fork at an entry includes the entry, which may be of any type.
    let back = json!({"type": "switch_session", "sessionPath": first});
    assert_eq!(rpc.ok(back).await, json!({"cancelled": false}));
    assert_eq!(
        session_event(&mut rpc, "session_before_switch").await["reason"],
        "resume"
    );
    let answer = logged(&mut rpc, &format!("/fork {} at", id("two")), "fork").await;
    assert_eq!(answer, r#"fork: {"cancelled":false}"#);
    assert_eq!(rpc.message_texts().await, ["one", "First.", "two"]);
    let answer = logged(
        &mut rpc,
        &format!("/fork {} after", id("two")),
        "fork failed",
    )
    .await;
    assert!(answer.contains("\"after\""), "{answer}");
    let answer = logged(&mut rpc, "/fork nope at", "fork failed").await;
    assert!(answer.contains("Invalid entry ID"), "{answer}");
    let of_assistant = json!({"type": "fork", "entryId": id("First.")});
    assert_eq!(
        rpc.refused(of_assistant).await,
        "Invalid entry ID for forking"
    );

    // A clone has all entries and continues on its own.
    rpc.ok(json!({"type": "switch_session", "sessionPath": first}))
        .await;
    let cloned = rpc.ok(json!({"type": "clone"})).await;
    assert_eq!(cloned, json!({"cancelled": false}));
    rpc.run("three").await;
    assert_eq!(
        rpc.message_texts().await,
        ["one", "First.", "two", "Second.", "three", "Third."]
    );
    assert_eq!(
        read_jsonl(first.as_ref()).len(),
        1 + list.len(),
        "the first stays as it is"
    );
    assert!(rpc.close().await.success());
}

#[tokio::test]
async fn a_tree_has_branches_and_labels() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let file = home.cwd().join("tree.jsonl");
    let user = |id: &str, parent: Value, second: u32| {
        json!({"type": "message", "id": id, "parentId": parent,
            "timestamp": format!("2026-01-01T00:00:0{second}.000Z"),
            "message": {"role": "user", "content": id, "timestamp": 1}})
    };
    let mood =
        r#"{"type":"mood","n":1.0,"id":"c","parentId":"a","timestamp":"2026-01-01T00:00:01.000Z"}"#;
    let lines = [
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z",
            "cwd": home.cwd()})
        .to_string(),
        user("a", Value::Null, 0).to_string(),
        user("b", json!("a"), 2).to_string(),
        mood.to_string(),
        user("lost", json!("gone"), 3).to_string(),
        json!({"type": "label", "id": "d", "parentId": "b", "timestamp": "2026-01-01T00:00:04.000Z",
            "targetId": "a", "label": "start"})
        .to_string(),
    ];
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let mut rpc = home.rpc(&["--session", file.to_str().unwrap()]);
    let data = rpc.ok(json!({"type": "get_tree"})).await;
    assert_eq!(data["leafId"], "d");
    let shape = |node: &Value| -> Value {
        fn ids(node: &Value) -> Value {
            let children: Vec<Value> = node["children"]
                .as_array()
                .unwrap()
                .iter()
                .map(ids)
                .collect();
            json!({ node["entry"]["id"].as_str().unwrap(): children })
        }
        ids(node)
    };
    let roots: Vec<Value> = data["tree"].as_array().unwrap().iter().map(shape).collect();
    assert_eq!(
        roots,
        [
            json!({"a": [{"c": []}, {"b": [{"d": []}]}]}),
            json!({"lost": []})
        ]
    );
    let first = &data["tree"][0];
    assert_eq!(
        (&first["label"], &first["labelTimestamp"]),
        (&json!("start"), &json!("2026-01-01T00:00:04.000Z"))
    );
    rpc.close().await;
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, lines.join("\n") + "\n", "looking changes nothing");
}

#[tokio::test]
async fn an_extension_may_cancel_a_switch() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("commands.js", COMMANDS);
    home.extension("veto.js", VETO);
    server.push(Answer::text("First."));
    let mut rpc = home.rpc(&[]);
    rpc.run("one").await;
    let first = file(&mut rpc).await;
    let other = home.cwd().join("other.jsonl").display().to_string();
    let user = rpc.ok(json!({"type": "get_fork_messages"})).await["messages"][0]["entryId"].clone();
    for command in [
        json!({"type": "new_session"}),
        json!({"type": "switch_session", "sessionPath": other}),
        json!({"type": "fork", "entryId": user}),
        json!({"type": "clone"}),
    ] {
        assert_eq!(
            rpc.ok(command.clone()).await,
            json!({"cancelled": true}),
            "{command}"
        );
    }
    let user = user.as_str().unwrap();
    for (command, start) in [
        (format!("/fork {user} at"), "fork:"),
        (format!("/switch {other}"), "switch:"),
        ("/bad".to_string(), "bad:"),
    ] {
        let answer = logged(&mut rpc, &command, start).await;
        assert_eq!(answer, format!(r#"{start} {{"cancelled":true}}"#));
    }
    assert_eq!(file(&mut rpc).await, first);
    assert_eq!(home.sessions().len(), 1);
}

#[tokio::test]
async fn a_failed_switch_keeps_the_session() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("commands.js", COMMANDS);
    server.push(Answer::text("First."));
    let mut rpc = home.rpc(&[]);
    rpc.run("one").await;
    let first = file(&mut rpc).await;
    let answer = logged(&mut rpc, "/broken", "broken failed").await;
    assert_eq!(answer, "broken failed: no setup");
    let answer = logged(&mut rpc, "/bad", "bad failed").await;
    assert!(answer.contains("content"), "{answer}");
    let answer = logged(&mut rpc, "/write", "write failed").await;
    assert!(
        answer.contains("ctx.sessionManager.appendMessage()"),
        "{answer}"
    );
    let text = home.file("text.jsonl", "no session\n");
    let answer = logged(
        &mut rpc,
        &format!("/switch {}", text.display()),
        "switch failed",
    )
    .await;
    assert!(answer.contains("not a session file"), "{answer}");
    assert_eq!(file(&mut rpc).await, first);
    assert_eq!(home.sessions().len(), 1, "nothing was begun");
    assert_eq!(rpc.message_texts().await, ["one", "First."]);
}

#[tokio::test]
async fn a_session_that_records_its_model_gets_no_second_entry() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("commands.js", COMMANDS);
    server.push(Answer::text("First."));
    let mut rpc = home.rpc(&[]);
    let answer = logged(&mut rpc, "/quiet", "quiet").await;
    assert_eq!(answer, r#"quiet: {"cancelled":false}"#);
    let types = ["model_change", "thinking_level_change", "custom"];
    let entries = rpc.ok(json!({"type": "get_entries"})).await["entries"].take();
    let found = entries.as_array().unwrap().iter();
    let found: Vec<&str> = found.map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(found, types);
    // A fork before the first message gets none, either.
    rpc.run("one").await;
    let user = rpc.ok(json!({"type": "get_fork_messages"})).await["messages"][0]["entryId"].take();
    rpc.ok(json!({"type": "fork", "entryId": user})).await;
    let entries = rpc.ok(json!({"type": "get_entries"})).await["entries"].take();
    assert_eq!(entries.as_array().unwrap().len(), types.len());
}

#[tokio::test]
async fn with_session_uses_the_new_session() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"shutdown": 200}}));
    home.extension("commands.js", COMMANDS);
    server.push(Answer::text("First."));
    let mut rpc = home.rpc(&[]);
    rpc.run("one").await;
    let other = home.cwd().canonicalize().unwrap().join("other.jsonl");
    rpc.send(
        &json!({"type": "prompt", "message": format!("/visit {}", other.display())}).to_string(),
    )
    .await;
    let question = rpc.ui("confirm").await;
    rpc.reply(&question, json!({"confirmed": true})).await;
    rpc.wait("the message", |line| {
        line["type"] == "message_end" && line["message"]["content"] == "left here"
    })
    .await;
    assert_eq!(rpc.message_texts().await, ["left here"]);
    rpc.wait("the end of the command", |line| {
        line["type"] == "response" && line["command"] == "prompt"
    })
    .await;
    assert_eq!(
        stderr_line(&rpc, 0, "visit").await,
        r#"visit: [{"cancelled":false},[true,true,true,true,true]]"#
    );
    assert!(rpc.close().await.success());
}

#[tokio::test]
async fn new_sessions_are_stored_beside_the_open_one() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let own = home.cwd().canonicalize().unwrap().join("own");
    let start = own.join("mine.jsonl").display().to_string();
    for answer in ["First.", "Second."] {
        server.push(Answer::text(answer));
    }
    let mut rpc = home.rpc(&["--session", &start]);
    rpc.run("one").await;
    rpc.ok(json!({"type": "clone"})).await;
    rpc.ok(json!({"type": "new_session", "parentSession": start}))
        .await;
    rpc.run("two").await;
    let now = file(&mut rpc).await;
    assert_eq!(fs::read_dir(&own).unwrap().count(), 3);
    assert_eq!(read_jsonl(now.as_ref())[0]["parentSession"], start.as_str());
    assert_eq!(home.sessions().len(), 0);
}

#[tokio::test]
async fn the_confirm_example_asks_before_a_switch() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example("confirm-destructive.ts");
    server.push(Answer::text("First."));
    let mut rpc = home.rpc(&[]);
    rpc.run("one").await;
    let first = file(&mut rpc).await;
    let user = rpc.ok(json!({"type": "get_fork_messages"})).await["messages"][0]["entryId"].take();
    let user = user.as_str().unwrap();
    let other = home.cwd().join("other.jsonl").display().to_string();
    let fork = json!({"id": "f", "type": "fork", "entryId": user});
    let switch = json!({"id": "s", "type": "switch_session", "sessionPath": other});
    for (command, method, no, yes) in [
        (
            fork,
            "select",
            json!("No, stay in current session"),
            json!("Yes, create fork"),
        ),
        (switch, "confirm", json!(false), json!(true)),
    ] {
        let member = if method == "select" {
            "value"
        } else {
            "confirmed"
        };
        for (answer, cancelled) in [(no, true), (yes, false)] {
            rpc.send(&command.to_string()).await;
            let question = rpc.ui(method).await;
            rpc.reply(&question, json!({ member: answer })).await;
            let response = rpc
                .wait("the response", |line| {
                    line["type"] == "response" && line["id"] == command["id"]
                })
                .await;
            assert_eq!(response["data"]["cancelled"], cancelled, "{response}");
            assert_eq!(file(&mut rpc).await == first, cancelled);
        }
        if method == "select" {
            // Return to a session that has something to lose.
            let back = json!({"id": "b", "type": "switch_session", "sessionPath": first});
            rpc.ok(back).await;
        }
    }
    assert!(rpc.close().await.success());
}

/// The message of an extension has fractions of milliseconds: JavaScript has only one kind of
/// number.
#[tokio::test]
async fn a_session_of_another_folder_has_its_own_settings() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let elsewhere = home.cwd().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".pi")).unwrap();
    let settings = json!({"compaction": {"enabled": false}}).to_string();
    std::fs::write(elsewhere.join(".pi/settings.json"), settings).unwrap();
    let time = "2026-01-01T00:00:00.000Z";
    let header = json!({"type": "session", "version": 3, "id": "other", "timestamp": time, "cwd": elsewhere});
    let message = json!({"role": "user", "content": "hello", "timestamp": 1767225600000.5});
    let entry = json!({"type": "message", "id": "a1b2c3d4", "parentId": null, "timestamp": time, "message": message});
    let other = home.cwd().join("other.jsonl");
    std::fs::write(&other, format!("{header}\n{entry}\n")).unwrap();

    let mut rpc = home.rpc(&[]);
    let state = json!({"type": "get_state"});
    assert_eq!(rpc.ok(state.clone()).await["autoCompactionEnabled"], true);
    rpc.ok(json!({"type": "switch_session", "sessionPath": other}))
        .await;
    assert_eq!(rpc.ok(state).await["autoCompactionEnabled"], false);
    let messages = rpc.ok(json!({"type": "get_messages"})).await["messages"].clone();
    assert_eq!(messages[0]["timestamp"], 1767225600000_i64);
}
