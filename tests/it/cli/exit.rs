//! Ends every mode in every way: child processes are killed, extensions get `session_shutdown`, the
//! session is on the disk, and the exit code names the cause.

use std::fs;
use std::process::ExitStatus;

use futures::future::join_all;
use model_server::{Answer, ModelServer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio::time::timeout;

use crate::support::{Home, TIMEOUT, Terminal, finish, pause, quiet, until_ended, until_exists};

/// A shell command that never ends and has a child process that never ends.
const WAIT: &str = "sleep 600 & echo $$ $! > pids.part; mv pids.part pids; wait";

const LAST_WORD: &str = r#"
    import { appendFileSync } from "node:fs";
    process.on("exit", () => { throw new Error("of one listener"); });
    export default (pi) => pi.on("session_shutdown", async (event) => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        appendFileSync("last-word", event.type + "\n");
        process.once("exit", (code) => appendFileSync("last-word", `exit ${code}\n`));
    });"#;

const HANGS: &str = r#"
    export default (pi) => pi.on("session_shutdown", () => new Promise(() => {}));"#;

/// An extension whose `session_shutdown` takes ten minutes.
const WAITS: &str = r#"
    import { writeFileSync } from "node:fs";
    export default (pi) => {
        pi.on("agent_start", () => writeFileSync("pids", ""));
        pi.on("session_shutdown", async () => {
            writeFileSync("ends", "");
            await new Promise((resolve) => setTimeout(resolve, 600_000));
        });
    };"#;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Print,
    Json,
    Rpc,
    Line,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    Signal(Signal),
    /// The reader of stdout is gone, and the agent has not written anything since.
    Stdout,
    /// An RPC client closes stdin to end pi.
    Stdin,
    /// The window of the terminal is closed.
    Terminal,
    /// A terminal of this kind is closed that does not control pi, which therefore receives no
    /// SIGHUP.
    UncontrolledTerminal(&'static str),
}

const SIGNALS: [(Cause, i32); 3] = [
    (Cause::Signal(Signal::SIGTERM), 143),
    (Cause::Signal(Signal::SIGHUP), 129),
    (Cause::Signal(Signal::SIGINT), 130),
];

struct Story {
    mode: Mode,
    cause: Cause,
    code: i32,
    /// The source of the extension.
    last_word: &'static str,
}

impl Story {
    async fn run(&self) {
        let Self { mode, cause, .. } = *self;
        let what = format!("{mode:?}, {cause:?}");
        let server = ModelServer::start().await;
        server.push(Answer::tool("bash", json!({ "command": WAIT })));
        let home = Home::new(&server);
        // Only what hangs is to meet the limit.
        let limit = if self.last_word == HANGS { 300 } else { 30_000 };
        home.settings(json!({"extensionTimeouts": {"shutdown": limit}}));
        home.extension("last.ts", self.last_word);
        let code = match mode {
            Mode::Line => self.in_a_terminal(&home).await,
            _ => self.in_pipes(&home, &what).await,
        };
        assert_eq!(code, Some(self.code), "{what}");

        let pids = fs::read_to_string(home.cwd().join("pids")).unwrap();
        for pid in pids.split_whitespace() {
            until_ended(pid.parse().unwrap(), &what).await;
        }
        let word = fs::read_to_string(home.cwd().join("last-word")).ok();
        let output = || format!("session_shutdown\nexit {}\n", self.code);
        let wanted = (self.last_word == LAST_WORD).then(output);
        assert_eq!(word, wanted, "{what}");
        let entries = home.entries();
        let messages = entries.iter().filter(|entry| entry["type"] == "message");
        let roles: Vec<&Value> = messages.map(|entry| &entry["message"]["role"]).collect();
        assert_eq!(roles[..3], ["user", "assistant", "toolResult"], "{what}");
        let text = fs::read_to_string(home.session()).unwrap();
        assert!(text.ends_with('\n'), "{what}");
    }

    async fn in_pipes(&self, home: &Home, what: &str) -> Option<i32> {
        let (mut child, mut stdin) = start(home, self.mode).await;
        until_exists(&home.cwd().join("pids")).await;
        match self.cause {
            Cause::Signal(signal) => send(child.id().unwrap(), signal),
            Cause::Stdout => drop(child.stdout.take()),
            Cause::Stdin => stdin = None,
            Cause::Terminal | Cause::UncontrolledTerminal(_) => panic!("there is none"),
        }
        let code = ended(&mut child, what).await.code();
        drop(stdin);
        code
    }

    async fn in_a_terminal(&self, home: &Home) -> Option<i32> {
        let signal = match self.cause {
            Cause::Signal(signal) => signal,
            Cause::UncontrolledTerminal(term) => return hang_up(home, term, "uncontrolled").await,
            _ => return hang_up(home, "xterm", "controlled").await,
        };
        let mut terminal = Terminal::open(home, "xterm", &[]);
        terminal.see("/help lists the commands.");
        terminal.see("> ");
        terminal.line("go");
        until_exists(&home.cwd().join("pids")).await;
        send(terminal.process_id(), signal);
        Some(terminal.end().cast_signed())
    }
}

/// Closes the last handle of the terminal, as a user does who closes the window.
async fn hang_up(home: &Home, term: &str, control: &str) -> Option<i32> {
    const USER: &str = r#"
import os, pty, re, select, subprocess, sys
if sys.argv[2] == "controlled":
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], [sys.argv[1]])
else:
    terminal, end = pty.openpty()
    all = {"stdin": end, "stdout": end, "stderr": end, "start_new_session": True}
    pid = subprocess.Popen([sys.argv[1]], **all).pid
    os.close(end)
shown, asked = b"", False
while not os.path.exists("pids"):
    if not select.select([terminal], [], [], 0.02)[0]:
        continue
    new = os.read(terminal, 4096)
    shown += new
    os.write(terminal, b"\x1b[1;1R" * new.count(b"\x1b[6n"))
    plain = re.sub(rb"\x1b\[[0-9;?]*[ -/]*[@-~]", b"", shown)
    if not asked and b"> " in plain.partition(b"/help lists")[2]:
        asked = True
        os.write(terminal, b"go\r")
os.close(terminal)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;
    let mut command = home.command("python3");
    command.args(["-c", USER, env!("CARGO_BIN_EXE_pi"), control]);
    command.env("TERM", term);
    finish(command, "").await.status.code()
}

/// Starts a mode with the prompt "go". Returns stdin if the mode reads it.
async fn start(home: &Home, mode: Mode) -> (Child, Option<ChildStdin>) {
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    match mode {
        Mode::Print => command.args(["-p", "go"]),
        Mode::Json => command.args(["--mode", "json", "go"]),
        _ => command.args(["--mode", "rpc"]),
    };
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().filter(|_| mode == Mode::Rpc);
    if let Some(input) = &mut stdin {
        let line = b"{\"type\":\"prompt\",\"message\":\"go\"}\n";
        input.write_all(line).await.unwrap();
    }
    (child, stdin)
}

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

async fn ended(child: &mut Child, what: &str) -> ExitStatus {
    let status = timeout(TIMEOUT, child.wait()).await;
    status
        .unwrap_or_else(|_| panic!("{what}: still runs"))
        .unwrap()
}

async fn all(modes: &[Mode], causes: &[(Cause, i32)], last_word: &'static str) {
    let stories: Vec<Story> = modes
        .iter()
        .flat_map(|&mode| causes.iter().map(move |&(cause, code)| (mode, cause, code)))
        .map(|(mode, cause, code)| Story {
            mode,
            cause,
            code,
            last_word,
        })
        .collect();
    join_all(stories.iter().map(Story::run)).await;
}

#[tokio::test]
async fn a_signal_ends_every_mode_in_order() {
    all(&[Mode::Print, Mode::Json, Mode::Rpc], &SIGNALS, LAST_WORD).await;
}

#[tokio::test]
async fn a_pipe_that_closes_ends_every_mode_in_order() {
    let modes = [Mode::Print, Mode::Json, Mode::Rpc];
    all(&modes, &[(Cause::Stdout, 1)], LAST_WORD).await;
    all(&[Mode::Rpc], &[(Cause::Stdin, 0)], LAST_WORD).await;
}

#[tokio::test]
async fn session_shutdown_follows_session_start() {
    const DIARY: &str = r#"import { appendFileSync } from "node:fs";
        await new Promise((resolve) => setTimeout(resolve, 200));
        export default (pi) => {
            for (const name of ["session_start", "session_shutdown"]) {
                pi.on(name, () => appendFileSync("diary", name + "\n"));
            }
            BUSY
        };"#;
    // The thread is busy when `session_start` is emitted, and still busy when pi gives it up.
    const BUSY: &str = "setTimeout(() => {
        const end = Date.now() + 1000;
        while (Date.now() < end);
    }, 0);";
    let closed = async |(mode, busy): (Mode, &str)| {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.extension("diary.ts", &DIARY.replace("BUSY", busy));
        let (mut child, stdin) = start(&home, mode).await;
        // The pipe closes long before pi writes anything.
        drop(child.stdout.take());
        let what = format!("{mode:?}, {busy}");
        assert_eq!(ended(&mut child, &what).await.code(), Some(1), "{what}");
        drop(stdin);
        let diary = fs::read_to_string(home.cwd().join("diary")).unwrap_or_default();
        let all = "session_start\nsession_shutdown\n";
        assert!(diary.is_empty() || diary == all, "{what}: {diary}");
    };
    let modes = [Mode::Print, Mode::Json, Mode::Rpc];
    let stories = (modes.iter()).flat_map(|&mode| [(mode, ""), (mode, BUSY)]);
    join_all(stories.map(closed)).await;
}

#[tokio::test]
async fn an_extension_that_hangs_does_not_keep_any_mode() {
    let term = [(Cause::Signal(Signal::SIGTERM), 143)];
    all(&[Mode::Print, Mode::Json, Mode::Rpc], &term, HANGS).await;
}

/// The output is larger than a pipe, and the reader does not read.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_reader_that_does_not_read_does_not_keep_any_mode() {
    let blocked = async |mode: Mode| {
        let what = format!("{mode:?}");
        let server = ModelServer::start().await;
        server.push(Answer::deltas(2000, &"0123456789".repeat(10)));
        let home = Home::new(&server);
        home.extension("last.ts", LAST_WORD);
        let (mut child, stdin) = start(&home, mode).await;
        server.received(1).await;
        quiet(child.id().unwrap()).await;
        send(child.id().unwrap(), Signal::SIGTERM);
        assert_eq!(ended(&mut child, &what).await.code(), Some(143), "{what}");
        drop(stdin);
        let word = fs::read_to_string(home.cwd().join("last-word"));
        let output = "session_shutdown\nexit 143\n";
        assert_eq!(word.ok().as_deref(), Some(output), "{what}");
        let entries = home.entries();
        let last = entries.last().unwrap();
        assert_eq!(last["message"]["role"], "assistant", "{what}: {last}");
    };
    join_all([Mode::Print, Mode::Json, Mode::Rpc].map(blocked)).await;
}

/// Packages kill their children and remove their lock files in exit listeners, and `signal-exit`
/// replaces `process.emit`.
#[tokio::test]
async fn exit_listeners_run_at_the_end_and_at_a_reload() {
    const LISTENS: &str = include_str!("fixtures/exit.ts");
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"shutdown": 1500}}));
    home.extension("listens.ts", LISTENS);
    let output = || fs::read_to_string(home.cwd().join("said")).unwrap_or_default();
    const ALL: &str = "emit\nleaves\n0 true\n";
    let mut rpc = home.rpc(&[]);
    for (turn, kind) in ["reload", "new_session"].into_iter().enumerate() {
        rpc.ok(json!({ "type": kind })).await;
        rpc.wait("the error", |line| {
            line["event"] == "exit" && line["error"] == "broken"
        })
        .await;
        assert_eq!(output(), ALL.repeat(turn + 1));
    }
    rpc.ok(json!({"type": "prompt", "message": "/spin"})).await;
    assert_eq!(rpc.close().await.code(), Some(0));
    assert_eq!(output(), [&ALL.repeat(3), "spins\n"].concat());
}

/// An exit listener that spun was blamed on another extension or on none.
#[tokio::test]
async fn an_exit_listener_that_spins_is_attributed_to_its_author() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"shutdown": 1500}}));
    home.extension(
        "b-spins.ts",
        r#"process.once("exit", () => { for (;;); });
        export default () => {};"#,
    );
    for neighbour in ["a.ts", "c.ts"] {
        home.extension(
            neighbour,
            r#"process.on("exit", () => {});
            export default (pi) => pi.on("session_shutdown", async () => {});"#,
        );
    }
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "reload"})).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["extension"]["name"], "b-spins", "{error}");
    assert_eq!(error["event"], "exit");
}

#[tokio::test]
async fn a_second_signal_ends_the_wait_for_session_shutdown() {
    let waiting = async |(mode, first, code, second): (Mode, Signal, i32, Signal)| {
        let what = format!("{mode:?}, {first}, {second}");
        let server = ModelServer::start().await;
        server.push(Answer::text("half of it").stall_after(1));
        let home = Home::new(&server);
        home.settings(json!({"extensionTimeouts": {"shutdown": 600_000}}));
        home.extension("waits.ts", WAITS);
        let (mut child, stdin) = start(&home, mode).await;
        until_exists(&home.cwd().join("pids")).await;
        send(child.id().unwrap(), first);
        until_exists(&home.cwd().join("ends")).await;
        send(child.id().unwrap(), second);
        assert_eq!(ended(&mut child, &what).await.code(), Some(code), "{what}");
        drop(stdin);
    };
    let cases = [
        (Mode::Rpc, Signal::SIGTERM, 143, Signal::SIGTERM),
        (Mode::Print, Signal::SIGHUP, 129, Signal::SIGTERM),
        (Mode::Json, Signal::SIGINT, 130, Signal::SIGHUP),
    ];
    join_all(cases.map(waiting)).await;
}

/// The output of the terminal is stopped, as by Ctrl-S in another program, and it is read key by key.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_restores_a_stopped_terminal() {
    const STOP: &str = "import os, sys, termios\n\
        termios.tcflow(os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY), termios.TCOOFF)";
    let home = Home::bare();
    let mut terminal = Terminal::start(&home, "xterm");
    assert!(terminal.is_raw());
    let device = fs::read_link(format!("/proc/{}/fd/0", terminal.process_id())).unwrap();
    let stopped = std::process::Command::new("python3")
        .args(["-c", STOP])
        .arg(device)
        .status();
    assert!(stopped.unwrap().success());
    terminal.line("hello");
    for signal in [Signal::SIGHUP, Signal::SIGTERM] {
        quiet(terminal.process_id()).await;
        send(terminal.process_id(), signal);
    }
    assert_eq!(terminal.end(), 129);
}

/// No number of signals ended a program whose main thread was blocked, here by a pipe that it reads
/// and that has no end.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_a_blocked_program() {
    let home = Home::bare();
    let pipe = home.cwd().join("prompt");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let options = ["--provider", "demo", "--append-system-prompt", "prompt"];
    let terminal = Terminal::open(&home, "xterm", &options);
    // Returns when the program has opened the pipe.
    let _writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    let main_thread = format!("/proc/{}/wchan", terminal.process_id());
    let is_blocked = || fs::read_to_string(&main_thread).unwrap().contains("pipe");
    while !is_blocked() {
        pause(10).await;
    }
    send(terminal.process_id(), Signal::SIGTERM);
    quiet(terminal.process_id()).await;
    assert!(is_blocked(), "the main thread has noticed the first signal");
    send(terminal.process_id(), Signal::SIGTERM);
    assert_eq!(terminal.end(), 143);
}

/// A reader gets all output, up to the last line of an extension that is slow to shut down.
#[tokio::test]
async fn a_slow_shutdown_loses_no_output() {
    const SLOW: &str = r#"
        export default (pi) => pi.on("session_shutdown", async (_event, ctx) => {
            await new Promise((resolve) => setTimeout(resolve, 1500));
            ctx.ui.notify("farewell");
        });"#;
    let server = ModelServer::start().await;
    server.push(Answer::text("half of it").stall_after(1));
    let home = Home::new(&server);
    home.extension("slow.ts", SLOW);
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "prompt", "message": "go"})).await;
    rpc.event("message_update").await;
    send(rpc.process_id(), Signal::SIGTERM);
    assert_eq!(rpc.end().await.code(), Some(143));
    rpc.event("agent_end").await;
    rpc.notified("farewell").await;
}

// Reading a terminal blocks a thread, and the model answers meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_and_the_end_of_the_terminal_end_line_mode() {
    let causes = [&SIGNALS[..], &[(Cause::Terminal, 129)]].concat();
    all(&[Mode::Line], &causes, LAST_WORD).await;
    all(&[Mode::Line], &causes[..1], HANGS).await;
}

/// The exit code was 1 or 0 if pi noticed the closed terminal before SIGHUP arrived. Without
/// SIGHUP, a line editor read the end of the input for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_closes_without_a_signal_ends_line_mode() {
    let causes = ["dumb", "xterm"].map(|term| (Cause::UncontrolledTerminal(term), 129));
    all(&[Mode::Line], &causes, LAST_WORD).await;
}

/// Print mode and RPC mode ended without an error when the disk was full.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_error_of_stdout_is_reported() {
    let home = Home::bare();
    let demo = ["--provider", "demo", "--model", "demo"];
    for mode in [["-p", "hi"], ["--mode", "json"], ["--mode", "rpc"]] {
        let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
        command.args(demo).args(mode);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        command.stdout(full);
        let finished = finish(command, "{\"type\":\"get_state\"}\n").await;
        let reported = finished.failed(1);
        assert!(
            reported.contains("stdout: No space left on device"),
            "{mode:?}: {reported}"
        );
    }
}
