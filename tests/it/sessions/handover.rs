//! One session and several programs: which may write when, and how one continues after another.

use std::path::PathBuf;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use super::{path, read_chain, start_session, texts};
use crate::support::{Home, Rpc, prompt, read_jsonl, text_of, until_exists};

/// A session in which `begin` is answered.
async fn begun() -> (ModelServer, Home, PathBuf) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let file = start_session(&server, &home).await;
    (server, home, file)
}

/// Starts a run whose answer never comes.
async fn at_work(server: &ModelServer, rpc: &mut Rpc) {
    let before = server.requests().len();
    server.push(Answer::stall());
    rpc.ok(prompt("work")).await;
    server.received(before + 1).await;
}

#[tokio::test]
async fn reading_exporting_and_forking_need_no_lock() {
    let (server, home, file) = begun().await;
    let mut first = home.rpc(&["-ne", "--session", path(&file)]);
    at_work(&server, &mut first).await;

    let mut second = home.rpc(&["-ne", "--session", path(&file)]);
    assert_eq!(second.message_texts().await, ["begin", "Yes.", "work"]);
    let page = home.cwd().join("page.html");
    second
        .ok(json!({"type": "export_html", "outputPath": page}))
        .await;
    assert!(page.exists());
    let messages = second.ok(json!({"type": "get_fork_messages"})).await;
    let entry = messages["messages"][1]["entryId"].clone();
    second.ok(json!({"type": "fork", "entryId": entry})).await;
    assert_eq!(second.message_texts().await, ["begin", "Yes."]);
    assert_eq!(second.answer_to("in the fork").await, "Yes.");
    // ACP adapters use this for `session/load`.
    second
        .ok(json!({"type": "switch_session", "sessionPath": file}))
        .await;
    assert_eq!(second.message_texts().await, ["begin", "Yes.", "work"]);
    first.ok(json!({"type": "abort"})).await;
    assert!(first.close().await.success());
    assert!(second.close().await.success());
}

#[tokio::test]
async fn a_busy_lock_holder_is_named_and_keeps_the_session() {
    let (server, home, file) = begun().await;
    let mut first = home.rpc(&["-ne", "--session", path(&file)]);
    at_work(&server, &mut first).await;
    let requested = server.requests().len();

    let mut second = home.rpc(&["-ne", "--session", path(&file)]);
    let refused = second.request(prompt("me too")).await;
    assert_eq!(refused["success"], false, "{refused}");
    assert_eq!(refused["errorCode"], "session_locked", "{refused}");
    let error = refused["error"].as_str().unwrap();
    assert!(error.contains(path(&file)), "{error}");
    if cfg!(target_os = "linux") {
        let holder = format!("(process {}) [pi", first.process_id());
        assert!(
            error.contains(&holder) && error.contains("running since 20"),
            "{error}"
        );
    }
    let third = home
        .run(&["-ne", "--session", path(&file), "-p", "and me"], "")
        .await;
    assert!(third.failed(1).contains(path(&file)));
    assert_eq!(
        server.requests().len(),
        requested,
        "the model was not asked"
    );

    first.ok(json!({"type": "abort"})).await;
    first.event("agent_settled").await;
    assert_eq!(second.answer_to("now").await, "Yes.");
    assert!(first.close().await.success());
    assert!(second.close().await.success());
    let output = texts(&read_chain(&file));
    let [begin, yes, work, .., now, last] = &output[..] else {
        panic!("{output:?}");
    };
    assert_eq!(
        [begin, yes, work, now, last],
        ["begin", "Yes.", "work", "now", "Yes."]
    );
}

#[tokio::test]
async fn idle_programs_take_turns_and_see_all_messages() {
    let (server, home, file) = begun().await;
    let mut first = home.rpc(&["-ne", "--session", path(&file)]);
    assert_eq!(first.answer_to("one").await, "Yes.");
    let mut second = home.rpc(&["-ne", "--session", path(&file)]);
    assert_eq!(second.answer_to("two").await, "Yes.");
    // Messages of other programs are part of the conversation.
    assert_eq!(first.answer_to("three").await, "Yes.");
    let body = server.last_request().body;
    let heard: Vec<String> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(text_of)
        .collect();
    assert_eq!(
        heard[heard.len() - 5..],
        ["one", "Yes.", "two", "Yes.", "three"]
    );
    second
        .ok(json!({"type": "set_session_name", "name": "shared"}))
        .await;
    assert_eq!(second.answer_to("four").await, "Yes.");
    assert!(first.close().await.success());
    assert!(second.close().await.success());
    let output = texts(&read_chain(&file));
    let prompts: Vec<&String> = output.iter().step_by(2).collect();
    assert_eq!(prompts, ["begin", "one", "two", "three", "four"]);
}

/// A name was refused at once while another program finished its run.
#[tokio::test]
async fn a_new_name_waits_for_the_lock_and_blocks_no_command() {
    let (server, home, file) = begun().await;
    let mut first = home.rpc(&["-ne", "--session", path(&file)]);
    at_work(&server, &mut first).await;
    let mut second = home.rpc(&["-ne", "--session", path(&file)]);
    let line = json!({"type": "set_session_name", "id": "n", "name": "shared"}).to_string();
    second.send(&line).await;
    second.ok(json!({"type": "get_state"})).await;
    let response = |line: &Value| line["id"] == "n";
    assert!(
        !second.lines().iter().any(response),
        "{:#?}",
        second.lines()
    );
    first.ok(json!({"type": "abort"})).await;
    let named = second.wait("the response", response).await;
    assert_eq!(named["success"], true, "{named}");
    assert!(first.close().await.success());
    assert!(second.close().await.success());
    let entries = read_jsonl(&file);
    assert!(entries.iter().any(|entry| entry["name"] == "shared"));
}

/// Emacs starts the new process before it ends the old one.
#[tokio::test]
async fn a_successor_waits_for_a_slow_shutdown() {
    let (_server, home, file) = begun().await;
    home.extension(
        "slow.ts",
        r#"import { existsSync, writeFileSync } from "node:fs";
        export default (pi) => pi.on("session_shutdown", async () => {
            if (existsSync("ending")) return;
            writeFileSync("ending", "");
            while (!existsSync("may-end")) await new Promise((done) => setTimeout(done, 5));
            pi.appendEntry("last-words", { at: "the end" });
        });"#,
    );
    let mut old = home.rpc(&["--session", path(&file)]);
    assert_eq!(old.answer_to("one").await, "Yes.");
    let mut new = home.rpc(&["--session", path(&file)]);
    assert_eq!(new.message_texts().await.len(), 4);
    old.close_stdin();
    until_exists(&home.cwd().join("ending")).await;
    let line = json!({"type": "prompt", "id": "p", "message": "two"}).to_string();
    new.send(&line).await;
    // The successor answers while it waits.
    new.ok(json!({"type": "get_state"})).await;
    let refused = |line: &Value| line["id"] == "p";
    assert!(!new.lines().iter().any(refused), "{:#?}", new.lines());
    home.file("may-end", "");
    new.event("agent_end").await;
    assert!(old.end().await.success());
    assert!(new.close().await.success());
    texts(&read_chain(&file));
    let types: Vec<String> = read_jsonl(&file)
        .iter()
        .filter(|line| line["type"] == "custom" || line["message"]["role"] == "user")
        .map(|line| match line["customType"].as_str() {
            Some(kind) => kind.to_owned(),
            None => text_of(&line["message"]),
        })
        .collect();
    assert_eq!(types, ["begin", "one", "last-words", "two"]);
}

#[tokio::test]
async fn a_killed_lock_holder_blocks_no_other_program() {
    let (server, home, file) = begun().await;
    let mut first = home.rpc(&["-ne", "--session", path(&file)]);
    at_work(&server, &mut first).await;
    let mut second = home.rpc(&["-ne", "--session", path(&file)]);
    second.ok(json!({"type": "get_state"})).await;
    let line = json!({"type": "prompt", "id": "p", "message": "go on"}).to_string();
    second.send(&line).await;
    first.kill().await;
    second.event("agent_end").await;
    assert!(second.close().await.success());
    assert_eq!(
        texts(&read_chain(&file)),
        ["begin", "Yes.", "work", "go on", "Yes."]
    );
}
