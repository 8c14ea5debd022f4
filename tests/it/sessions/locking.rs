//! Locks of session files and reports about failed writes: two programs on one file, locks of
//! killed programs, and files that are missing or full.

use std::fs;

use futures::future::join_all;
use model_server::{Answer, Api, ModelServer};
use serde_json::json;

use super::{path, read_chain, start_session, texts};
use crate::support::{Home, Rpc, prompt};

/// Number of prompts at the same time. Their answers differ, so the file shows which program wrote
/// what.
const RIVALS: usize = 5;

#[tokio::test]
async fn concurrent_programs_write_all_or_nothing() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let old = start_session(&server, &home).await;
    // A file that does not exist yet cannot be locked.
    let new = home.cwd().join("new.jsonl");
    for file in [old, new] {
        let prompts: Vec<_> = (0..RIVALS).map(|rival| format!("rival {rival}")).collect();
        let runs = prompts.iter().map(|prompt| {
            let arguments = ["-ne", "--session", path(&file), "-p", prompt];
            let home = &home;
            async move { home.run(&arguments, "").await }
        });
        let finished = join_all(runs).await;
        let output = texts(&read_chain(&file));
        let mut stored = 0;
        for (prompt, finished) in prompts.iter().zip(finished) {
            let reported = finished.stderr.contains(path(&file));
            match output.iter().position(|text| text == prompt) {
                Some(at) => {
                    assert_eq!(output[at + 1], "Yes.", "{output:?}");
                    assert!(finished.status.success() && !reported, "{finished:#?}");
                    stored += 1;
                }
                None => assert!(reported, "{prompt} is not stored: {finished:#?}"),
            }
        }
        assert!(stored > 0);
    }
}

/// SIGKILL in the middle of a command whose process lives on.
#[tokio::test]
async fn the_lock_of_a_killed_program_blocks_no_other() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let file = start_session(&server, &home).await;
    let mut first = home.rpc(&["-ne", "--session", path(&file)]);
    server.push(Answer::tool("bash", json!({"command": "sleep 20"})));
    first.ok(prompt("wait")).await;
    first.event("tool_execution_start").await;
    first.kill().await;
    let mut second = home.rpc(&["-ne", "--session", path(&file)]);
    assert_eq!(second.answer_to("go on").await, "Yes.");
    let reported = second.stderr();
    assert!(
        reported.contains("was cut off while a tool ran (bash)"),
        "{reported}"
    );
    assert!(second.close().await.success());
    read_chain(&file);
}

/// The text of the next event about the session file.
async fn store_event(rpc: &mut Rpc) -> String {
    let event = rpc
        .wait("news of the store", |event| {
            event["type"] == "extension_error" && event["extensionPath"] == "<session>"
        })
        .await;
    event["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn messages_are_written_once_a_missing_file_is_back() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let file = start_session(&server, &home).await;
    let mut rpc = home.rpc(&["-ne", "--session", path(&file)]);
    assert_eq!(rpc.answer_to("while it is there").await, "Yes.");
    let away = home.cwd().join("away.jsonl");
    fs::rename(&file, &away).unwrap();
    rpc.ok(prompt("while it is away")).await;
    let news = store_event(&mut rpc).await;
    assert!(news.contains(path(&file)), "{news}");
    assert!(news.contains("1 message is not stored"), "{news}");
    let news = store_event(&mut rpc).await;
    assert!(news.contains("2 messages are not stored"), "{news}");
    rpc.event("agent_end").await;
    assert!(!file.exists(), "nothing is made in its place");

    fs::rename(&away, &file).unwrap();
    rpc.ok(prompt("now it is back")).await;
    let news = store_event(&mut rpc).await;
    assert!(news.contains("are stored now"), "{news}");
    rpc.event("agent_end").await;
    assert!(rpc.close().await.success());
    let output = texts(&read_chain(&file));
    let prompts: Vec<&String> = output.iter().step_by(2).collect();
    let expected = [
        "begin",
        "while it is there",
        "while it is away",
        "now it is back",
    ];
    assert_eq!(prompts, expected);
}

/// The limit of a file's size acts like a disk that takes the first half of a record.
#[cfg(unix)]
#[tokio::test]
async fn a_full_disk_is_reported_and_the_file_stays_whole() {
    let server = ModelServer::start().await;
    let home = Home::with_api(&server, Api::OpenAiCompletions);
    let file = start_session(&server, &home).await;
    let before = fs::read_to_string(&file).unwrap();
    let mut limited = home.command("sh");
    // The limit is 8 blocks of 512 or of 1024 bytes, depending on the shell.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    limited.args(["-c", script, env!("CARGO_BIN_EXE_pi")]);
    limited.args(["--mode", "rpc", "-ne", "--session", path(&file)]);
    let mut rpc = Rpc::start(limited);
    let long = "long ".repeat(4000);
    rpc.ok(prompt(&long)).await;
    let news = store_event(&mut rpc).await;
    assert!(news.contains("could not append to"), "{news}");
    assert!(news.contains("1 message is not stored"), "{news}");
    rpc.event("agent_end").await;
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        before,
        "half a record is taken back, and no answer comes before its question"
    );
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    assert_eq!(messages["messages"].as_array().unwrap().len(), 4);
    // The last attempt fails as well.
    rpc.close_stdin();
    rpc.end().await;
    read_chain(&file);
    let mut rpc = home.rpc(&["-ne", "--session", path(&file)]);
    assert_eq!(rpc.answer_to("now there is room").await, "Yes.");
    assert!(rpc.close().await.success());
    let output = texts(&read_chain(&file));
    assert_eq!(output, ["begin", "Yes.", "now there is room", "Yes."]);
}

/// Each program created its own file, and one of the conversations was never found again.
#[tokio::test]
async fn a_second_program_with_the_same_new_id_is_refused() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    server.repeat(Answer::text("Yes."));
    let words = ["-ne", "--session-id", "job-7"];
    let mut first = home.rpc(&words);
    // There is no message yet, so there is no session file.
    first.ok(json!({"type": "get_state"})).await;
    for more in [
        &["-p", "me too"][..],
        &["--mode", "rpc"],
        &["--mode", "json", "hi"],
    ] {
        let second = home.run(&[&words[..], more].concat(), "").await;
        let error = second.failed(1);
        assert!(error.contains("the session id job-7 was taken"), "{error}");
        if cfg!(target_os = "linux") {
            let holder = format!("(process {})", first.process_id());
            assert!(error.contains(&holder), "{error}");
        }
    }
    assert_eq!(first.answer_to("begin").await, "Yes.");
    first.close().await;
    let third = home.run(&[&words[..], &["-p", "go on"]].concat(), "").await;
    assert_eq!(third.ok(), "Yes.\n");
    let output = texts(&read_chain(&home.session()));
    assert_eq!(output, ["begin", "Yes.", "go on", "Yes."]);
}

#[tokio::test]
async fn one_of_many_programs_with_the_same_new_id_begins() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let mut all: Vec<Rpc> = (0..RIVALS)
        .map(|_| home.rpc(&["-ne", "--session-id", "job-8"]))
        .collect();
    for one in &mut all {
        // A program that was refused may have ended.
        _ = one.try_write(b"{\"type\":\"get_state\"}\n").await;
        one.close_stdin();
    }
    let ended = join_all(all.iter_mut().map(Rpc::end)).await;
    let begun = ended.iter().filter(|status| status.success()).count();
    assert!(begun >= 1, "{ended:?}");
    // Programs that started after the others had ended began as well; nothing was stored, and
    // nothing is left.
    assert_eq!(home.sessions(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn the_id_of_a_killed_program_is_free() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    server.repeat(Answer::text("Yes."));
    let words = ["-ne", "--session-id", "job-9"];
    let mut first = home.rpc(&words);
    first.ok(json!({"type": "get_state"})).await;
    first.kill().await;
    let second = home.run(&[&words[..], &["-p", "begin"]].concat(), "").await;
    assert_eq!(second.ok(), "Yes.\n");
    assert_eq!(texts(&read_chain(&home.session())), ["begin", "Yes."]);
}
