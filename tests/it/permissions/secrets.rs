//! Known secrets are written nowhere, whatever a tool prints.

use std::fs;
use std::path::Path;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, text_of};

const STORED: &str = "sk-stored-8c1f0a77e2";
const IN_ENV: &str = "sk-env-55d0c1b9aa34";
const OF_NPM: &str = "npm_3fbb91c07d55e2a1";
/// A line of a private key.
const KEY_OF_NPM: &str = "MIIBVAIBADANBgkqhkiG9w0BAQEFAASCAT4wggE6AgEAAkEAq7BFUpkGp3+LQmlQ";

/// Returns the files under `folder` that contain `text`.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                left.push(path);
            } else if let Ok(bytes) = fs::read(&path)
                && String::from_utf8_lossy(&bytes).contains(text)
            {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Puts secrets into the home and the environment, and starts a client of pi.
fn start(home: &Home, arguments: &[&str]) -> Rpc {
    let auth = json!({ "openai": { "type": "api_key", "key": STORED } });
    fs::write(home.agent_dir().join("auth.json"), auth.to_string()).unwrap();
    let npmrc = format!(
        "//registry.example/:_authToken={OF_NPM}\n\
         key=\"-----BEGIN PRIVATE KEY-----\\n{KEY_OF_NPM}\\n-----END PRIVATE KEY-----\"\n"
    );
    fs::write(home.agent_dir().join("../../.npmrc"), npmrc).unwrap();
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command
        .args(["--mode", "rpc"])
        .args(arguments)
        .env("GROQ_API_KEY", IN_ENV)
        .env("PI_LOG", "debug");
    Rpc::start(command)
}

#[tokio::test]
async fn secrets_that_a_tool_prints_are_written_nowhere() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "leak.ts",
        r#"export default (pi) => {
  pi.registerTool({
    name: "leak", label: "leak", description: "leaks", parameters: { type: "object", properties: {} },
    async execute(id, params, signal, onUpdate) {
      const { execSync } = await import("node:child_process");
      const key = execSync("echo $GROQ_API_KEY").toString().trim();
      onUpdate({ content: [{ type: "text", text: "update " + key }], details: { [key]: [key] } });
      console.error("log " + key);
      return { content: [{ type: "text", text: "own " + key }], details: { key } };
    },
  });
  pi.registerTool({
    name: "fail", label: "fail", description: "fails", parameters: { type: "object", properties: {} },
    async execute() { throw new Error("failed with " + process.env.GROQ_API_KEY); },
  });
};"#,
    );
    // The first command is slow enough for updates with a part of a secret, and the second prints
    // enough for a file in the temporary folder.
    let slow = format!(
        "cat {auth} ~/.npmrc; printf %s \"${{GROQ_API_KEY:0:9}}\"; sleep 0.3; printf '%s\\n' \"${{GROQ_API_KEY:9}}\"",
        auth = home.agent_dir().join("auth.json").display()
    );
    let long = "for i in $(seq 3000); do echo $i $GROQ_API_KEY; done";
    for (tool, input) in [
        ("bash", json!({ "command": slow })),
        ("bash", json!({ "command": long })),
        ("read", json!({ "path": "~/.npmrc" })),
        ("leak", json!({})),
        ("fail", json!({})),
    ] {
        server.push(Answer::tool(tool, input));
    }
    server.push(Answer::error(
        400,
        &format!("the key {IN_ENV} is not known"),
    ));
    let mut rpc = start(&home, &[]);
    rpc.run("go").await;
    rpc.ok(json!({ "type": "bash", "command": "echo mine $GROQ_API_KEY" }))
        .await;
    let page = home.cwd().join("page.html");
    rpc.ok(json!({ "type": "export_html", "outputPath": page }))
        .await;
    let lines = rpc.raw_lines().join("\n");
    rpc.close_stdin();
    rpc.end().await;
    let requests: Vec<String> = server
        .requests()
        .iter()
        .map(|it| it.body.to_string())
        .collect();
    let requests = requests.join("\n");
    // The tools have run.
    for seen in [
        "own [redacted]",
        "update [redacted]",
        "failed with [redacted]",
        "mine [redacted]",
        "3000 [redacted]",
    ] {
        assert!(lines.contains(seen), "{seen}\n{lines}");
    }
    let root = home.agent_dir().join("../../..");
    for secret in [STORED, IN_ENV, OF_NPM, KEY_OF_NPM] {
        assert!(!lines.contains(secret), "{secret} went to the client");
        assert!(!requests.contains(secret), "{secret} went to the model");
        let found = files_with(&root, secret);
        let expected: &[&str] = match secret {
            STORED => &["auth.json"],
            OF_NPM | KEY_OF_NPM => &[".npmrc"],
            _ => &[],
        };
        let names: Vec<&str> = (found.iter())
            .map(|path| path.rsplit('/').next().unwrap())
            .collect();
        assert_eq!(names, expected, "{found:?}");
    }
    // The beginning of the secret that came in two pieces was not shown either.
    assert!(!lines.contains(&IN_ENV[..9]), "{lines}");
}

/// Secrets were known only to a process that had run a tool or used a model.
#[tokio::test]
async fn secrets_that_the_user_writes_are_not_in_exports() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    server.push(Answer::text("I forget it."));
    let mut rpc = start(&home, &[]);
    let message = format!("my secrets are {STORED} and {OF_NPM}");
    rpc.answer_to(&message).await;
    let first = home.cwd().join("first.html");
    rpc.ok(json!({ "type": "export_html", "outputPath": first }))
        .await;
    rpc.close().await;
    let session = home.session();
    assert!(fs::read_to_string(&session).unwrap().contains(&message));
    let second = home.cwd().join("second.html");
    let arguments = [
        "--export",
        session.to_str().unwrap(),
        second.to_str().unwrap(),
    ];
    home.run(&arguments, "").await.ok();
    for page in [first, second] {
        let text = fs::read_to_string(page).unwrap();
        assert!(text.contains("my secrets are [redacted] and [redacted]"));
    }
}

/// Returns what the tool `bash` prints with this value of `env.hide`.
async fn printed(hide: Value, line: &str) -> String {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "env": { "hide": hide } }));
    home.extension(
        "child.ts",
        r#"export default (pi) => {
  pi.registerCommand("child", { handler: async (_, ctx) => {
    const { stdout } = await pi.exec("sh", ["-c", "echo child ${#GROQ_API_KEY}"]);
    ctx.ui.notify(stdout.trim());
  } });
};"#,
    );
    server.push(Answer::tool("bash", json!({ "command": line })));
    server.push(Answer::text("Done."));
    let mut rpc = start(&home, &[]);
    let events = rpc.run("go").await;
    // Children of extensions keep the variable: they may be other agents.
    rpc.ok(crate::support::prompt("/child")).await;
    rpc.notified(&format!("child {}", IN_ENV.len())).await;
    let end = events
        .iter()
        .find(|event| event["type"] == "tool_execution_end");
    text_of(&end.unwrap()["result"]).trim().to_owned()
}

#[tokio::test]
async fn hidden_variables_are_not_in_the_environment_of_commands() {
    let line = "echo key ${#GROQ_API_KEY} log ${#PI_LOG}";
    assert_eq!(printed(json!(false), line).await, "key 19 log 5");
    assert_eq!(printed(json!(true), line).await, "key 0 log 5");
    assert_eq!(printed(json!(["PI_LOG"]), line).await, "key 19 log 0");
}
