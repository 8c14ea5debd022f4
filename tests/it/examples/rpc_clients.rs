//! The clients in `examples/rpc`: output, dialogs and failures.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use model_server::{Answer, ModelServer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use crate::support::{Home, TIMEOUT, pause, type_packages};

#[path = "../../../examples/rpc/client.rs"]
mod client;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// An interactive client.
struct Terminal {
    child: Child,
    stdin: ChildStdin,
    stdout: Arc<Mutex<String>>,
    stderr: Arc<Mutex<String>>,
}

impl Terminal {
    fn open(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            stdout: collect(child.stdout.take().unwrap()),
            stderr: collect(child.stderr.take().unwrap()),
            child,
        }
    }

    async fn types(&mut self, text: &str) {
        self.stdin.write_all(text.as_bytes()).await.unwrap();
    }

    fn interrupt(&self) {
        let pid = self.child.id().expect("it runs");
        let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    }

    /// Waits until the screen shows a text this many times.
    async fn shows(&self, text: &str, times: usize) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let (stdout, stderr) = (read(&self.stdout), read(&self.stderr));
            if stdout.matches(text).count() + stderr.matches(text).count() >= times {
                return;
            }
            let late = Instant::now() > deadline;
            assert!(!late, "{text:?} is not in\n{stdout}\n---\n{stderr}");
            pause(10).await;
        }
    }

    /// The exit code, stdout and stderr.
    async fn end(mut self) -> (Option<i32>, String, String) {
        let status = timeout(TIMEOUT, self.child.wait()).await;
        let (stdout, stderr) = (read(&self.stdout), read(&self.stderr));
        let status = status.unwrap_or_else(|_| panic!("still runs\n{stdout}\n---\n{stderr}"));
        // The readers are done as soon as the pipes are closed.
        while Arc::strong_count(&self.stdout) + Arc::strong_count(&self.stderr) > 2 {
            pause(5).await;
        }
        let (stdout, stderr) = (read(&self.stdout), read(&self.stderr));
        (status.unwrap().code(), stdout, stderr)
    }
}

fn read(text: &Mutex<String>) -> String {
    let text = text.lock().unwrap_or_else(PoisonError::into_inner);
    text.clone()
}

fn collect(mut stream: impl AsyncRead + Send + Unpin + 'static) -> Arc<Mutex<String>> {
    let text: Arc<Mutex<String>> = Arc::default();
    let written = Arc::clone(&text);
    tokio::spawn(async move {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            let new = String::from_utf8_lossy(&chunk[..count]);
            written.lock().unwrap().push_str(&new);
        }
    });
    text
}

/// Opens one dialog of each kind.
const QUESTIONS: &str = r#"export default (pi) => {
    pi.registerCommand("ask", { handler: async (_args, { ui }) => {
        const chosen = await ui.select("Which?", ["red", "green"]);
        const sure = await ui.confirm("Sure?", "really");
        const named = await ui.input("Name?");
        const none = await ui.input("Nothing?");
        ui.notify(`${chosen} ${sure} ${named} ${none}`);
    } });
};"#;

/// Drives an interactive client through a session.
async fn interactive(client: impl Fn(&Home) -> Command) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let open = |prompts: &[&str]| {
        let mut command = client(&home);
        command.args(prompts).arg("--");
        Terminal::open(command)
    };

    // Answers, and an error of the model.
    server.push(Answer::tool(
        "bash",
        json!({"command": "echo > ran; false"}),
    ));
    server.push(Answer::text("One \u{2028}\u{1f980}."));
    server.push(Answer::error(400, "no such luck"));
    let (code, output, noted) = open(&["first", "second"]).end().await;
    assert_eq!(code, Some(0), "{noted}");
    assert_eq!(output, "One \u{2028}\u{1f980}.\n");
    assert!(noted.contains("[bash failed]\nError: "), "{noted}");
    assert!(noted.contains("no such luck"), "{noted}");

    // Dialogs of extensions, one of which Ctrl-C cancels.
    let extension = home.extension("questions.ts", QUESTIONS);
    let mut terminal = open(&["/ask"]);
    terminal.shows("2. green", 1).await;
    terminal.types("2\n").await;
    terminal.shows("? Sure?", 1).await;
    terminal.types("y\n").await;
    terminal.shows("? Name?", 1).await;
    terminal.types("Ann\n").await;
    terminal.shows("? Nothing?", 1).await;
    terminal.shows("> ", 4).await;
    terminal.interrupt();
    terminal.shows("green true Ann undefined", 1).await;
    let (code, _, noted) = terminal.end().await;
    assert_eq!(code, Some(0), "{noted}");
    fs::remove_file(extension).unwrap();

    // Ctrl-C ends the run, and the queued prompt is not sent.
    server.push(Answer::text("Once upon a time").stall_after(1));
    let requested = server.requests().len();
    let terminal = open(&["tell me", "more"]);
    terminal.shows("Once upon a ", 1).await;
    terminal.interrupt();
    let (code, _, noted) = terminal.end().await;
    assert_eq!(code, Some(130), "{noted}");
    assert_eq!(server.requests().len(), requested + 1);

    // pi is killed in the middle of an answer.
    server.push(Answer::text("Once upon a time").stall_after(1));
    let terminal = open(&["tell me"]);
    terminal.shows("Once upon a ", 1).await;
    server.push(Answer::text("The end."));
    kill_pi(&home);
    let (code, output, noted) = terminal.end().await;
    assert_eq!(code, Some(0), "{noted}");
    assert!(output.ends_with("The end.\n"), "{output}");
    assert!(noted.contains("starting it again"), "{noted}");
    let body = server.last_request().body["messages"].to_string();
    assert!(body.contains("tell me"), "{body}");
    assert!(body.contains("You were interrupted."), "{body}");

    // pi does not start.
    let mut command = client(&home);
    command.args(["hello", "--", "--provider", "none"]);
    let (code, output, noted) = Terminal::open(command).end().await;
    assert_eq!((code, output.as_str()), (Some(1), ""), "{noted}");
    assert!(noted.contains("pi ended (exit code 1)"), "{noted}");
}

/// Kills the pi of this home with SIGKILL.
fn kill_pi(home: &Home) {
    let cwd = fs::canonicalize(home.cwd()).unwrap();
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_pi")).unwrap();
    let mut killed = 0;
    for process in fs::read_dir("/proc").unwrap() {
        let process = process.unwrap();
        let Ok(pid) = process.file_name().to_string_lossy().parse() else {
            continue;
        };
        let link = |name: &str| fs::read_link(process.path().join(name)).ok();
        if link("exe").as_ref() == Some(&program) && link("cwd").as_ref() == Some(&cwd) {
            let pid = nix::unistd::Pid::from_raw(pid);
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
            killed += 1;
        }
    }
    // Extensions may run in a process of their own.
    assert!(killed > 0);
}

#[tokio::test]
async fn the_python_client() {
    interactive(|home| {
        let mut command = home.command("python3");
        command.arg(file("examples/rpc/client.py"));
        command.args(["--pi", env!("CARGO_BIN_EXE_pi")]);
        command
    })
    .await;
}

/// The client is also checked against the types of the protocol.
#[tokio::test]
async fn the_typescript_client() {
    let folder = tempfile::tempdir().unwrap();
    let packages = type_packages();
    let config = json!({
        "compilerOptions": {
            "strict": true,
            "noUnusedLocals": true,
            // Node runs the file without compiling it.
            "erasableSyntaxOnly": true,
            "target": "es2022",
            "module": "esnext",
            "moduleResolution": "bundler",
            "skipLibCheck": true,
            "types": ["node"],
            "typeRoots": [packages.join("@types")],
            "paths": {"pi-extension-types/rpc": [file("extension-types/rpc.d.ts")]},
            "rootDir": file("examples/rpc"),
            "outDir": folder.path(),
        },
        "files": [file("examples/rpc/client.ts")],
    });
    fs::write(folder.path().join("tsconfig.json"), config.to_string()).unwrap();
    fs::write(folder.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    let compiler = Command::new("node")
        .arg(packages.join("typescript/bin/tsc"))
        .args([Path::new("-p"), folder.path()])
        .output();
    let compiled = compiler.await.unwrap();
    let printed = String::from_utf8_lossy(&compiled.stdout);
    assert!(compiled.status.success(), "{printed}");
    interactive(|home| {
        let mut command = home.command("node");
        command
            .arg(folder.path().join("client.js"))
            .env("PI_PROGRAM", env!("CARGO_BIN_EXE_pi"));
        command
    })
    .await;
}

#[tokio::test]
async fn the_rust_client() {
    // The rest of the file is what `cargo run --example rpc-client` runs.
    let _main: fn() -> std::process::ExitCode = client::main;
    let server = ModelServer::start().await;
    let home = Arc::new(Home::new(&server));
    home.extension(
        "ask.ts",
        r#"export default (pi) => pi.on("input", async (event, { ui }) => {
            if (!(await ui.confirm("Sure?", "really"))) return { action: "continue" };
            return { action: "handled" };
        });"#,
    );
    let converse = |limit: Duration, prompts: &[&str]| {
        let prompts: Vec<String> = prompts.iter().map(|&prompt| prompt.into()).collect();
        let home = Arc::clone(&home);
        let start = move |more: &[&str]| {
            let mut command = home.command(env!("CARGO_BIN_EXE_pi")).into_std();
            command.args(["--mode", "rpc"]).args(more);
            client::Pi::start(command, limit, |_| ())
        };
        spawn_blocking(move || client::converse(start, &prompts))
    };
    let answers = |done: Result<_, client::Problem>| -> Vec<String> { done.unwrap() };

    server.push(Answer::text("One."));
    server.push(Answer::text("Two."));
    let done = converse(TIMEOUT, &["first", "second"]).await.unwrap();
    assert_eq!(answers(done), ["One.", "Two."]);

    server.push(Answer::text("Once upon a time").stall_after(1));
    let running = converse(TIMEOUT, &["tell me"]);
    server.received(3).await;
    server.push(Answer::text("The end."));
    // Waits until the prompt is stored.
    let stored = || {
        let newest = home.sessions().pop().expect("there is a session");
        fs::read_to_string(newest).unwrap().contains("tell me")
    };
    while home.sessions().len() < 2 || !stored() {
        pause(5).await;
    }
    kill_pi(&home);
    assert_eq!(answers(running.await.unwrap()), ["The end."]);
    let body = server.last_request().body["messages"].to_string();
    assert!(body.contains("You were interrupted."), "{body}");

    // The client gets enough time to start, and then no answer.
    server.hung_up(1).await;
    server.push(Answer::stall());
    let limit = Duration::from_secs(10);
    let done = converse(limit, &["tell me"]).await.unwrap();
    let Err(client::Problem::Failed(why)) = done else {
        panic!("{done:?}");
    };
    assert_eq!(why, "took too long");
    server.hung_up(2).await;

    server.push(Answer::error(400, "no such luck"));
    let done = converse(TIMEOUT, &["hello"]).await.unwrap();
    let Err(client::Problem::Failed(why)) = done else {
        panic!("{done:?}");
    };
    assert!(why.contains("no such luck"), "{why}");

    let missing = |_: &[&str]| {
        let command = std::process::Command::new("/nothing/here");
        client::Pi::start(command, TIMEOUT, |_| ())
    };
    let done = client::converse(missing, &[]);
    assert!(matches!(done, Err(client::Problem::Failed(_))), "{done:?}");
    let kind = |error: io::Error| error.kind();
    let done = missing(&[]).map(drop).map_err(kind);
    assert_eq!(done, Err(io::ErrorKind::NotFound));
}
