//! `pi launcher` writes a script that clients start as `node <path>`.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::timeout;

use crate::support::{DEMO_NO_SESSION, Home, Rpc, TIMEOUT, command, finish};

/// Writes a launcher of this name into a new folder and returns its path.
async fn written(home: &Home, name: &str) -> String {
    let path = home.cwd().join("dist").join(name).display().to_string();
    home.run(&["launcher", &path], "").await.ok();
    path
}

/// Starts RPC mode through the launcher and waits until the program answers.
async fn start(home: &Home, path: &str) -> Rpc {
    let mut node = home.command("node");
    node.args([path, "--mode", "rpc"]).args(DEMO_NO_SESSION);
    let mut rpc = Rpc::start(node);
    rpc.ok(command("get_state")).await;
    rpc
}

#[tokio::test]
async fn the_launcher_runs_as_esm_commonjs_and_executable() {
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
        // The launcher is executable and starts with `#!`.
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
        let mut rpc = start(&home, &path).await;
        match signal {
            Some(signal) => {
                let pid = Pid::from_raw(rpc.process_id().cast_signed());
                kill(pid, signal).unwrap();
            }
            None => rpc.close_stdin(),
        }
        assert_eq!(rpc.end().await.code(), Some(code), "{signal:?}");
    }
}

/// pi went on running when a client killed the process that it had started.
#[tokio::test]
async fn the_program_ends_when_the_launcher_is_killed() {
    let home = Home::bare();
    let path = written(&home, "cli.mjs").await;
    let rpc = start(&home, &path).await;
    // The pipe of stdout closes when the last process that holds it has ended.
    timeout(TIMEOUT, rpc.kill()).await.expect("pi ends");
}

#[tokio::test]
async fn the_launcher_replaces_only_other_launchers() {
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
