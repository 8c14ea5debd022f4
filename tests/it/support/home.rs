//! A user's machine in a temporary folder: home, agent folder, working directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use model_server::{Api, ModelServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::{Reference, Rpc, TIMEOUT};

pub struct Home {
    root: TempDir,
}

/// The result of a program that ran to its end.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    /// A home without any configuration.
    pub fn bare() -> Self {
        let root = TempDir::with_prefix("pi-it-").expect("a temporary folder");
        let home = Self { root };
        fs::create_dir_all(home.agent_dir()).unwrap();
        fs::create_dir_all(home.cwd()).unwrap();
        home
    }

    /// A home that is set up for the server's model; retries come at once.
    pub fn new(server: &ModelServer) -> Self {
        Self::with_api(server, Api::AnthropicMessages)
    }

    pub fn with_api(server: &ModelServer, api: Api) -> Self {
        let home = Self::bare();
        fs::write(
            home.agent_dir().join("models.json"),
            server.models_json(api),
        )
        .unwrap();
        home.settings(json!({}));
        home
    }

    /// Replaces the global settings; the model and the retries stay.
    pub fn settings(&self, mut more: Value) {
        more["defaultProvider"] = json!(model_server::PROVIDER);
        more["defaultModel"] = json!(model_server::MODEL);
        // Tests without a value of their own run with this one (CONTRIBUTING.md).
        if let Ok(place) = std::env::var("PI_TEST_EXTENSION_HOST")
            && more.get("extensionHost").is_none()
        {
            more["extensionHost"] = json!(place);
        }
        // A test of trust asks for the question.
        if more.get("defaultProjectTrust").is_none() {
            more["defaultProjectTrust"] = json!("always");
        }
        let retry = &mut more["retry"];
        retry["enabled"] = json!(true);
        retry["maxRetries"] = json!(3);
        retry["baseDelayMs"] = json!(1);
        fs::write(self.agent_dir().join("settings.json"), more.to_string()).unwrap();
    }

    /// Lets all projects in without a question, where trust is not the subject.
    pub fn trust_projects(&self) {
        let settings = json!({"defaultProjectTrust": "always"});
        fs::write(self.agent_dir().join("settings.json"), settings.to_string()).unwrap();
    }

    pub fn agent_dir(&self) -> PathBuf {
        self.root.path().join("home/.pi/agent")
    }

    pub fn cwd(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Writes a file of the working directory.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        write(self.cwd().join(name), content)
    }

    /// Puts an extension where every session of this user finds it.
    pub fn extension(&self, name: &str, source: &str) -> PathBuf {
        write(self.agent_dir().join("extensions").join(name), source)
    }

    /// Installs an example of the original package unchanged, like [`Self::extension`].
    pub fn example(&self, name: &str) -> PathBuf {
        let from = Reference::install().example(name);
        let to = self.agent_dir().join("extensions").join(name);
        copy(&from, &to);
        to
    }

    /// All session files in the default place, oldest first.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        find_jsonl(&self.agent_dir().join("sessions"), &mut found);
        found.sort();
        found
    }

    /// The only session file there is.
    pub fn session(&self) -> PathBuf {
        let mut sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions.remove(0)
    }

    /// The lines of the only session file.
    pub fn entries(&self) -> Vec<Value> {
        read_jsonl(&self.session())
    }

    pub fn rpc(&self, arguments: &[&str]) -> Rpc {
        let mut command = self.command(env!("CARGO_BIN_EXE_pi"));
        command.args(["--mode", "rpc"]).args(arguments);
        Rpc::start(command)
    }

    /// A client of the original in the same home.
    pub fn original_rpc(&self, arguments: &[&str]) -> Rpc {
        let mut command = self.command("node");
        command.arg(Reference::install().program());
        command.args(["--mode", "rpc"]).args(arguments);
        Rpc::start(command)
    }

    /// Runs pi to its end. An empty `stdin` is closed at once.
    pub async fn run(&self, arguments: &[&str], stdin: &str) -> Finished {
        let mut command = self.command(env!("CARGO_BIN_EXE_pi"));
        command.args(arguments);
        finish(command, stdin).await
    }

    /// Runs the original in the same home.
    pub async fn run_original(&self, arguments: &[&str]) -> Finished {
        let mut command = self.command("node");
        command.arg(Reference::install().program()).args(arguments);
        finish(command, "").await
    }

    /// A command with a clean environment, without variables of the developer.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path().join("home"))
            .env("TMPDIR", self.root.path())
            .env("LANG", "C.UTF-8")
            .env("PI_OFFLINE", "1")
            .current_dir(self.cwd())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

impl Finished {
    /// Insists on success and returns stdout.
    pub fn ok(self) -> String {
        assert!(self.status.success(), "{self:#?}");
        self.stdout
    }

    /// Insists on an exit code and returns stderr.
    pub fn failed(self, code: i32) -> String {
        assert_eq!(self.status.code(), Some(code), "{self:#?}");
        self.stderr
    }
}

pub fn read_jsonl(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(parse).collect()
}

/// Runs a program to its end.
pub async fn finish(mut command: Command, stdin: &str) -> Finished {
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("it is piped");
    // A program that fails early does not read stdin.
    let _ = input.write_all(stdin.as_bytes()).await;
    drop(input);
    let output = tokio::time::timeout(TIMEOUT, child.wait_with_output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("still runs: {command:?}"))
        .unwrap();
    Finished {
        status: output.status,
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn write(path: PathBuf, content: &str) -> PathBuf {
    fs::create_dir_all(path.parent().expect("it is below a folder")).unwrap();
    fs::write(&path, content).unwrap();
    path
}

pub fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to.parent().expect("it is below a folder")).unwrap();
        fs::copy(from, to).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

fn find_jsonl(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            find_jsonl(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            found.push(path);
        }
    }
}
