//! A client of `pi --mode rpc`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::panic::Location;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::TIMEOUT;

/// How long output of a process may take to arrive after its end.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for events move forward: the next wait starts behind the line that the last one found.
/// Responses are found by their id and do not move the position.
pub struct Rpc {
    child: Child,
    stdin: Option<ChildStdin>,
    seen: Arc<Mutex<Vec<String>>>,
    /// Number of lines seen; closed at the end of stdout.
    progress: watch::Receiver<usize>,
    stderr: Arc<Mutex<String>>,
    /// Closed at the end of stderr.
    errors: watch::Receiver<()>,
    position: usize,
    ids: usize,
    timeout: Duration,
}

impl Rpc {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let seen = Arc::default();
        let (progress, receiver) = watch::channel(0);
        let stdout = child.stdout.take().expect("it is piped");
        tokio::spawn(read_lines(stdout, Arc::clone(&seen), progress));
        let stderr: Arc<Mutex<String>> = Arc::default();
        let mut errors = child.stderr.take().expect("it is piped");
        let heard = Arc::clone(&stderr);
        let (error_end, error_receiver) = watch::channel(());
        tokio::spawn(async move {
            let _end = error_end;
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut chunk).await {
                let text = String::from_utf8_lossy(&chunk[..count]);
                heard.lock().unwrap().push_str(&text);
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            seen,
            progress: receiver,
            stderr,
            errors: error_receiver,
            position: 0,
            ids: 0,
            timeout: TIMEOUT,
        }
    }

    /// Sets a longer limit for slow operations.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sends a command and returns the response.
    pub async fn request(&mut self, command: Value) -> Value {
        self.ids += 1;
        let id = format!("test-{}", self.ids);
        let what = format!("the response to {command}");
        let from = self.count();
        self.begin(&id, command).await;
        let is_response = |line: &Value| line["type"] == "response" && line["id"] == id.as_str();
        self.find(from, &what, is_response).await.1
    }

    /// Sends a command with this id and does not wait for the response.
    pub async fn begin(&mut self, id: &str, mut command: Value) {
        command["id"] = json!(id);
        self.send(&command.to_string()).await;
    }

    /// Waits for the response to a command that [`Self::begin`] sent.
    pub async fn response(&mut self, id: &str) -> Value {
        let what = format!("the response to {id}");
        let is_response = |line: &Value| line["type"] == "response" && line["id"] == id;
        self.find(0, &what, is_response).await.1
    }

    /// Sends a command, insists on success, and returns the data.
    pub async fn ok(&mut self, command: Value) -> Value {
        let response = self.request(command).await;
        assert_eq!(response["success"], true, "{response}\n{}", self.report());
        response["data"].clone()
    }

    /// Sends a command, insists on failure, and returns the error.
    pub async fn refused(&mut self, command: Value) -> String {
        let response = self.request(command).await;
        assert_eq!(response["success"], false, "{response}\n{}", self.report());
        response["error"]
            .as_str()
            .expect("an error text")
            .to_owned()
    }

    /// Sends a line as it is.
    pub async fn send(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes()).await;
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        if self.try_write(bytes).await.is_err() {
            panic!("pi does not read its stdin any more\n{}", self.report());
        }
    }

    /// Writes to stdin. Fails if the program has ended.
    pub async fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stdin = self.stdin.as_mut().expect("it is not closed yet");
        stdin.write_all(bytes).await?;
        stdin.flush().await
    }

    /// Waits for a line, which may have arrived already.
    pub async fn wait(&mut self, what: &str, matches: impl Fn(&Value) -> bool) -> Value {
        let (index, line) = self.find(self.position, what, matches).await;
        self.position = index + 1;
        line
    }

    pub async fn event(&mut self, kind: &str) -> Value {
        self.wait(kind, |line| line["type"] == kind).await
    }

    /// The text of each message of the session.
    pub async fn message_texts(&mut self) -> Vec<String> {
        let data = self.ok(super::command("get_messages")).await;
        let messages = data["messages"].as_array().expect("an array");
        messages.iter().map(super::text_of).collect()
    }

    /// Sends a prompt, waits for `agent_end`, and returns all lines since the prompt.
    pub async fn run(&mut self, message: &str) -> Vec<Value> {
        let from = self.count();
        self.position = from;
        self.ok(super::prompt(message)).await;
        self.event("agent_end").await;
        let lines = self.lines();
        lines[from..self.position].to_vec()
    }

    /// Runs a prompt and returns the text of the last answer.
    pub async fn answer_to(&mut self, message: &str) -> String {
        let events = self.run(message).await;
        let mut ends = events
            .iter()
            .filter(|event| super::message_end("assistant")(event));
        let last = ends.next_back().expect("an answer");
        super::text_of(&last["message"])
    }

    /// Waits for a request of an extension to the user interface.
    pub async fn ui(&mut self, method: &str) -> Value {
        self.wait(&format!("the extension's {method}"), |line| {
            line["type"] == "extension_ui_request" && line["method"] == method
        })
        .await
    }

    /// Waits for a notification with this text.
    pub async fn notified(&mut self, text: &str) {
        self.wait(&format!("the notification {text:?}"), |line| {
            line["method"] == "notify" && line["message"] == text
        })
        .await;
    }

    /// Answers a dialog: `{"value": …}`, `{"confirmed": …}`, `{"cancelled": true}`.
    pub async fn reply(&mut self, question: &Value, mut answer: Value) {
        answer["type"] = json!("extension_ui_response");
        answer["id"] = question["id"].clone();
        self.send(&answer.to_string()).await;
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes stdin and waits for the end.
    pub async fn close(mut self) -> ExitStatus {
        self.close_stdin();
        self.end().await
    }

    /// Waits for the end of the process, whatever causes it, and for the rest of its output.
    pub async fn end(&mut self) -> ExitStatus {
        let status = match timeout(TIMEOUT, self.child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => panic!("pi does not end\n{}", self.report()),
        };
        let read = async {
            while self.progress.changed().await.is_ok() {}
            while self.errors.changed().await.is_ok() {}
        };
        // A child of the process may keep the pipes open.
        let _ = timeout(OUTPUT_TIMEOUT, read).await;
        status
    }

    /// Kills the process with SIGKILL. Returns every complete line of its output.
    pub async fn kill(mut self) -> Vec<Value> {
        self.child.kill().await.unwrap();
        while self.progress.changed().await.is_ok() {}
        let mut seen = self.seen.lock().unwrap();
        seen.pop_if(|last| serde_json::from_str::<Value>(last).is_err());
        drop(seen);
        self.lines()
    }

    pub fn process_id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// All lines of stdout, parsed as JSON.
    pub fn lines(&self) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|line| self.parse(line)).collect()
    }

    /// All lines of stdout, unparsed.
    pub fn raw_lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Waits until stderr has a line with this text, and returns the line.
    pub async fn stderr_line(&self, text: &str) -> String {
        let deadline = tokio::time::Instant::now() + self.timeout;
        loop {
            let heard = self.stderr();
            let whole = heard.rsplit_once('\n').map_or("", |(whole, _)| whole);
            if let Some(line) = whole.lines().find(|line| line.contains(text)) {
                return line.to_owned();
            }
            let late = tokio::time::Instant::now() > deadline;
            assert!(!late, "stderr has no {text:?}\n{}", self.report());
            pause(10).await;
        }
    }

    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn parse(&self, line: &str) -> Value {
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("stdout has a line that is not JSON ({error}): {line}"))
    }

    /// The first matching line from an index on, which may have arrived already.
    pub async fn find(
        &mut self,
        from: usize,
        what: &str,
        matches: impl Fn(&Value) -> bool,
    ) -> (usize, Value) {
        let deadline = tokio::time::Instant::now() + self.timeout;
        let mut next = from;
        loop {
            let new: Vec<String> = self.seen.lock().unwrap()[next..].to_vec();
            for line in new {
                let line = self.parse(&line);
                if matches(&line) {
                    return (next, line);
                }
                next += 1;
            }
            match tokio::time::timeout_at(deadline, self.progress.changed()).await {
                Ok(Ok(())) => {}
                // A line may have arrived between the search and the end.
                Ok(Err(_)) if self.count() > next => {}
                Ok(Err(_)) => panic!("pi ended before {what} came\n{}", self.report()),
                Err(_) => panic!("{what} did not come\n{}", self.report()),
            }
        }
    }

    /// All output in readable form, for the message of a failed test.
    fn report(&self) -> String {
        const WIDTH: usize = 400;
        let seen = self.seen.lock().unwrap();
        let shown = seen
            .iter()
            .filter(|line| !line.contains(r#""type":"message_update""#));
        let mut report = String::from("--- stdout, updates left out\n");
        for line in shown {
            report.extend(line.chars().take(WIDTH));
            report.push('\n');
        }
        report.push_str("--- stderr\n");
        report.push_str(&self.stderr());
        report
    }
}

async fn read_lines(
    stdout: ChildStdout,
    seen: Arc<Mutex<Vec<String>>>,
    progress: watch::Sender<usize>,
) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let mut seen = seen.lock().unwrap();
        seen.push(line);
        progress.send_replace(seen.len());
    }
}

/// Longest time that a test may pause at one place of its source. A loop that waits for an event
/// that never comes fails then, instead of holding up all tests.
const MAX_PAUSED: Duration = Duration::from_secs(300);

thread_local! {
    /// How long the test of this thread has paused, by place.
    static PAUSED: RefCell<HashMap<&'static Location<'static>, Duration>> = RefCell::default();
}

/// Sleeps. Only for things that no line announces.
#[track_caller]
pub fn pause(milliseconds: u64) -> tokio::time::Sleep {
    let time = Duration::from_millis(milliseconds);
    let paused = PAUSED.with_borrow_mut(|places| {
        let paused = places.entry(Location::caller()).or_default();
        *paused += time;
        *paused
    });
    assert!(paused < MAX_PAUSED, "the test waits in vain");
    tokio::time::sleep(time)
}
