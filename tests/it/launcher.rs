//! `pi launcher`: what clients start as `node <path>`.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use crate::support::{Home, PATIENCE, finish};

const WORDS: [&str; 5] = ["--mode", "rpc", "--no-session", "--provider", "demo"];

/// The launcher by this name, in a folder that is to be made.
async fn written(home: &Home, name: &str) -> String {
    let path = home.cwd().join("dist").join(name).display().to_string();
    home.run(&["launcher", &path], "").await.ok();
    path
}

#[tokio::test]
async fn it_runs_as_a_script_of_every_kind() {
    let home = Home::bare();
    let printed = home.run(&["launcher"], "").await.ok();
    for (name, package) in [
        ("cli.mjs", "{}"),
        ("cli.cjs", "{}"),
        ("cli.js", r#"{"type": "module"}"#),
        ("other.js", r#"{"type": "commonjs"}"#),
    ] {
        let path = written(&home, name).await;
        home.file("dist/package.json", package);
        assert_eq!(fs::read_to_string(&path).unwrap(), printed);
        let mut node = home.command("node");
        node.args([&path, "--version"]);
        assert_eq!(finish(node, "").await.ok(), "0.87.1\n", "{name}");
        // As `#!` has it.
        let mut alone = home.command(&path);
        alone.arg("--nonsense");
        let error = finish(alone, "").await.failed(1);
        assert_eq!(error, "Error: Unknown option: --nonsense\n");
    }
}

#[tokio::test]
async fn input_and_signals_reach_the_program() {
    let home = Home::bare();
    let path = written(&home, "cli.mjs").await;
    for (signal, code) in [
        (None, 0),
        (Some(Signal::SIGTERM), 143),
        (Some(Signal::SIGINT), 130),
    ] {
        let mut command = home.command("node");
        command.arg(&path).args(WORDS).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(b"{\"type\":\"get_state\"}\n")
            .await
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line.expect("it answers").unwrap().expect("a line");
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["success"], json!(true));
        match signal {
            Some(signal) => {
                let pid = Pid::from_raw(child.id().unwrap().cast_signed());
                kill(pid, signal).unwrap();
            }
            None => drop(stdin),
        }
        let status = timeout(PATIENCE, child.wait()).await.expect("it ends");
        assert_eq!(status.unwrap().code(), Some(code), "{signal:?}");
    }
}

/// A client that kills what it has started left pi behind.
#[tokio::test]
async fn the_program_ends_when_the_launcher_is_killed() {
    let home = Home::bare();
    let path = written(&home, "cli.mjs").await;
    let mut command = home.command("node");
    command.arg(&path).args(WORDS).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"{\"type\":\"get_state\"}\n")
        .await
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, lines.next_line()).await;
    line.expect("it answers").unwrap().expect("a line");
    child.kill().await.unwrap();
    // Its stdout closes when nobody holds it any more.
    let end = timeout(PATIENCE, async {
        while lines.next_line().await.unwrap().is_some() {}
    });
    end.await.expect("pi ends");
}

#[tokio::test]
async fn it_replaces_a_launcher_and_nothing_else() {
    let home = Home::bare();
    let path = written(&home, "cli.js").await;
    fs::write(&path, fs::read_to_string(&path).unwrap() + "// older").unwrap();
    home.run(&["launcher", &path], "").await.ok();
    assert!(!fs::read_to_string(&path).unwrap().contains("older"));
    let mine = home.file("mine.js", "console.log(1);");
    let name = mine.display().to_string();
    let error = home.run(&["launcher", &name], "").await.failed(1);
    assert_eq!(
        error,
        format!("Error: {name} is there and is no launcher: remove it, or name another file\n")
    );
    assert_eq!(fs::read_to_string(&mine).unwrap(), "console.log(1);");
    let folder = home.cwd().display().to_string();
    let error = home.run(&["launcher", &folder], "").await.failed(1);
    let begin = format!("Error: pi launcher cannot write {folder}: ");
    assert!(error.starts_with(&begin), "{error}");
    let mut gone = home.command("node");
    gone.args([&path, "--version"])
        .env("PI_PROGRAM", "/no/such/pi");
    let error = finish(gone, "").await.failed(127);
    assert_eq!(error, "/no/such/pi: spawn /no/such/pi ENOENT\n");
}
