//! Talks to pi over its RPC protocol (docs/rpc.md) as a service would: a prompt in, an
//! answer out. Dialogs are declined, a run that takes too long is aborted, and a pi that exits is
//! started again with the same session. Needs `serde_json`.
//!
//!     cargo run --example rpc-client -- "list the files here" --provider demo --model demo
//!
//! Prompts come first, pi's options after them. `PI_PROGRAM` is the program (`pi`).

#![expect(clippy::print_stdout, reason = "the answer goes to stdout")]

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const RESTARTS: usize = 3;
/// Time that pi gets to abort a run; after that it is killed.
const ABORT: Duration = Duration::from_secs(30);
/// Capacity for unread lines; pi waits when it is full.
const UNREAD_LINES: usize = 256;

#[derive(Debug)]
pub enum Problem {
    /// pi has exited.
    Ended(String),
    /// A command, or the model, failed, or the run was aborted.
    Failed(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Failed(format!("pi cannot be started: {error}"))
    }
}

/// One `pi --mode rpc`: commands in, responses and events out, one JSON object a line.
pub struct Pi {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    ids: u64,
    limit: Duration,
    on_event: fn(&Value),
    /// The stop reason of the model's last response.
    error: Option<String>,
}

impl Pi {
    pub fn start(mut command: Command, limit: Duration, on_event: fn(&Value)) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        // A Ctrl-C in this terminal must not reach pi.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().expect("it is piped");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = sync_channel(UNREAD_LINES);
        std::thread::spawn(move || {
            let lines = stdout.split(b'\n').map_while(Result::ok);
            // A pi that was killed may leave half a line.
            let messages = lines.filter_map(|line| serde_json::from_slice(&line).ok());
            for message in messages {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            child,
            stdin,
            lines,
            ids: 0,
            limit,
            on_event,
            error: None,
        })
    }

    fn send(&mut self, message: &Value) {
        // An error means that pi has exited, which the other pipe reports.
        let _ = self.stdin.write_all(format!("{message}\n").as_bytes());
    }

    /// Sends a command; returns the data of its response.
    pub fn ask(&mut self, mut command: Value) -> Result<Value, Problem> {
        self.ids += 1;
        command["id"] = json!(self.ids);
        self.send(&command);
        let (mut deadline, mut late) = (Instant::now() + self.limit, false);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(message) if message["type"] != "response" => self.event(&message),
                Ok(message) if message["id"] != self.ids => {}
                Ok(_) if late => return Err(Problem::Failed("took too long".into())),
                Ok(message) if message["success"] == true => return Ok(message["data"].clone()),
                Ok(message) => return Err(Problem::Failed(message["error"].to_string())),
                Err(RecvTimeoutError::Timeout) if late => self.child.kill()?,
                Err(RecvTimeoutError::Timeout) => {
                    (late, deadline) = (true, Instant::now() + ABORT);
                    self.send(&json!({"type": "abort"}));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait()?;
                    return Err(Problem::Ended(format!("pi ended ({status})")));
                }
            }
        }
    }

    fn event(&mut self, event: &Value) {
        if event["type"] == "extension_ui_request" {
            // There is no user to answer; pi ignores this if the request is no dialog.
            let id = &event["id"];
            self.send(&json!({"type": "extension_ui_response", "id": id, "cancelled": true}));
        } else if event["type"] == "message_end" && event["message"]["role"] == "assistant" {
            let error = event["message"]["errorMessage"].as_str();
            self.error = error.map(str::to_owned);
        }
        (self.on_event)(event);
    }

    /// Returns the model's response to a prompt.
    pub fn converse(&mut self, text: &str) -> Result<String, Problem> {
        self.ask(json!({"type": "prompt", "message": text}))?;
        self.ask(json!({"type": "wait_for_idle"}))?;
        if let Some(error) = self.error.take() {
            return Err(Problem::Failed(error));
        }
        let last = self.ask(json!({"type": "get_last_assistant_text"}))?;
        Ok(last["text"].as_str().unwrap_or_default().to_owned())
    }

    /// Closes stdin, which ends pi.
    pub fn close(self) -> io::Result<()> {
        let Self {
            mut child, stdin, ..
        } = self;
        drop(stdin);
        child.wait().map(drop)
    }
}

/// Returns the responses to prompts; `start` starts a pi with additional options.
pub fn converse(
    start: impl Fn(&[&str]) -> io::Result<Pi>,
    prompts: &[String],
) -> Result<Vec<String>, Problem> {
    let mut pi = start(&[])?;
    let state = pi.ask(json!({"type": "get_state"}))?;
    let session = state["sessionFile"].as_str();
    let (mut answers, mut restarts) = (Vec::new(), 0);
    for prompt in prompts {
        let mut text = prompt.as_str();
        let answer = loop {
            match (pi.converse(text), session) {
                (Err(Problem::Ended(_)), Some(session)) if restarts < RESTARTS => {
                    restarts += 1;
                    pi = start(&["--session", session])?;
                }
                (answer, _) => break answer?,
            }
            // The conversation is on the disk, up to the last message that was complete.
            let known = pi.ask(json!({"type": "get_messages"}))?;
            let messages = known["messages"].as_array().into_iter().flatten();
            let last = { messages }.rfind(|message| message["role"] == "user");
            let last = last.map(|message| message["content"].to_string());
            if last.is_some_and(|last| last.contains(&json!(prompt).to_string())) {
                text = "You were interrupted. Look at where you are, and go on.";
            }
        };
        answers.push(answer);
    }
    pi.close()?;
    Ok(answers)
}

pub fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = words.iter().position(|word| word.starts_with('-'));
    let (prompts, options) = words.split_at(options.unwrap_or(words.len()));
    let program = std::env::var_os("PI_PROGRAM").unwrap_or("pi".into());
    let start = |more: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["--mode", "rpc"]).args(options).args(more);
        Pi::start(command, Duration::from_secs(600), |_| ())
    };
    match converse(start, prompts) {
        Ok(answers) => println!("{}", answers.join("\n")),
        Err(Problem::Ended(why) | Problem::Failed(why)) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
