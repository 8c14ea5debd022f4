//! Plays a scenario in one of the two programs and records everything that is visible from outside.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use model_server::{Api, ModelServer};
use serde_json::{Value, json};
use tokio::process::Command;

use super::normal::Names;
use super::program::{self, Program};
use super::scenario::{self, Mode, Scenario, Step, Suite, has};
use super::words::Words;
use crate::support::{
    Home, Reference, Rpc, finish, pause, prompt, read_jsonl, until_exists, without,
};

/// Records by channel: `events`, `extension`, `responses`, `requests`, `sessions`, `files`,
/// `terminal`, `shell`, `end`. There is no order between channels: in the original, too, it depends
/// on timing.
pub(super) struct Transcript {
    pub channels: BTreeMap<String, Vec<Value>>,
}

/// The file that `harness.ts` writes.
const RENDERED: &str = "work/rendered.jsonl";

pub(super) struct Side<'a> {
    program: Program,
    suite: &'a Suite,
    scenario: Scenario,
    server: ModelServer,
    home: Home,
    /// Where each kind of line was last found.
    positions: BTreeMap<String, usize>,
    seen: Vec<Value>,
    responses: Vec<Value>,
    shell: Vec<Value>,
    end: Vec<Value>,
}

pub(super) async fn play(program: Program, suite: &Suite, scenario: &Scenario) -> Transcript {
    let server = ModelServer::start().await;
    let home = Home::with_api(&server, Api::AnthropicMessages);
    let root = root(&home);
    // Placeholders of scenarios for paths that differ between the programs.
    let places = [
        ("$ROOT", root.to_str().expect("a made folder").to_owned()),
        ("$SERVER", server.url()),
    ];
    let mut scenario = scenario.clone();
    scenario.fill(&places);
    let mut side = Side {
        program,
        suite,
        scenario,
        server,
        home,
        positions: BTreeMap::new(),
        seen: Vec::new(),
        responses: Vec::new(),
        shell: Vec::new(),
        end: Vec::new(),
    };
    side.prepare().await;
    let before = files(&root);
    match side.scenario.mode {
        Mode::Rpc => side.talk().await,
        mode => side.run(mode).await,
    }
    let words = Words::for_program(&side.program).await;
    side.transcript(&before, words)
}

pub(super) fn root(home: &Home) -> PathBuf {
    home.cwd()
        .parent()
        .expect("it is below a folder")
        .to_owned()
}

impl Side<'_> {
    async fn prepare(&mut self) {
        let scenario = &self.scenario;
        for answer in &scenario.answers {
            self.server.push(answer.clone());
        }
        let mut settings = scenario.settings.clone().unwrap_or(json!({}));
        let extensions = self.home.agent_dir().join("extensions");
        if let Some(example) = &self.suite.example {
            let from = Reference::install().example(example);
            let folder = match self.suite.terminal {
                true => self.home.agent_dir().join("target"),
                false => extensions.clone(),
            };
            crate::support::copy(&from, &folder.join(example));
        }
        if !self.suite.packages.is_empty() {
            let folder = program::installed(&self.suite.name, &self.suite.packages);
            settings["packages"] = json!([folder]);
            // Compiled scripts are kept between runs.
            let compiled = folder.ancestors().find(|path| path.join("lock").exists());
            let compiled = compiled.expect("its own folder").join("compiled");
            fs::create_dir_all(&compiled).unwrap();
            symlink(compiled, self.home.agent_dir().join("cache")).unwrap();
            // Debug builds compile large packages slowly on a busy machine.
            settings["extensionTimeouts"] = json!({
                "handler": 150_000, "load": 150_000, "spin": 150_000,
            });
        }
        if self.suite.terminal {
            fs::create_dir_all(&extensions).unwrap();
            let harness = scenario::folder().join("harness.ts");
            fs::copy(harness, extensions.join("harness.ts")).unwrap();
        }
        self.home.settings(settings);
        for (path, text) in &scenario.files {
            match path.strip_prefix("~/") {
                Some(path) => {
                    let path = self.home.agent_dir().join(path);
                    fs::create_dir_all(path.parent().expect("below a folder")).unwrap();
                    fs::write(path, text).unwrap();
                }
                None => drop(self.home.file(path, text)),
            }
        }
        if let Some(change) = &scenario.models {
            let path = self.home.agent_dir().join("models.json");
            let mut models: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            merge(&mut models, change);
            fs::write(path, models.to_string()).unwrap();
        }
        let bin = root(&self.home).join("bin");
        fs::create_dir_all(&bin).unwrap();
        self.program.link(&bin.join("pi"));
        for (name, text) in &scenario.bin {
            executable(&bin.join(name), text);
        }
        for line in scenario.before.clone() {
            self.shell(&line).await;
        }
        if self.scenario.git {
            let line = "git init -q -b main && git add -A && git commit -q -m first";
            self.shell(line).await;
            self.shell.clear();
        }
    }

    fn command(&self, mut command: Command) -> Command {
        let root = root(&self.home);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(root.join("bin")).chain(std::env::split_paths(&path));
        command
            .env(
                "PATH",
                std::env::join_paths(folders).expect("no colons in it"),
            )
            .env("SHELL", "/bin/bash")
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env("FORCE_COLOR", "3")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "T")
                .env(format!("GIT_{who}_EMAIL"), "t@example.com")
                .env(format!("GIT_{who}_DATE"), "2026-01-01T00:00:00Z");
        }
        if self.suite.terminal {
            let example = self.suite.example.as_ref().expect("only examples are");
            let mut target = self.home.agent_dir().join("target").join(example);
            if target.is_dir() {
                target = target.join("index.ts");
            }
            command.env("HARNESS_TARGET", target);
            command.env("HARNESS_KEYS", self.scenario.keys.to_string());
        }
        command.envs(&self.scenario.env);
        command
    }

    fn start(&self, more: &[String]) -> Rpc {
        let mut command = self.command(self.program.command(&self.home));
        command.args(["--mode", "rpc"]);
        command.args(&self.scenario.arguments).args(more);
        let rpc = Rpc::start(command);
        match self.suite.packages.is_empty() {
            true => rpc,
            false => rpc.with_timeout(SCENARIO_TIMEOUT / 2),
        }
    }

    async fn talk(&mut self) {
        let mut rpc = self.start(&[]);
        let steps = self.scenario.steps.clone();
        for step in &steps {
            match step {
                Step::Restart(arguments) => {
                    self.stop(rpc).await;
                    rpc = self.start(arguments);
                }
                step => self.step(&mut rpc, step).await,
            }
        }
        self.stop(rpc).await;
    }

    async fn stop(&mut self, mut rpc: Rpc) {
        if !self
            .scenario
            .steps
            .iter()
            .any(|step| matches!(step, Step::End))
        {
            wait_until_idle(&mut rpc).await;
        }
        rpc.close_stdin();
        let status = rpc.end().await;
        self.end.push(json!(status.code()));
        self.seen.extend(rpc.lines());
        self.positions.clear();
    }

    async fn step(&mut self, rpc: &mut Rpc, step: &Step) {
        match step {
            Step::Run(text) => {
                self.positions.insert("agent_end".into(), rpc.lines().len());
                self.send_and_wait(rpc, prompt(text)).await;
                self.wait(rpc, &json!({"type": "agent_end"})).await;
                wait_until_idle(rpc).await;
            }
            Step::Say(text) => self.send_and_wait(rpc, prompt(text)).await,
            Step::Begin(text) => rpc.send(&prompt(text).to_string()).await,
            Step::Ask(command) => self.send_and_wait(rpc, command.clone()).await,
            Step::Send(command) => rpc.send(&command.to_string()).await,
            Step::Wait(wanted) => drop(self.wait(rpc, wanted).await),
            Step::Reply(method, answer) => {
                let wanted = json!({"type": "extension_ui_request", "method": method});
                let question = self.wait(rpc, &wanted).await;
                rpc.reply(&question, answer.clone()).await;
            }
            Step::Requests(count) => self.server.wait_until_received(*count).await,
            Step::Rest => wait_until_idle(rpc).await,
            Step::Shell(line) => self.shell(line).await,
            Step::Fork(number) => {
                let prompts = rpc.ok(json!({"type": "get_fork_messages"})).await;
                let entry = &prompts["messages"][number]["entryId"];
                let command = json!({"type": "fork", "entryId": entry});
                rpc.send(&command.to_string()).await;
            }
            Step::Switch(number) => {
                let path = self.home.sessions().swap_remove(*number);
                let command = json!({"type": "switch_session", "sessionPath": path});
                rpc.send(&command.to_string()).await;
            }
            Step::WaitFile(name) => {
                until_exists(&self.home.cwd().join(name)).await;
            }
            Step::End => rpc.close_stdin(),
            Step::Restart(_) => unreachable!("the caller does it"),
        }
    }

    async fn send_and_wait(&mut self, rpc: &mut Rpc, command: Value) {
        let response = rpc.request(command).await;
        self.responses.push(without(&response, &["id"]));
    }

    /// Waits for a line. Each kind of line has its own position up to which earlier waits have
    /// read.
    async fn wait(&mut self, rpc: &mut Rpc, wanted: &Value) -> Value {
        let kind = wanted["method"].as_str().or(wanted["type"].as_str());
        let kind = kind.unwrap_or_default().to_owned();
        let from = self.positions.get(&kind).copied().unwrap_or_default();
        let found = rpc
            .find(from, &wanted.to_string(), |line| has(line, wanted))
            .await;
        self.positions.insert(kind, found.0 + 1);
        found.1
    }

    async fn shell(&mut self, line: &str) {
        let mut command = self.command(self.home.command("bash"));
        command.args(["-c", line]);
        let done = finish(command, "").await;
        let output = done.stdout + done.stderr.as_str();
        let code = done.status.code();
        self.shell
            .push(json!({"shell": line, "code": code, "said": lines(&output)}));
    }

    async fn run(&mut self, mode: Mode) {
        let mut command = self.command(self.program.command(&self.home));
        if mode == Mode::Json {
            command.args(["--mode", "json"]);
        } else {
            command.arg("-p");
        }
        command.args(&self.scenario.arguments);
        let done = finish(command, "").await;
        self.end.push(json!(done.status.code()));
        let steps = self.scenario.steps.clone();
        for step in &steps {
            match step {
                Step::Shell(line) => self.shell(line).await,
                other => panic!("only RPC mode knows {other:?}"),
            }
        }
        match mode {
            Mode::Json => {
                let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| json!(line));
                self.seen = done.stdout.lines().map(parse).collect();
            }
            _ => self
                .shell
                .push(json!({"shell": "(stdout)", "said": lines(&done.stdout)})),
        }
    }

    fn transcript(self, before: &BTreeMap<String, Vec<u8>>, words: &Words) -> Transcript {
        let root = root(&self.home);
        let mut names = Names::new(&root, &self.server.url());
        names.random(&self.scenario.random);
        // The original writes a session file with the first answer.
        let answered = |entries: &Vec<Value>| {
            entries
                .iter()
                .any(|entry| entry["message"]["role"] == "assistant")
        };
        let sessions = self
            .home
            .sessions()
            .into_iter()
            .map(|path| read_jsonl(&path));
        let sessions: Vec<Vec<Value>> = sessions.filter(answered).collect();
        let shown = if self.suite.newest { 0 } else { sessions.len() };
        for (number, entries) in sessions.iter().enumerate() {
            names.session(number, entries);
        }
        let ignored = |line: &Value| {
            self.scenario
                .ignore
                .iter()
                .any(|ignored| has(line, &ignored.line))
        };
        let (mut events, mut extension, mut unasked) = (Vec::new(), Vec::new(), Vec::new());
        for line in self.seen.iter().filter(|line| !ignored(line)) {
            match line["type"].as_str() {
                Some("response") if line["id"].is_string() => {}
                Some("response") => unasked.push(line.clone()),
                Some("extension_ui_request" | "extension_error" | "extension_warning") => {
                    extension.push(without(line, &["id"]));
                }
                // The number of updates depends on timing.
                Some("tool_execution_update") if line["toolName"] == "bash" => {}
                // Skip updates without text.
                Some("message_update") if line["assistantMessageEvent"]["delta"] == "" => {}
                _ => events.push(event(line)),
            }
        }
        let newest = self.suite.newest;
        if newest {
            events.retain(of_extensions);
        }
        let requests = if newest {
            Vec::new()
        } else {
            self.server.requests()
        };
        let requests = requests.iter().map(|request| {
            let mut body = request.body.clone();
            in_lines(&mut body["system"]);
            let first = &mut body["messages"][0];
            if first["role"] == "system" || first["role"] == "developer" {
                let text = first["content"].take();
                let mut prompt = json!([{"text": text}]);
                in_lines(&mut prompt);
                body["system"] = prompt;
            }
            json!({"path": request.path, "body": body})
        });
        let changed = files(&root)
            .into_iter()
            .filter(|(path, bytes)| before.get(path) != Some(bytes));
        // Packages keep notes elsewhere, with times and process ids.
        let is_package = !self.suite.packages.is_empty();
        let changed = changed.filter(|(path, _)| !is_package || path.starts_with("work/"));
        let (drawn, changed): (Vec<_>, Vec<_>) = changed.partition(|(path, _)| path == RENDERED);
        let drawn = drawn.iter().flat_map(|(_, bytes)| {
            let parse = |line: &[u8]| serde_json::from_slice::<Value>(line).ok();
            bytes.split(|byte| *byte == b'\n').filter_map(parse)
        });
        let mut drawn: Vec<Value> = drawn.collect();
        // There is no order between drawings of events and of commands.
        drawn.sort_by_key(|line| line["type"].to_string());
        let mut changed: Vec<Value> = changed
            .into_iter()
            .map(|(path, bytes)| match String::from_utf8(bytes) {
                Ok(text) => match serde_json::from_str::<Value>(&text) {
                    // Formatting does not matter.
                    Ok(value) => json!({"path": path, "value": value}),
                    Err(_) => json!({"path": path, "lines": lines(&text)}),
                },
                Err(error) => json!({"path": path, "bytes": error.as_bytes().len()}),
            })
            .collect();
        let after = files(&root);
        let gone = before.keys().filter(|path| !after.contains_key(*path));
        changed.extend(gone.map(|path| json!({"path": path, "gone": true})));
        let sessions = sessions
            .iter()
            .take(shown)
            .enumerate()
            .flat_map(|(number, entries)| {
                entries.iter().map(move |entry| {
                    let mut entry = entry.clone();
                    entry["(session)"] = json!(number);
                    entry
                })
            });
        let channels = [
            ("events", events),
            ("extension", extension),
            (
                "responses",
                if newest { Vec::new() } else { self.responses },
            ),
            ("responses to what was sent", unasked),
            (
                "requests",
                requests.filter(|request| !ignored(request)).collect(),
            ),
            ("sessions", sessions.collect()),
            ("files", changed),
            ("terminal", drawn),
            ("shell", self.shell),
            ("end", self.end),
        ];
        let normal = |lines: Vec<Value>| -> Vec<Value> {
            lines.iter().map(|line| names.value(line)).collect()
        };
        let channels = channels.map(|(name, lines)| (name.to_owned(), normal(lines)));
        let mut channels = BTreeMap::from(channels);
        let requests = channels.get_mut("requests").expect("it is one of them");
        requests.iter_mut().for_each(|request| words.name(request));
        Transcript { channels }
    }
}

/// Reduces an update of an answer to its new part: the original writes the message object itself,
/// which may already contain later parts and notes of its parser.
fn event(line: &Value) -> Value {
    let mut line = line.clone();
    if line["type"] == "message_update" {
        line = without(&line, &["message"]);
        line["assistantMessageEvent"] = without(&line["assistantMessageEvent"], &["partial"]);
    }
    if line["type"] == "message_start" && line["message"]["role"] == "assistant" {
        line["message"] = without(&line["message"], &["content", "usage"]);
    }
    line
}

/// Whether an extension caused the event, in any version of the protocol.
fn of_extensions(event: &Value) -> bool {
    match event["type"].as_str() {
        Some("tool_execution_end") => true,
        Some("message_end") => event["message"]["role"] == "custom",
        _ => false,
    }
}

/// Waits until neither the agent nor a compaction is at work.
async fn wait_until_idle(rpc: &mut Rpc) {
    loop {
        let state = rpc.request(json!({"type": "get_state"})).await;
        let data = &state["data"];
        if data["isStreaming"] == false && data["isCompacting"] == false {
            return;
        }
        pause(20).await;
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split('\n').collect()
}

/// Splits system prompts into lines for the comparison.
pub(super) fn in_lines(system: &mut Value) {
    match system {
        Value::Array(blocks) => {
            for block in blocks {
                in_lines(&mut block["text"]);
            }
        }
        Value::String(text) => *system = json!(lines(text)),
        _ => {}
    }
}

fn merge(value: &mut Value, change: &Value) {
    match (value, change) {
        (Value::Object(value), Value::Object(change)) => {
            for (name, change) in change {
                merge(value.entry(name.clone()).or_insert(Value::Null), change);
            }
        }
        (value, change) => *value = change.clone(),
    }
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// All files that a program could have changed, without sessions, which are compared separately,
/// and without files that each program keeps for itself.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    const LEFT_OUT: [&str; 12] = [
        ".git",
        "node_modules",
        "home/.pi/agent/sessions",
        "home/.pi/agent/extensions",
        "home/.pi/agent/target",
        "home/.pi/agent/logs",
        "home/.pi/agent/cache",
        "home/.pi/agent/trust",
        "jiti",
        "home/.pi/agent/bin",
        "home/.cache",
        "bin",
    ];
    let below = root.to_owned();
    let walk = ignore::WalkBuilder::new(root)
        .standard_filters(false)
        .filter_entry(move |entry| {
            let path = entry.path().strip_prefix(&below).expect("below it");
            let left_out = |name: &&str| {
                path == Path::new(name) || path.file_name().is_some_and(|file| file == *name)
            };
            !LEFT_OUT.iter().any(left_out)
        })
        .build();
    let mut found = BTreeMap::new();
    for entry in walk.filter_map(Result::ok) {
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            let path = entry.path().strip_prefix(root).expect("below it");
            // The file may be gone by now. The original creates some empty files at its first
            // start.
            if let Ok(bytes) = fs::read(entry.path())
                && bytes != b"{}"
            {
                found.insert(path.to_string_lossy().into_owned(), bytes);
            }
        }
    }
    found
}

/// Time limit of a scenario in one program, on a busy machine.
pub(super) const SCENARIO_TIMEOUT: Duration = Duration::from_secs(300);
