//! Published third-party clients of the protocol: the original's `RpcClient`, and the examples of
//! its documentation.

use std::fs;
use std::path::{Path, PathBuf};

use model_server::{Answer, Api, ModelServer, Received};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use crate::conformance::program::packages;
use crate::rpc::client_table::Client;
use crate::support::{Home, PIXEL, Reference, TIMEOUT, finish, newest_client, python_with};

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The answers to the driver's prompts.
fn answer(request: &Received) -> Option<Answer> {
    let messages = request.body["messages"].as_array()?;
    let last = messages.last()?.to_string();
    let requested = last_text(messages.last()?);
    Some(match requested.as_deref() {
        _ if last.contains("tool_result") => Answer::text("done"),
        Some("wait") => Answer::tool(
            "bash",
            json!({"command": "until [ -e go ]; do sleep 0.05; done"}),
        ),
        Some("stall") => Answer::text("once upon a time").stall_after(1),
        Some("overload") => Answer::error(529, "overloaded"),
        Some("refuse") => Answer::error(400, "refused"),
        Some("run") => Answer::tool("bash", json!({"command": "echo ran"})),
        Some("remove") => Answer::tool("bash", json!({"command": "rm kept.txt"})),
        Some(text) => match text.strip_prefix("say ") {
            Some(word) => Answer::text(word),
            None => Answer::text("In short: nothing."),
        },
        None => return None,
    })
}

fn last_text(message: &Value) -> Option<String> {
    match &message["content"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.next().map(str::to_owned)
        }
        _ => None,
    }
}

/// A home with two models and one slash command of each kind.
fn home(server: &ModelServer) -> Home {
    let home = Home::bare();
    let mut models: Value =
        serde_json::from_str(&server.models_json(Api::AnthropicMessages)).unwrap();
    let list = &mut models["providers"][model_server::PROVIDER]["models"];
    let mut second = list[0].clone();
    second["id"] = json!("scripted-2");
    list.as_array_mut().unwrap().push(second);
    let agent_dir = home.agent_dir();
    fs::write(agent_dir.join("models.json"), models.to_string()).unwrap();
    // A retry is far away, and compactions keep almost nothing.
    let settings = json!({
        "retry": {"enabled": true, "maxRetries": 3, "baseDelayMs": 600_000, "maxDelayMs": 900_000},
        "compaction": {"enabled": true, "keepRecentTokens": 1, "reserveTokens": 16384},
    });
    fs::write(agent_dir.join("settings.json"), settings.to_string()).unwrap();
    home.extension(
        "greet.ts",
        r#"export default (pi) => pi.registerCommand("greet", { handler: async () => {} });"#,
    );
    home.extension(
        "gate.ts",
        r#"export default (pi) => pi.on("tool_call", async ({ input }, ctx) => {
          if (!input.command?.startsWith("rm ") || await ctx.ui.confirm("Dangerous", input.command)) return;
          return { block: true, reason: "refused" };
        });"#,
    );
    let write = |path: &str, text: &str| {
        let path = agent_dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("prompts/review.md", "Review this.\n");
    write(
        "skills/ironing/SKILL.md",
        "---\nname: ironing\ndescription: How to iron.\n---\nHot.\n",
    );
    home
}

/// Makes an `RpcClient` call all of its methods.
async fn drive(client: &Path) {
    let server = ModelServer::start().await;
    server.answer_by(answer);
    let home = home(&server);
    let launcher = program(&home).await;
    let mut command = home.command("node");
    command
        .arg(file("tests/rpc-clients/drive.mjs"))
        .args([client, &launcher, Path::new(PIXEL)]);
    let output = finish(command, "").await.ok();
    assert_eq!(output, "every method: ok\n");
    let pictures = |request: &Received| request.body.to_string().matches(PIXEL).count();
    assert!(server.requests().iter().any(|one| pictures(one) == 1));
}

/// The program that the client starts with `node`. `PI_RPC_CLIENT_PROGRAM=original` shows whether
/// the driver expects what the original does.
async fn program(home: &Home) -> PathBuf {
    if std::env::var_os("PI_RPC_CLIENT_PROGRAM").is_some() {
        return Reference::install().program();
    }
    let path = home.cwd().join("dist/cli.js");
    let words = ["launcher", path.to_str().expect("UTF-8")];
    let output = home.run(&words, "").await.ok();
    assert_eq!(output, format!("{}\n", path.display()));
    path
}

const EVERY_METHOD: &str = "every method, through `pi launcher` (tests/rpc-clients/drive.mjs)";

#[tokio::test]
async fn the_originals_client_can_call_every_method() {
    let package = Reference::install();
    drive(&package.package().join("dist/modes/rpc/rpc-client.js")).await;
    Client {
        name: "`RpcClient` of `@mariozechner/pi-coding-agent`",
        version: "0.67.68",
        what: EVERY_METHOD,
    }
    .passes();
}

#[tokio::test]
async fn the_newest_client_can_call_every_method() {
    drive(&newest_client().join("rpc-client.js")).await;
    Client {
        name: "`RpcClient` of `@earendil-works/pi-coding-agent`",
        version: "1.5.2",
        what: EVERY_METHOD,
    }
    .passes();
}

/// Editors such as Zed start this adapter.
#[tokio::test]
async fn an_editor_works_through_pi_acp() {
    let wanted = ["pi-acp@0.0.34", "@agentclientprotocol/sdk@0.26.0"];
    let adapter = packages("pi-acp", &wanted.map(str::to_owned));
    let sdk = adapter.with_file_name("@agentclientprotocol/sdk/dist/acp.js");
    let server = ModelServer::start().await;
    server.answer_by(answer);
    let home = home(&server);
    home.file("kept.txt", "kept");
    let mut command = with_pi(&home, "node", &file("tests/rpc-clients/acp.mjs"));
    command.args([&adapter.join("dist/index.js"), &sdk, Path::new(PIXEL)]);
    let output = finish(command, "").await.ok();
    assert_eq!(output, "every request: ok\n");
    Client {
        name: "`pi-acp`",
        version: "0.0.34",
        what: "a client of `@agentclientprotocol/sdk` 0.26.0: prompts, pictures, tools, questions, \
               cancelling, models, modes, commands, sessions (tests/rpc-clients/acp.mjs)",
    }
    .passes();
}

#[tokio::test]
async fn the_python_sdk_can_call_every_method() {
    let python = python_with("pi-agent-python-sdk", "0.2.6");
    let server = ModelServer::start().await;
    server.answer_by(answer);
    let home = home(&server);
    let mut command = home.command(python.to_str().expect("UTF-8"));
    command
        .arg(file("tests/rpc-clients/sdk.py"))
        .args([env!("CARGO_BIN_EXE_pi"), PIXEL]);
    let output = finish(command, "").await.ok();
    assert_eq!(output, "every method: ok\n");
    Client {
        name: "`pi-agent-python-sdk`",
        version: "0.2.6",
        what: "every method of both clients, versions (tests/rpc-clients/sdk.py)",
    }
    .passes();
}

/// The first example in a language in the original's description of the protocol.
fn documented(language: &str) -> String {
    let path = Reference::install().package().join("docs/rpc.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, rest) = text
        .split_once(&format!("```{language}\n"))
        .expect("there is one");
    rest.split_once("```").expect("it ends").0.to_owned()
}

/// A command that runs a file with `pi` in `PATH`, as the examples expect.
fn with_pi(home: &Home, interpreter: &str, script: &Path) -> Command {
    let folder = home.cwd().join("bin");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pi"), folder.join("pi")).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder).chain(std::env::split_paths(&path));
    let mut command = home.command(interpreter);
    command
        .arg(script)
        .env("PATH", std::env::join_paths(folders).unwrap());
    command
}

#[tokio::test]
async fn the_documented_python_client_runs_unchanged() {
    let server = ModelServer::start().await;
    server.push(Answer::text("Hello to you, too: \u{e9}\u{1f980}\u{2028}!"));
    let home = Home::new(&server);
    let script = home.file("client.py", &documented("python"));
    let output = finish(with_pi(&home, "python3", &script), "").await.ok();
    assert_eq!(output, "Hello to you, too: \u{e9}\u{1f980}\u{2028}!\n");
}

#[tokio::test]
async fn the_documented_node_client_runs_unchanged() {
    let server = ModelServer::start().await;
    server.push(Answer::text("Hello to you, too, and").stall_after(2));
    let home = Home::new(&server);
    let script = home.file("client.js", &documented("javascript"));
    let mut client = with_pi(&home, "node", &script).spawn().unwrap();
    let mut output = String::new();
    let mut stdout = client.stdout.take().unwrap();
    let mut next = [0; 64];
    while output != "Hello to you, too, and" {
        let read = timeout(TIMEOUT, stdout.read(&mut next)).await;
        let count = read.expect("the client says it all").unwrap();
        assert_ne!(count, 0, "{output}");
        output += str::from_utf8(&next[..count]).expect("ASCII");
    }
    // This client turns Ctrl-C into `abort`.
    let pid = nix::unistd::Pid::from_raw(client.id().unwrap().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    server.hung_up(1).await;
    assert_eq!(client.try_wait().unwrap(), None);
}
