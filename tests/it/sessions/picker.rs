//! The choice of a session at a terminal: `--resume`, `--session`, and the commands that switch to
//! another session.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::{DEMO, Home, Terminal, read_jsonl};

/// A session of the folder `cwd`, this many minutes old.
fn session(home: &Home, cwd: &Path, id: &str, minutes: i64, text: &str) -> PathBuf {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let cwd = cwd.to_str().unwrap();
    let folder = format!("--{}--", cwd.trim_start_matches('/').replace('/', "-"));
    let path = home.agent_dir().join("sessions").join(folder);
    fs::create_dir_all(&path).unwrap();
    let path = path.join(format!("2026-01-01T00-00-00-000Z_{id}.jsonl"));
    let now = chrono::Utc::now().timestamp_millis() - minutes * 60_000;
    let time = "2026-01-01T00:00:00.000Z";
    let lines = [
        json!({"type": "session", "version": 3, "id": id, "timestamp": time, "cwd": cwd}),
        json!({"type": "message", "id": "aaaaaaaa", "parentId": null, "timestamp": time,
            "message": {"role": "user", "content": text, "timestamp": now}}),
        json!({"type": "message", "id": "bbbbbbbb", "parentId": "aaaaaaaa", "timestamp": time,
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Yes."}],
                "api": "demo", "provider": "demo", "model": "demo", "stopReason": "stop",
                "usage": {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2,
                    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}},
                "timestamp": now}}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).unwrap();
    path
}

fn elsewhere(home: &Home) -> PathBuf {
    let path = home.cwd().join("../elsewhere");
    fs::create_dir_all(&path).unwrap();
    path.canonicalize().unwrap()
}

fn ready(terminal: &mut Terminal) {
    terminal.see("/help lists the commands.");
    terminal.see("> ");
}

fn quit(mut terminal: Terminal) {
    terminal.line("/quit");
    assert_eq!(terminal.end(), 0);
}

#[tokio::test]
async fn resume_lists_searches_and_opens() {
    let home = Home::bare();
    session(&home, &home.cwd(), "one", 3, "how do apples grow?");
    session(&home, &home.cwd(), "two", 130, "what about pears?");
    session(&home, &elsewhere(&home), "far", 1, "a plum elsewhere");
    let arguments = [&DEMO[..], &["--resume"]].concat();
    let mut terminal = Terminal::open(&home, "dumb", &arguments);
    terminal.see("  1. how do apples grow?");
    terminal.see(" 2 3m");
    terminal.see("  2. what about pears?");
    terminal.see(" 2 2h");
    terminal.see("> ");
    terminal.line("plum");
    terminal.see("(none)");
    terminal.see("> ");
    terminal.line("all");
    terminal.see("  1. a plum elsewhere");
    terminal.see("> ");
    terminal.line("\"about pears\"");
    terminal.see("  1. what about pears?");
    terminal.see("> ");
    terminal.line("1");
    ready(&mut terminal);
    terminal.line("/session");
    terminal.see("Id: two");
    terminal.see("> ");

    terminal.line("/resume apples");
    terminal.see("  1. how do apples grow?");
    terminal.see("answer> ");
    terminal.line("1");
    terminal.see("session one");
    terminal.see("> ");
    quit(terminal);

    let mut terminal = Terminal::open(&home, "dumb", &arguments);
    terminal.see("or nothing to leave.");
    terminal.see("> ");
    terminal.line("");
    terminal.see("No session selected");
    assert_eq!(terminal.end(), 0);
}

#[tokio::test]
async fn without_a_terminal_resume_explains_the_alternative() {
    let home = Home::bare();
    for arguments in [&["--resume", "-p", "hi"][..], &["-r", "--mode", "rpc"]] {
        let finished = home.run(&[&DEMO[..], arguments].concat(), "").await;
        let error = finished.failed(1);
        assert!(
            error.contains("--continue") && error.contains("--session"),
            "{error}"
        );
    }
    let finished = home.run(&["-r", "--fork", "x"], "").await;
    let error = finished.failed(1);
    assert!(
        error.contains("--fork cannot be combined with --resume"),
        "{error}"
    );
}

#[tokio::test]
async fn a_session_of_another_folder_is_copied_if_the_user_wants_it() {
    let home = Home::bare();
    let source = session(&home, &elsewhere(&home), "0199-far", 5, "a plum elsewhere");
    let arguments = [&DEMO[..], &["--session", "0199"]].concat();
    let mut terminal = Terminal::open(&home, "dumb", &arguments);
    terminal.see("Session found in different project: ");
    terminal.see("Fork this session into current directory? [y/N] ");
    terminal.line("n");
    terminal.see("Aborted.");
    assert_eq!(terminal.end(), 0);
    assert_eq!(home.sessions(), std::slice::from_ref(&source));

    let mut terminal = Terminal::open(&home, "dumb", &arguments);
    terminal.see("[y/N] ");
    terminal.line("y");
    ready(&mut terminal);
    quit(terminal);
    let copies = home.sessions().into_iter().filter(|path| *path != source);
    let copies: Vec<PathBuf> = copies.collect();
    let lines = read_jsonl(&copies[0]);
    assert_eq!(lines[0]["parentSession"], source.to_str().unwrap());
    assert_eq!(
        lines[0]["cwd"],
        home.cwd().canonicalize().unwrap().to_str().unwrap()
    );
    assert_eq!(lines[1..3], read_jsonl(&source)[1..3]);

    // Without a user the error explains what to do.
    let finished = home.run(&["--session", "0199-f", "-p", "hi"], "").await;
    let error = finished.failed(1);
    assert!(error.contains("pi --fork 0199-f"), "{error}");
}

#[tokio::test]
async fn a_session_of_a_missing_folder_can_continue_here() {
    let home = Home::bare();
    let gone = elsewhere(&home);
    let file = session(&home, &gone, "homeless", 5, "a plum elsewhere");
    fs::remove_dir(&gone).unwrap();
    let before = fs::read_to_string(&file).unwrap();
    let arguments = [&DEMO[..], &["--session", file.to_str().unwrap()]].concat();
    let mut terminal = Terminal::open(&home, "dumb", &arguments);
    terminal.see("The folder of this session is gone: ");
    terminal.see("[y/N] ");
    terminal.line("");
    terminal.see("Aborted.");
    assert_eq!(terminal.end(), 0);

    let mut terminal = Terminal::open(&home, "dumb", &arguments);
    terminal.see("[y/N] ");
    terminal.line("yes");
    ready(&mut terminal);
    terminal.line("!pwd");
    terminal.see("work\n");
    terminal.see("> ");
    terminal.line("/new");
    terminal.see("session ");
    terminal.see("> ");
    terminal.line("/resume");
    // New sessions are stored beside the opened one.
    terminal.see("  1. a plum elsewhere");
    terminal.see("answer> ");
    terminal.line("1");
    terminal.see("The folder of this session is gone: ");
    terminal.see("y/n> ");
    terminal.line("y");
    terminal.see("session homeless");
    terminal.see("> ");
    quit(terminal);
    let now = fs::read_to_string(&file).unwrap();
    assert!(now.starts_with(&before), "what was there is as it was");
}

#[tokio::test]
async fn fork_clone_export_and_import_work() {
    let home = Home::bare();
    let source = session(&home, &home.cwd(), "one", 3, "how do apples grow?");
    let arguments = [&DEMO[..], &["-c"]].concat();
    let mut terminal = Terminal::open(&home, "dumb", &arguments);
    ready(&mut terminal);
    terminal.line("/clone");
    terminal.see("Cloned to a new session.");
    terminal.see("> ");
    terminal.line("/fork");
    terminal.see("  1. how do apples grow?");
    terminal.see("answer> ");
    terminal.line("7");
    terminal.see("answer> ");
    terminal.line("1");
    terminal.see("Forked to a new session.");
    // The suggestion can be edited before it is sent.
    terminal.see("(suggested: how do apples grow?)");
    terminal.see("> ");
    terminal.line("/fork");
    terminal.see("No messages to fork from");
    terminal.see("> ");
    terminal.line("/import 'no such.jsonl'");
    terminal.see("Replace current session with no such.jsonl?");
    terminal.see("y/n> ");
    terminal.line("y");
    terminal.see("File not found: ");
    terminal.see("> ");
    terminal.line(&format!("/import {}", source.display()));
    terminal.see("y/n> ");
    terminal.line("y");
    terminal.see("Session imported from: ");
    terminal.see("session one");
    terminal.see("> ");
    terminal.line("/export \"out of here.jsonl\"");
    terminal.see("Session exported to: ");
    terminal.see("> ");
    terminal.line("/export talk.html");
    terminal.see("Session exported to: ");
    terminal.see("> ");
    quit(terminal);

    let page = std::fs::read_to_string(home.cwd().join("talk.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{page:.99}");
    let exported = read_jsonl(&home.cwd().join("out of here.jsonl"));
    assert_eq!(exported[1..3], read_jsonl(&source)[1..3]);
    assert_eq!(exported[0]["id"], "one");
    let others = home.sessions().into_iter().filter(|path| *path != source);
    let heads: Vec<_> = others.map(|path| read_jsonl(&path)).collect();
    assert_eq!(heads.len(), 1, "the fork has nothing in it yet");
    assert_eq!(heads[0][0]["parentSession"], source.to_str().unwrap());
    assert_eq!(heads[0][1..3], read_jsonl(&source)[1..3]);
}

#[tokio::test]
async fn a_drawing_terminal_asks_the_same_questions() {
    let home = Home::bare();
    session(&home, &home.cwd(), "one", 3, "how do apples grow?");
    session(&home, &home.cwd(), "two", 5, "what about pears?");
    let arguments = [&DEMO[..], &["--resume"]].concat();
    let mut terminal = Terminal::open(&home, "xterm", &arguments);
    terminal.see("  2. what about pears?");
    terminal.see("> ");
    terminal.line("2");
    ready(&mut terminal);
    terminal.line("/resume");
    terminal.see("  1. how do apples grow?");
    terminal.see("answer> ");
    terminal.line("1");
    terminal.see("session one");
    terminal.see("> ");
    // Escape chooses nothing.
    terminal.line("/resume");
    terminal.see("answer> ");
    terminal.keys("\x1b");
    terminal.see("Nothing was chosen.");
    terminal.see("> ");
    terminal.line("/fork 1");
    terminal.see("Forked to a new session.");
    terminal.see("> how do apples grow?");
    terminal.line(" And pears?");
    // The echo of the line has a prompt, too.
    terminal.see("built-in demo");
    terminal.see("> ");
    quit(terminal);
    let fork = home.sessions().into_iter().map(|path| read_jsonl(&path));
    let fork = fork.filter(|lines| lines[0]["parentSession"].is_string());
    let fork: Vec<_> = fork.collect();
    let output = fork[0]
        .iter()
        .find(|line| line["type"] == "message")
        .unwrap();
    let output = crate::support::text_of(&output["message"]);
    assert_eq!(output, "how do apples grow? And pears?");
}

#[tokio::test]
async fn a_fork_is_found_in_every_folder() {
    let home = Home::bare();
    let there = elsewhere(&home);
    let older = session(&home, &there, "0199-one", 60, "an older plum");
    let newer = session(&home, &home.cwd().join(".."), "0199-two", 5, "a newer plum");
    let exact = session(&home, &there, "0199", 600, "the plum itself");
    for (path, age) in [(&older, 60), (&newer, 5), (&exact, 600)] {
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age * 60);
        fs::File::options()
            .append(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    // The newest of several matches is taken, but an exact id comes first.
    for (wanted, text, source) in [
        ("0199-", "a newer plum", &newer),
        ("0199-o", "an older plum", &older),
        ("0199", "the plum itself", &exact),
    ] {
        let mut rpc = home.rpc(&[&DEMO[..], &["--fork", wanted]].concat());
        let messages = rpc.ok(json!({"type": "get_messages"})).await["messages"].take();
        assert_eq!(messages[0]["content"], text, "{wanted}");
        let state = rpc.ok(json!({"type": "get_state"})).await;
        let copy = read_jsonl(state["sessionFile"].as_str().unwrap().as_ref());
        assert_eq!(copy[0]["parentSession"], source.to_str().unwrap());
        assert!(rpc.close().await.success());
    }
    let finished = home
        .run(&[&DEMO[..], &["--fork", "nope", "-p", "hi"]].concat(), "")
        .await;
    assert!(
        finished
            .failed(1)
            .contains("No session found matching 'nope'")
    );
}

/// Packages of newer versions start pi for sub-agents in this way.
#[tokio::test]
async fn a_session_is_created_and_found_by_its_exact_id() {
    let home = Home::bare();
    let demo = |more: &[&'static str]| [&DEMO[..], more].concat();
    let open = async |more: &[&'static str]| {
        let mut rpc = home.rpc(&demo(more));
        let state = rpc.ok(json!({"type": "get_state"})).await;
        let reported = ["sessionId", "sessionName", "messageCount"].map(|name| state[name].clone());
        (rpc, json!(reported))
    };
    let (mut rpc, reported) = open(&["--session-id", "job-1", "-n", "Job"]).await;
    assert_eq!(reported, json!(["job-1", "Job", 0]));
    rpc.run("hello").await;
    rpc.close().await;
    let (rpc, reported) = open(&["--session-id", "job-1"]).await;
    assert_eq!(reported, json!(["job-1", "Job", 2]));
    rpc.close().await;
    // A prefix of an id is another id.
    let (rpc, reported) = open(&["--session-id", "job"]).await;
    assert_eq!(reported, json!(["job", null, 0]));
    rpc.close().await;
    let copy = ["--fork", "job-1", "--session-id", "job-2", "--name", "Copy"];
    let (rpc, reported) = open(&copy).await;
    assert_eq!(reported, json!(["job-2", "Copy", 2]));
    rpc.close().await;
    let failed = home.run(&demo(&copy), "").await.failed(1);
    assert!(failed.contains("has this id already"), "{failed}");
}
