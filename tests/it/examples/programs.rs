//! The programs and extensions in `examples/` with the demo model.

use std::fs;
use std::path::{Path, PathBuf};

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::support::{DEMO, Home, Rpc, TIMEOUT, prompt, text_of};

fn example(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name);
    assert!(path.exists(), "{} is not there", path.display());
    path
}

/// Copies one of our extensions to the user's extensions.
fn install(home: &Home, name: &str) {
    let source = fs::read_to_string(example("extensions").join(name)).unwrap();
    home.extension(name, &source);
}

fn with(name: &str) -> Home {
    let home = Home::bare();
    install(&home, name);
    home
}

/// The result of the tool that a prompt makes the demo call.
async fn tool_result(rpc: &mut Rpc, message: &str) -> Value {
    let events = rpc.run(message).await;
    let mut ends = events
        .into_iter()
        .filter(|event| event["type"] == "tool_execution_end");
    ends.next().expect("a tool was used")
}

fn outcome(result: &Value) -> (String, bool) {
    (text_of(&result["result"]), result["isError"] == true)
}

#[tokio::test]
async fn confirm_bash_asks_once_for_an_allowed_command() {
    const REFUSED: &str = "The user does not want this command to run";
    const ALWAYS: &str = "Run it, and do not ask about this command again";
    let home = with("confirm-bash.ts");
    let precious = home.cwd().join("precious");
    let mut rpc = home.rpc(&DEMO);
    for (answer, text, survives) in [
        (json!({"value": "Do not run it"}), REFUSED, true),
        (json!({"cancelled": true}), REFUSED, true),
        (json!({"value": "Run it"}), "(no output)", false),
        (json!({"value": ALWAYS}), "(no output)", false),
    ] {
        fs::create_dir_all(&precious).unwrap();
        rpc.ok(prompt("run `rm -rf precious`")).await;
        let question = rpc.ui("select").await;
        assert_eq!(
            question["title"], "This deletes folders:\nrm -rf precious",
            "{question}"
        );
        rpc.reply(&question, answer).await;
        let result = rpc.event("tool_execution_end").await;
        assert_eq!(outcome(&result), (text.into(), survives));
        rpc.event("agent_end").await;
        assert_eq!(precious.exists(), survives);
    }
    fs::create_dir_all(&precious).unwrap();
    let result = tool_result(&mut rpc, "run `rm -rf precious`").await;
    assert_eq!(outcome(&result), ("(no output)".into(), false));
    let result = tool_result(&mut rpc, "run `echo harmless`").await;
    assert_eq!(outcome(&result), ("harmless\n".into(), false));
}

#[tokio::test]
async fn confirm_bash_blocks_without_a_user() {
    let home = with("confirm-bash.ts");
    let file = home.file("precious/file", "");
    let arguments = [&DEMO[..], &["-p", "run `rm -rf precious`"]].concat();
    let output = home.run(&arguments, "").await.ok();
    assert!(
        output.contains("This deletes folders, and no user can confirm it"),
        "{output}"
    );
    assert!(file.exists());
}

#[tokio::test]
async fn word_count_is_a_tool() {
    let home = with("word-count.ts");
    home.file("poem.txt", "Fünf Wörter,\nzwei Zeilen: gut\n");
    let mut rpc = home.rpc(&DEMO);
    for (arguments, text, failed) in [
        (json!({"path": "poem.txt"}), "poem.txt has 5 words.", false),
        (
            json!({"path": "poem.txt", "unit": "lines"}),
            "poem.txt has 2 lines.",
            false,
        ),
        (
            json!({"path": "poem.txt", "unit": "letters"}),
            "poem.txt has 23 letters.",
            false,
        ),
    ] {
        let wish = format!("use the word_count tool with {arguments}");
        let result = tool_result(&mut rpc, &wish).await;
        assert_eq!(outcome(&result), (text.into(), failed));
    }
    for (arguments, complaint) in [
        (json!({"path": "none.txt"}), "ENOENT"),
        (
            json!({"path": "poem.txt", "unit": "pages"}),
            "unit: must be",
        ),
        (json!({}), "path"),
    ] {
        let wish = format!("use the word_count tool with {arguments}");
        let (text, failed) = outcome(&tool_result(&mut rpc, &wish).await);
        assert!(failed && text.contains(complaint), "{text}");
    }
}

#[tokio::test]
async fn notes_are_restored_with_their_session() {
    let home = with("notes.ts");
    let mut rpc = home.rpc(&DEMO);
    rpc.ok(prompt("/notes")).await;
    rpc.notified("There are no notes in this session.").await;
    rpc.ok(prompt("/note buy milk")).await;
    rpc.wait("the status", |line| line["statusText"] == "notes: 1")
        .await;
    let asking = json!({"id": "asking", "type": "prompt", "message": "/note"});
    rpc.send(&asking.to_string()).await;
    let question = rpc.ui("input").await;
    rpc.reply(&question, json!({"value": " call Ann "})).await;
    rpc.wait("the answer", |line| line["id"] == "asking").await;
    rpc.run("hello").await;
    rpc.close().await;

    let mut rpc = home.rpc(&[&DEMO[..], &["-c"]].concat());
    rpc.ok(prompt("/notes")).await;
    rpc.notified("1. buy milk\n2. call Ann").await;
    rpc.ok(json!({"type": "new_session"})).await;
    rpc.ok(prompt("/notes")).await;
    rpc.notified("There are no notes in this session.").await;
}

#[tokio::test]
async fn the_model_receives_the_notes() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    install(&home, "notes.ts");
    let mut rpc = home.rpc(&[]);
    for (note, reported) in [("", false), ("/note buy milk", true)] {
        if !note.is_empty() {
            rpc.ok(prompt(note)).await;
        }
        server.push(Answer::text("I see."));
        rpc.run("hello").await;
        let system = server.last_request().body["system"].to_string();
        assert_eq!(
            system.contains("The user's notes:\\n- buy milk"),
            reported,
            "{system}"
        );
    }
}

/// Runs `client.py`: its exit code, stdout and stderr.
async fn client(home: &Home, arguments: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let mut command = home.command("python3");
    command.arg(example("rpc/client.py"));
    command.args(["--pi", env!("CARGO_BIN_EXE_pi")]);
    command.args(arguments);
    let mut child = command.spawn().expect("python3 is installed");
    let mut input = child.stdin.take().expect("it is piped");
    // A client that ends early does not read stdin.
    let _ = input.write_all(stdin.as_bytes()).await;
    drop(input);
    let output = timeout(TIMEOUT, child.wait_with_output()).await;
    let output = output.expect("the client ends").unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[tokio::test]
async fn the_client_prints_what_the_agent_says() {
    let home = Home::bare();
    home.file("violets.txt", "violets are blue\n");
    let prompts = ["read violets.txt", "run `echo second`"];
    let (code, output, requested) = client(&home, &prompts, "").await;
    assert_eq!(code, Some(0), "{requested}");
    let (first, second) = output.split_once("`bash` gave").expect("the second answer");
    assert!(first.contains("violets are blue"), "{output}");
    assert!(second.contains("second\n"), "{output}");
    assert_eq!(
        requested,
        "[read {\"path\": \"violets.txt\"}]\n[bash {\"command\": \"echo second\"}]\n"
    );
}

#[tokio::test]
async fn the_client_asks_what_extensions_ask() {
    let home = with("confirm-bash.ts");
    install(&home, "notes.ts");
    let file = home.file("precious/file", "");
    let wipe = "run `rm -rf precious`";
    let prompts = [wipe, "/note", "/notes", wipe];
    let (code, _, requested) = client(&home, &prompts, "3\nbuy milk\n1\n").await;
    assert_eq!(code, Some(0), "{requested}");
    assert!(
        requested.contains(
            "? This deletes folders:\nrm -rf precious\n  1. Run it\n  2. Run it, and do not ask \
             about this command again\n  3. Do not run it\n1-3> [bash failed]\n? Note\nanswer> "
        ),
        "{requested}"
    );
    assert!(requested.contains("[info] 1. buy milk\n"), "{requested}");
    assert!(!file.exists());
}

#[tokio::test]
async fn the_client_says_why_pi_does_not_answer() {
    let home = Home::bare();
    let (code, output, requested) = client(&home, &["hello", "--", "--provider", "none"], "").await;
    assert_eq!((code, output.as_str()), (Some(1), ""));
    assert!(requested.contains("none"), "{requested}");
    assert!(
        requested.ends_with("pi ended (exit code 1)\n"),
        "{requested}"
    );
}
