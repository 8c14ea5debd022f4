//! Session files: content and continuation.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use super::path;
use crate::support::{Home, finish, prompt, read_jsonl, without};

/// Runs one prompt in print mode.
async fn run_prompt(server: &ModelServer, home: &Home, arguments: &[&str], text: &str) {
    server.push(Answer::text(&format!("About {text}.")));
    let mut rpc = home.rpc(arguments);
    rpc.run(text).await;
    assert!(rpc.close().await.success());
}

/// The content of a session as the next reader sees it.
#[tokio::test]
async fn the_file_is_what_the_original_writes() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    run_prompt(&server, &home, &[], "first").await;

    let file = home.session();
    let cwd = home.cwd().canonicalize().unwrap();
    let folder = format!(
        "--{}--",
        path(&cwd).trim_start_matches('/').replace(['/', ':'], "-")
    );
    assert_eq!(file.parent().unwrap().file_name().unwrap(), folder.as_str());

    let lines = read_jsonl(&file);
    let header = &lines[0];
    let name = file.file_stem().unwrap().to_str().unwrap();
    let id = header["id"].as_str().unwrap();
    let time = header["timestamp"]
        .as_str()
        .unwrap()
        .replace([':', '.'], "-");
    assert_eq!(name, format!("{time}_{id}"));
    assert_eq!(
        without(header, &["id", "timestamp"]),
        json!({"type": "session", "version": 3, "cwd": path(&cwd)})
    );
    let types: Vec<&str> = lines
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        [
            "session",
            "model_change",
            "thinking_level_change",
            "message",
            "message"
        ]
    );
    let mut parent = Value::Null;
    for entry in &lines[1..] {
        assert_eq!(entry["parentId"], parent);
        parent = entry["id"].clone();
        assert_eq!(parent.as_str().unwrap().len(), 8);
    }
}

#[tokio::test]
async fn a_session_without_a_thinking_level_records_it() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    run_prompt(&server, &home, &["--thinking", "high"], "first").await;
    let file = home.session();
    let text = std::fs::read_to_string(&file).unwrap();
    // Remove the entry; the entry after it gets the parent of the removed one.
    let mut lines: Vec<Value> = read_jsonl(&file);
    let taken = lines.remove(2);
    assert_eq!(taken["type"], "thinking_level_change", "{text}");
    lines[2]["parentId"] = taken["parentId"].clone();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, text).unwrap();

    for (level, more) in [("low", &["--thinking", "low"][..]), ("low", &[])] {
        let arguments = [&["--session", path(&file)], more].concat();
        let mut rpc = home.rpc(&arguments);
        let state = rpc.ok(json!({"type": "get_state"})).await;
        assert_eq!(state["thinkingLevel"], level);
        server.push(Answer::text("Yes."));
        rpc.run("more").await;
        assert!(rpc.close().await.success());
    }
    let levels = read_jsonl(&file).into_iter();
    let levels: Vec<Value> = levels
        .filter(|line| line["type"] == "thinking_level_change")
        .map(|line| line["thinkingLevel"].clone())
        .collect();
    assert_eq!(levels, ["low"]);
}

#[tokio::test]
async fn continue_opens_the_newest_session() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    run_prompt(&server, &home, &[], "apples").await;
    run_prompt(&server, &home, &["-c"], "pears").await;
    let request = server.last_request().body.to_string();
    assert!(request.contains("About apples."), "{request}");
    assert_eq!(
        home.entries().len(),
        1 + 2 + 4,
        "nothing but the messages is added"
    );
    let mut rpc = home.rpc(&["--continue"]);
    assert_eq!(
        rpc.message_texts().await,
        ["apples", "About apples.", "pears", "About pears."]
    );
}

#[tokio::test]
async fn a_session_is_opened_by_path_or_by_a_prefix_of_its_id() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    run_prompt(&server, &home, &[], "apples").await;
    let file = home.session();
    run_prompt(&server, &home, &[], "pears").await;
    let id = read_jsonl(&file)[0]["id"].as_str().unwrap().to_owned();
    for wanted in [path(&file), id.as_str()] {
        let mut rpc = home.rpc(&["--session", wanted]);
        assert_eq!(
            rpc.message_texts().await,
            ["apples", "About apples."],
            "{wanted}"
        );
        rpc.close().await;
    }
    let finished = home.run(&["--session", "nope", "-p", "hi"], "").await;
    let error = finished.failed(1);
    assert!(
        error.contains("No session found matching 'nope'"),
        "{error}"
    );
}

#[tokio::test]
async fn a_new_path_becomes_a_session() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let file = home.cwd().join("mine.jsonl");
    run_prompt(&server, &home, &["--session", path(&file)], "apples").await;
    assert_eq!(read_jsonl(&file)[0]["type"], "session");
    assert_eq!(home.sessions(), Vec::<std::path::PathBuf>::new());
}

/// The originals crash: the name of their folder is longer than a file name may be.
#[tokio::test]
async fn a_folder_with_a_very_long_path_has_sessions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let deep = home.cwd().join(["d".repeat(120).as_str(); 3].join("/"));
    fs::create_dir_all(&deep).unwrap();
    server.repeat(Answer::text("Yes."));
    for arguments in [["-p", "apples", "-ne"], ["-c", "-p", "pears"]] {
        let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
        command.current_dir(&deep).args(arguments);
        finish(command, "").await.ok();
    }
    let users = home.entries();
    let users = users
        .iter()
        .filter(|line| line["message"]["role"] == "user");
    assert_eq!(users.count(), 2);
}

#[tokio::test]
async fn a_session_dir_is_used_flat() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let folder = home.cwd().join("sessions");
    run_prompt(&server, &home, &["--session-dir", path(&folder)], "apples").await;
    let files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    let sessions = files
        .iter()
        .filter(|file| file.extension().is_some_and(|e| e == "jsonl"));
    assert_eq!(sessions.count(), 1, "{files:?}");
    let mut rpc = home.rpc(&["--session-dir", path(&folder), "-c"]);
    assert_eq!(rpc.message_texts().await, ["apples", "About apples."]);
}

#[tokio::test]
async fn no_session_leaves_no_file() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    server.push(Answer::text("Gone."));
    let mut rpc = home.rpc(&["--no-session"]);
    rpc.run("apples").await;
    assert_eq!(rpc.message_texts().await, ["apples", "Gone."]);
    assert_eq!(
        rpc.ok(json!({"type": "get_state"})).await["sessionFile"],
        Value::Null
    );
    rpc.close().await;
    assert_eq!(home.sessions(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn the_first_prompt_is_stored_without_an_answer() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    server.push(Answer::stall());
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("precious")).await;
    server.received(1).await;
    rpc.kill().await;
    let mut rpc = home.rpc(&["-c"]);
    assert_eq!(rpc.message_texts().await, ["precious"]);
}

#[tokio::test]
async fn a_torn_last_line_is_repaired_and_reported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    run_prompt(&server, &home, &[], "apples").await;
    let file = home.session();
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        format!(r#"{whole}{{"type":"message","id":"0badc0de","par"#),
    )
    .unwrap();

    server.push(Answer::text("About pears."));
    let mut rpc = home.rpc(&["-c"]);
    assert_eq!(rpc.message_texts().await, ["apples", "About apples."]);
    rpc.run("pears").await;
    let warning = rpc.stderr();
    assert!(
        warning.contains(file.file_name().unwrap().to_str().unwrap()),
        "{warning:?}"
    );
    rpc.close().await;

    let now = fs::read_to_string(&file).unwrap();
    assert!(now.starts_with(&whole), "what was whole is as it was");
    assert_eq!(
        home.entries().len(),
        1 + 2 + 4,
        "and every line is JSON again"
    );
}

#[tokio::test]
async fn sessions_move_between_the_original_and_pi() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    server.push(Answer::thinking("A tool.").then_tool("bash", json!({"command": "echo apples"})));
    server.push(Answer::text("Theirs."));
    home.run_original(&["-p", "one"]).await.ok();
    server.push(Answer::tool("bash", json!({"command": "echo pears"})));
    server.push(Answer::text("Ours."));
    home.run(&["-c", "-p", "two"], "").await.ok();
    server.push(Answer::text("Theirs again."));
    home.run_original(&["-c", "-p", "three"]).await.ok();

    let last = server.last_request().body["messages"].to_string();
    let parts = ["one", "apples", "Theirs.", "two", "pears", "Ours.", "three"];
    let places = parts.map(|text| last.find(text));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{last}"
    );
    let mut rpc = home.rpc(&["-c"]);
    let texts = rpc.message_texts().await;
    let expected = [
        "one",
        "",
        "apples\n",
        "Theirs.",
        "two",
        "",
        "pears\n",
        "Ours.",
        "three",
        "Theirs again.",
    ];
    assert_eq!(texts, expected);
    assert_eq!(home.sessions().len(), 1);
}
