//! Examples of the original that replace the work of the built-in tools, as published on npm.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, Terminal, text_of};

/// Lets the model call one tool and returns the text that the model gets.
async fn call(server: &ModelServer, rpc: &mut Rpc, tool: &str, arguments: Value) -> String {
    server.push(Answer::tool(tool, arguments));
    server.push(Answer::text("I see."));
    let events = rpc.run("use the tool").await;
    let ends = events.iter();
    let mut ends = ends.filter(|event| event["type"] == "tool_execution_end");
    text_of(&ends.next().expect("a tool was used")["result"])
}

/// A remote machine: this one, with a log of the requests.
const SSH: &str = "#!/bin/sh\necho \"$1\" >> \"$HOME/ssh.log\"\nexec bash -c \"$2\"\n";

/// Puts a fake `ssh` in front of `PATH` and returns the path.
fn with_ssh(home: &Home) -> String {
    let program = home.file("bin/ssh", SSH);
    let mut permissions = fs::metadata(&program).unwrap().permissions();
    permissions.set_mode(0o755);
    fs::set_permissions(&program, permissions).unwrap();
    let bin = program.parent().unwrap().display().to_string();
    format!("{bin}:{}", std::env::var("PATH").unwrap_or_default())
}

#[tokio::test]
async fn tools_run_on_another_machine() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example("ssh.ts");
    let path = with_ssh(&home);
    let far = home.cwd().join("far");
    fs::create_dir(&far).unwrap();
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    let remote = format!("me@there:{}", far.display());
    command
        .env("PATH", path)
        .args(["--mode", "rpc", "--ssh", &remote]);
    let mut rpc = Rpc::start(command);
    rpc.notified(&format!("SSH mode: me@there:{}", far.display()))
        .await;

    let arguments = json!({"path": "sub/a.txt", "content": "one\ntwo"});
    let output = call(&server, &mut rpc, "write", arguments).await;
    assert_eq!(output, "Successfully wrote 7 bytes to sub/a.txt");
    assert_eq!(
        fs::read_to_string(far.join("sub/a.txt")).unwrap(),
        "one\ntwo"
    );
    assert!(!home.cwd().join("sub").exists());

    let edits = json!([{"oldText": "two", "newText": "2"}]);
    let arguments = json!({"path": "sub/a.txt", "edits": edits});
    let output = call(&server, &mut rpc, "edit", arguments).await;
    assert_eq!(output, "Successfully replaced 1 block(s) in sub/a.txt.");
    let arguments = json!({"path": "sub/a.txt", "offset": 2});
    assert_eq!(call(&server, &mut rpc, "read", arguments).await, "2");
    let arguments = json!({"command": "pwd; cat sub/a.txt; exit 3"});
    let output = call(&server, &mut rpc, "bash", arguments).await;
    let expected = format!("{}\none\n2\n\nCommand exited with code 3", far.display());
    assert_eq!(output, expected);
    let arguments = json!({"path": "nothing"});
    let output = call(&server, &mut rpc, "read", arguments).await;
    assert!(output.starts_with("SSH failed (1):"), "{output}");
    let reported = server.last_request().body["system"].to_string();
    assert!(reported.contains("(via SSH: me@there)"), "{reported}");
    let log = home.agent_dir().join("../../ssh.log");
    assert!(fs::read_to_string(log).unwrap().lines().count() > 5);
}

#[tokio::test]
async fn a_hook_runs_before_every_command() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example("bash-spawn-hook.ts");
    fs::write(home.agent_dir().join("../../.profile"), "GREETING=hello\n").unwrap();
    let mut rpc = home.rpc(&[]);
    let arguments = json!({"command": "echo $GREETING $PI_SPAWN_HOOK"});
    let output = call(&server, &mut rpc, "bash", arguments).await;
    assert_eq!(output, "hello 1\n");
}

#[tokio::test]
async fn tools_may_only_change_their_rendering() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example("minimal-mode.ts");
    home.file("a.txt", "A\nB");
    let mut rpc = home.rpc(&["--tools", "read,bash,edit,write,grep,find,ls"]);
    for (tool, arguments, expected) in [
        ("read", json!({"path": "a.txt"}), "A\nB"),
        ("bash", json!({"command": "echo x"}), "x\n"),
        ("ls", json!({}), "a.txt"),
        ("find", json!({"pattern": "*.txt"}), "a.txt"),
        ("grep", json!({"pattern": "B"}), "a.txt:2: B"),
    ] {
        assert_eq!(call(&server, &mut rpc, tool, arguments).await, expected);
    }
}

#[test]
fn the_users_commands_run_on_another_machine() {
    let home = Home::bare();
    home.example("ssh.ts");
    // The program gets only these environment variables.
    let path = with_ssh(&home);
    home.extension(
        "a-path.ts",
        &format!("process.env.PATH = {path:?};\nexport default () => {{}};"),
    );
    let far = home.cwd().join("far");
    fs::create_dir(&far).unwrap();
    let remote = format!("me@there:{}", far.display());
    let arguments = ["--provider", "demo", "--model", "demo", "--ssh", &remote];
    let mut terminal = Terminal::open(&home, "xterm", &arguments);
    terminal.see("SSH mode");
    terminal.see("> ");
    terminal.line("!pwd");
    terminal.see("/far");
}
