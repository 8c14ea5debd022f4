//! Measures whole processes: their start, their memory, and the speed at which they pass a stream
//! on.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use model_server::{Answer, Api, ModelServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::print;

const PROCESS_RUNS: usize = 15;
const ORIGINAL_RUNS: usize = 3;
const DELTAS: usize = 2000;
const LONG_DELTAS: usize = 50_000;
const IDLE_PERIOD: Duration = Duration::from_secs(4);

pub struct Program {
    pub command: PathBuf,
    pub args: Vec<OsString>,
}

impl Program {
    pub fn ours() -> Self {
        Self {
            command: env!("CARGO_BIN_EXE_pi").into(),
            args: Vec::new(),
        }
    }

    pub fn command(&self, home: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.command);
        command
            .args(&self.args)
            .args(args)
            .current_dir(home)
            .env("HOME", home)
            .env("PI_CODING_AGENT_DIR", home.join("agent"))
            .env("PI_OFFLINE", "1")
            // The original keeps compiled code in this folder.
            .env("TMPDIR", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// Creates a home folder with small extensions and a model on the server.
pub fn home(extensions: usize, source: impl Fn(usize) -> String, server: &ModelServer) -> TempDir {
    let home = TempDir::with_prefix("pi-bench-").expect("a temporary folder");
    let agent = home.path().join("agent");
    fs::create_dir_all(agent.join("extensions")).expect("a folder");
    for n in 0..extensions {
        let file = agent.join("extensions").join(format!("e{n}.ts"));
        fs::write(file, source(n)).expect("a file");
    }
    fs::write(
        agent.join("models.json"),
        server.models_json(Api::AnthropicMessages),
    )
    .expect("a file");
    fs::write(
        agent.join("settings.json"),
        json!({ "defaultProvider": model_server::PROVIDER, "defaultModel": model_server::MODEL })
            .to_string(),
    )
    .expect("a file");
    home
}

/// Adds a setting.
fn set(home: &Path, key: &str, value: &str) {
    let path = home.join("agent/settings.json");
    let text = fs::read_to_string(&path).expect("a file");
    let mut settings: Value = serde_json::from_str(&text).expect("settings");
    settings[key] = json!(value);
    fs::write(path, settings.to_string()).expect("a file");
}

pub fn small(n: usize) -> String {
    format!(
        r#"
import type {{ ExtensionAPI }} from "@mariozechner/pi-coding-agent";
import {{ Type }} from "@sinclair/typebox";
export default function (pi: ExtensionAPI) {{
  pi.on("tool_call", async (event) => {{
    if (event.toolName === "never{n}") return {{ block: true, reason: "no" }};
  }});
  pi.registerCommand("hello{n}", {{ description: "greets", handler: async (_, ctx) => ctx.ui.notify("hi") }});
  pi.registerTool({{
    name: "tool{n}", label: "Tool", description: "does nothing",
    parameters: Type.Object({{ text: Type.String() }}),
    async execute() {{ return {{ content: [{{ type: "text", text: "ok" }}], details: {{}} }}; }},
  }});
}}
"#
    )
}

pub struct Rpc {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Rpc {
    fn spawn(program: &Program, home: &Path) -> Self {
        Self::with(program, home, &["--no-session"])
    }

    pub fn with(program: &Program, home: &Path, args: &[&str]) -> Self {
        let mut child = program
            .command(home, &[&["--mode", "rpc"], args].concat())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = child.stdout.take().expect("a pipe");
        Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
        }
    }

    pub async fn send(&mut self, command: Value) {
        let line = format!("{command}\n");
        self.stdin
            .write_all(line.as_bytes())
            .await
            .expect("the program reads");
    }

    pub async fn until(&mut self, is_wanted: impl Fn(&str) -> bool) -> usize {
        let mut seen = 0;
        loop {
            let line = self.lines.next_line().await.expect("the program writes");
            let line = line.expect("the program goes on");
            seen += 1;
            if is_wanted(&line) {
                return seen;
            }
        }
    }

    /// Reads lines until one begins with `beginning`, and returns their number. Only the beginning
    /// of a line is kept. `None` if the program ends first.
    async fn read_until(&mut self, beginning: &str) -> Option<usize> {
        let reader = self.lines.get_mut();
        let mut seen = 0;
        loop {
            let mut head = Vec::new();
            loop {
                let piece = reader.fill_buf().await.expect("the program writes");
                if piece.is_empty() {
                    return None;
                }
                let end = memchr::memchr(b'\n', piece);
                let length = end.map_or(piece.len(), |end| end + 1);
                if head.len() < beginning.len() {
                    head.extend_from_slice(&piece[..length]);
                }
                reader.consume(length);
                if end.is_some() {
                    break;
                }
            }
            seen += 1;
            if head.starts_with(beginning.as_bytes()) {
                return Some(seen);
            }
        }
    }

    pub fn process_id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Proportional memory in MiB (PSS) of this process and that of its extensions.
    fn pss(&self) -> Option<f64> {
        let pid = self.child.id()?;
        let mut sum = mebibytes(pid, "smaps_rollup", "Pss:")?;
        for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let children = fs::read_to_string(thread.path().join("children")).ok()?;
            let children = children.split_whitespace();
            let children = children.filter_map(|child| child.parse().ok());
            sum += children
                .filter_map(|child| mebibytes(child, "smaps_rollup", "Pss:"))
                .sum::<f64>();
        }
        Some(sum)
    }

    /// Peak memory in MiB.
    pub fn peak(&self) -> Option<f64> {
        mebibytes(self.child.id()?, "status", "VmHWM:")
    }

    /// Seconds of processor time so far, user and system, with a resolution of 10 ms.
    fn processor_time(&self) -> Option<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()?)).ok()?;
        // The name, in parentheses, may contain blanks.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let ticks: f64 =
            fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
        Some(ticks / 100.0)
    }
}

fn mebibytes(pid: u32, file: &str, name: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

pub async fn start_up(ours: &Program, original: Option<&Program>) {
    let server = ModelServer::start().await;
    let empty = home(0, small, &server);
    let version = async |program: &Program, runs: usize| {
        let mut times = Vec::new();
        for _ in 0..runs {
            let start = Instant::now();
            let output = program.command(empty.path(), &["--version"]).output().await;
            output.expect("the program runs");
            times.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        times
    };
    let mut mine = version(ours, PROCESS_RUNS).await;
    let mut theirs = match original {
        Some(program) => Some(version(program, ORIGINAL_RUNS).await),
        None => None,
    };
    print("pi --version", "ms", &mut mine, theirs.as_deref_mut());
    for extensions in [10, 30] {
        let mut times = cold_starts(ours, extensions, &server, PROCESS_RUNS).await;
        let mut theirs = match original {
            Some(program) => Some(cold_starts(program, extensions, &server, ORIGINAL_RUNS).await),
            None => None,
        };
        print(
            &format!("rpc: spawn to get_state, {extensions} new extensions"),
            "ms",
            &mut times,
            theirs.as_deref_mut(),
        );
    }
    for (extensions, place) in [
        (0, "thread"),
        (10, "thread"),
        (30, "thread"),
        (10, "process"),
    ] {
        let home = home(extensions, small, &server);
        set(home.path(), "extensionHost", place);
        let name = match place {
            "process" => format!("{extensions} extensions, own process"),
            _ => format!("{extensions} extensions"),
        };
        // The first start fills the caches.
        get_state(ours, home.path(), 1).await;
        let (mut times, mut weights) = get_state(ours, home.path(), PROCESS_RUNS).await;
        let theirs = match original {
            // The original has no process for extensions.
            Some(program) if place == "thread" => {
                get_state(program, home.path(), 1).await;
                Some(get_state(program, home.path(), ORIGINAL_RUNS).await)
            }
            _ => None,
        };
        let (mut other_times, mut other_weights) = theirs.unzip();
        print(
            &format!("rpc: spawn to get_state, {name}"),
            "ms",
            &mut times,
            other_times.as_deref_mut(),
        );
        print(
            &format!("memory then (PSS), {name}"),
            "MiB",
            &mut weights,
            other_weights.as_deref_mut(),
        );
    }
}

/// Measures a new session in the same process, which loads the extensions again.
pub async fn new_session(ours: &Program, original: Option<&Program>) {
    let server = ModelServer::start().await;
    for extensions in [0, 10, 30] {
        let home = home(extensions, small, &server);
        let mut times = Vec::new();
        for program in [Some(ours), original].into_iter().flatten() {
            let mut rpc = Rpc::with(program, home.path(), &[]);
            let mut mine = Vec::new();
            for _ in 0..PROCESS_RUNS {
                let start = Instant::now();
                rpc.send(json!({ "id": "1", "type": "new_session" })).await;
                rpc.until(|line| line.contains("\"response\"")).await;
                mine.push(start.elapsed().as_secs_f64() * 1000.0);
            }
            // The first new session waited for the start.
            mine.remove(0);
            times.push(mine);
        }
        let mut times = times.into_iter();
        let (mut mine, mut theirs) = (times.next().unwrap_or_default(), times.next());
        print(
            &format!("rpc: new_session, {extensions} extensions"),
            "ms",
            &mut mine,
            theirs.as_deref_mut(),
        );
    }
}

/// Measures starts in a new home folder each, where no code is cached.
async fn cold_starts(
    program: &Program,
    extensions: usize,
    server: &ModelServer,
    runs: usize,
) -> Vec<f64> {
    let mut times = Vec::new();
    for _ in 0..runs {
        let home = home(extensions, small, server);
        times.extend(get_state(program, home.path(), 1).await.0);
    }
    times
}

async fn get_state(program: &Program, home: &Path, runs: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut times, mut weights) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let start = Instant::now();
        let mut rpc = Rpc::spawn(program, home);
        rpc.send(json!({ "id": "1", "type": "get_state" })).await;
        rpc.until(|line| line.contains("\"response\"")).await;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
        weights.extend(rpc.pss());
    }
    (times, weights)
}

/// Measures the cost of a process that waits for a client, with ten extensions.
pub async fn idle(ours: &Program, original: Option<&Program>) {
    let server = ModelServer::start().await;
    let home = home(10, small, &server);
    let mut costs = Vec::new();
    for program in [Some(ours), original].into_iter().flatten() {
        let mut rpc = Rpc::spawn(program, home.path());
        rpc.send(json!({ "id": "1", "type": "get_state" })).await;
        rpc.until(|line| line.contains("\"response\"")).await;
        // Wait for work that the start left over.
        tokio::time::sleep(IDLE_PERIOD / 2).await;
        let before = rpc.processor_time();
        tokio::time::sleep(IDLE_PERIOD).await;
        let (Some(before), Some(after)) = (before, rpc.processor_time()) else {
            return;
        };
        costs.push(vec![(after - before) * 1000.0 / IDLE_PERIOD.as_secs_f64()]);
    }
    let mut costs = costs.into_iter();
    let (mut mine, mut theirs) = (costs.next().unwrap_or_default(), costs.next());
    print(
        "rpc: processor time of an idle process, 10 extensions",
        "ms/s",
        &mut mine,
        theirs.as_deref_mut(),
    );
}

/// Measures events per second of an answer with 2,000 deltas, from the first event to the last.
pub async fn stream(ours: &Program, original: Option<&Program>) {
    let server = ModelServer::start().await;
    let listener = |_| {
        r#"
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
export default function (pi: ExtensionAPI) {
  let seen = 0;
  pi.on("message_update", async () => { seen += 1; });
}
"#
        .to_string()
    };
    for (what, extensions) in [("", 0), (", a message_update handler", 1)] {
        let home = home(extensions, listener, &server);
        let mut mine = answers(ours, home.path(), &server, 5).await;
        let mut theirs = match original {
            Some(program) => Some(answers(program, home.path(), &server, 2).await),
            None => None,
        };
        print(
            &format!("rpc: events/s, {DELTAS} deltas{what}"),
            "/s",
            &mut mine.rates,
            theirs.as_mut().map(|theirs| &mut theirs.rates[..]),
        );
        print(
            "  processor time",
            "ms",
            &mut mine.costs,
            theirs.as_mut().map(|theirs| &mut theirs.costs[..]),
        );
    }
}

/// Measures an answer with 50,000 deltas. In the original's format every update repeats the message
/// so far, so the output grows with the square of their number (2.5 GB here for deltas of one
/// byte); a client that asks for delta updates gets 12 MB. The result is the processor time of the
/// program, whose output the bench reads as it arrives.
pub async fn long_answer(ours: &Program, original: Option<&Program>) {
    let server = ModelServer::start().await;
    let home = home(0, small, &server);
    for (what, deltas, steps, program) in [
        // The original ends with more deltas than this.
        ("the message repeated", LONG_DELTAS / 5, false, Some(ours)),
        ("the message repeated", LONG_DELTAS / 5, false, original),
        ("the message repeated", LONG_DELTAS, false, Some(ours)),
        ("the message repeated", LONG_DELTAS, false, original),
        ("steps alone", LONG_DELTAS, true, Some(ours)),
        ("steps alone", 2 * LONG_DELTAS, true, Some(ours)),
    ] {
        let Some(program) = program else { continue };
        let whose = match std::ptr::eq(program, ours) {
            true => "",
            false => ", the original",
        };
        let what = format!("rpc: {deltas} deltas, {what}{whose}");
        let answered = one_answer(program, home.path(), &server, deltas, steps).await;
        let Some((rate, seconds)) = answered else {
            println!("{what:<52} the program has ended");
            continue;
        };
        print(&what, "/s", &mut [rate], None);
        print("  processor time", "s", &mut [seconds], None);
    }
}

/// Returns events per second, and seconds of processor time; `None` if the program ends.
async fn one_answer(
    program: &Program,
    home: &Path,
    server: &ModelServer,
    deltas: usize,
    steps: bool,
) -> Option<(f64, f64)> {
    server.push(Answer::deltas(deltas, "x"));
    let mut rpc = Rpc::spawn(program, home);
    let first = match steps {
        true => json!({ "type": "hello", "capabilities": ["deltaUpdates"] }),
        false => json!({ "type": "get_state" }),
    };
    rpc.send(first).await;
    rpc.read_until("{\"type\":\"response\"").await?;
    let before = rpc.processor_time().unwrap_or_default();
    let start = Instant::now();
    rpc.send(json!({ "type": "prompt", "message": "go" })).await;
    let events = rpc.read_until("{\"type\":\"agent_end\"").await?;
    let rate = events as f64 / start.elapsed().as_secs_f64();
    let after = rpc.processor_time().unwrap_or_default();
    Some((rate, after - before))
}

/// Per answer: events per second, and milliseconds of processor time.
#[derive(Default)]
struct AnswerCosts {
    rates: Vec<f64>,
    costs: Vec<f64>,
}

async fn answers(program: &Program, home: &Path, server: &ModelServer, runs: usize) -> AnswerCosts {
    let mut answers = AnswerCosts::default();
    for _ in 0..runs {
        server.push(Answer::deltas(DELTAS, "word "));
        let mut rpc = Rpc::spawn(program, home);
        rpc.send(json!({ "id": "1", "type": "get_state" })).await;
        rpc.until(|line| line.contains("\"response\"")).await;
        let before = rpc.processor_time();
        rpc.send(json!({ "type": "prompt", "message": "go" })).await;
        rpc.until(|line| line.starts_with("{\"type\":\"message_update\""))
            .await;
        let start = Instant::now();
        let events = rpc
            .until(|line| line.starts_with("{\"type\":\"agent_end\""))
            .await;
        answers
            .rates
            .push(events as f64 / start.elapsed().as_secs_f64());
        if let (Some(before), Some(after)) = (before, rpc.processor_time()) {
            answers.costs.push((after - before) * 1000.0);
        }
    }
    answers
}
