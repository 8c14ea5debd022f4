//! `extensionHost: "process"`: faults that would end the program on a thread stop only the
//! extensions, never the session. The other tests run with this setting, too, which shows that
//! everything else is equal (CONTRIBUTING.md).

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use model_server::{Answer, ModelServer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::{Home, Rpc, TIMEOUT, pause, prompt};

/// Reports its process id, also after every crash.
const BYSTANDER: &str = r#"export default (pi) => {
    pi.on("session_start", (event, ctx) => ctx.ui.notify(`process ${process.pid}`));
    pi.registerCommand("ping", { handler: async (args, ctx) => ctx.ui.notify("pong " + args) });
};"#;

struct Session {
    server: ModelServer,
    home: Home,
    rpc: Rpc,
}

impl Session {
    fn home(server: &ModelServer, settings: Value) -> Home {
        let home = Home::new(server);
        let mut settings = settings;
        if settings["extensionHost"].is_null() {
            settings["extensionHost"] = json!("process");
        }
        home.settings(settings);
        home
    }

    async fn start(settings: Value, extensions: &[(&str, &str)]) -> Self {
        let server = ModelServer::start().await;
        let home = Self::home(&server, settings);
        for (name, source) in extensions {
            home.extension(name, source);
        }
        let rpc = home.rpc(&[]);
        Self { server, home, rpc }
    }

    /// The process of the extensions, once it is another one than `before`.
    async fn process_after(&mut self, before: i32) -> i32 {
        let number = |line: &Value| {
            let text = line["message"].as_str()?.strip_prefix("process ")?;
            text.parse().ok().filter(|number| *number != before)
        };
        // The notification may have come before the run ended.
        let reported = self.rpc.lines().iter().rev().find_map(number);
        match reported {
            Some(process) => process,
            None => {
                let reported = |line: &Value| number(line).is_some();
                let line = self
                    .rpc
                    .wait("the process of the extensions", reported)
                    .await;
                number(&line).unwrap()
            }
        }
    }

    async fn process(&mut self) -> i32 {
        self.process_after(0).await
    }

    /// Waits for the report that an extension is quarantined, with a reason.
    async fn is_quarantined(&mut self, name: &str, why: &str) {
        let reported = |line: &Value| {
            let path = line["extensionPath"].as_str().unwrap_or_default();
            let text = line["error"].as_str().unwrap_or_default();
            line["type"] == "extension_error"
                && path.ends_with(name)
                && text.contains(why)
                && text.contains("/reload")
        };
        // The report may have come before the run ended.
        if !self.rpc.lines().iter().any(reported) {
            self.rpc.wait(&format!("{name}: {why}"), reported).await;
        }
    }

    async fn goes_on(&mut self) {
        self.rpc.ok(prompt("/ping 1")).await;
        self.rpc.notified("pong 1").await;
        self.server.push(Answer::text("Still here."));
        assert_eq!(self.rpc.answer_to("are you there?").await, "Still here.");
        // Consume the end of this run, so that later waits do not find it.
        self.rpc.event("agent_settled").await;
    }

    /// Insists that the session file has these words of the conversation.
    fn remembers(&self, words: &str) {
        let entries = json!(self.home.entries()).to_string();
        assert!(entries.contains(words), "{entries}");
    }
}

fn send(signal: Signal, process: i32) {
    kill(Pid::from_raw(process), signal).unwrap();
}

/// A native addon that runs a statement when it is loaded.
fn addon(home: &Home, name: &str, statement: &str) {
    let source = format!(
        "#include <stdlib.h>\n#include <unistd.h>\n\
         void *napi_register_module_v1(void *env, void *exports) {{\n{statement}; return exports; }}"
    );
    let source = home.file(&format!("{name}.c"), &source);
    let extension = format!(
        r#"import {{ createRequire }} from "node:module";
        export default (pi) => pi.on("before_agent_start", (event) => {{
            if (event.prompt === "{name}") createRequire(import.meta.url)("./{name}.node");
        }});"#
    );
    let addon = home
        .extension(&format!("{name}.ts"), &extension)
        .with_file_name(format!("{name}.node"));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&addon, &source])
        .status();
    assert!(
        built.unwrap().success(),
        "scripts/setup asks for a C compiler"
    );
}

#[tokio::test]
async fn a_native_addon_may_crash_abort_or_exit() {
    let server = ModelServer::start().await;
    let home = Session::home(&server, json!({}));
    home.extension("zz-bystander.ts", BYSTANDER);
    let crashes = [
        ("segfault", "*(volatile int *)0 = 1", "killed by SIGSEGV"),
        ("abort", "abort()", "killed by SIGABRT"),
        ("exit", "_exit(3)", "ended with exit code 3"),
    ];
    for (name, statement, _) in crashes {
        addon(&home, name, statement);
    }
    let rpc = home.rpc(&[]);
    let mut session = Session { server, home, rpc };
    let mut process = session.process().await;
    for (name, _, how) in crashes {
        session.server.push(Answer::text(&format!("After {name}.")));
        let answer = session.rpc.answer_to(name).await;
        assert_eq!(answer, format!("After {name}."));
        session.is_quarantined(&format!("/{name}.ts"), how).await;
        session.goes_on().await;
        session.remembers(&answer);
        process = session.process_after(process).await;
    }
    assert_eq!(session.rpc.close().await.code(), Some(0));
}

#[tokio::test]
async fn a_killed_process_is_replaced() {
    let asks = r#"export default (pi) => pi.registerCommand("wait", { handler: async (args, ctx) => {
        ctx.ui.notify("waiting");
        await new Promise(() => {});
    }});"#;
    let extensions = [("asks.ts", asks), ("zz-bystander.ts", BYSTANDER)];
    let mut session = Session::start(json!({}), &extensions).await;
    let process = session.process().await;
    session.rpc.send(&prompt("/wait").to_string()).await;
    session.rpc.notified("waiting").await;
    send(Signal::SIGKILL, process);
    session
        .is_quarantined("/asks.ts", "killed by SIGKILL")
        .await;
    session.process_after(process).await;
    session.goes_on().await;
    assert_eq!(session.rpc.close().await.code(), Some(0));
}

/// A stopped process answers nothing, not even whether it spins.
#[tokio::test]
async fn a_stopped_process_is_replaced() {
    let requested = r#"export default (pi) => pi.on("before_agent_start", () => {});"#;
    let extensions = [("asked.ts", requested), ("bystander.ts", BYSTANDER)];
    let timeouts = json!({ "extensionTimeouts": { "handler": 1000 } });
    let mut session = Session::start(timeouts, &extensions).await;
    let process = session.process().await;
    session.goes_on().await;
    stop(process).await;
    session.server.push(Answer::text("Anyway."));
    assert_eq!(session.rpc.answer_to("go on").await, "Anyway.");
    session
        .is_quarantined("/asked.ts", "did not answer any more")
        .await;
    session.process_after(process).await;
    session.goes_on().await;
    assert_eq!(session.rpc.close().await.code(), Some(0));
}

/// pi asked whether the process was alive only when the time of the handler was over.
#[tokio::test]
async fn a_process_that_is_stopped_does_not_lengthen_the_end() {
    let requested = r#"export default (pi) => pi.on("session_shutdown", () => {});"#;
    let extensions = [("asked.ts", requested), ("bystander.ts", BYSTANDER)];
    let timeouts = json!({ "extensionTimeouts": { "shutdown": 30000 } });
    let mut session = Session::start(timeouts, &extensions).await;
    let process = session.process().await;
    // All extensions have received `session_start`.
    session.goes_on().await;
    stop(process).await;
    let begun = Instant::now();
    assert_eq!(session.rpc.close().await.code(), Some(0));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// Ctrl-Z stops the program in this way. The process of the extensions continues, and waits for the
/// program.
#[tokio::test]
async fn time_in_which_the_program_was_stopped_is_not_attributed() {
    const LIMIT: u64 = 3000;
    for host in ["process", "thread"] {
        let clock = r#"export default (pi) => pi.on("session_start", (event, ctx) => {
            setInterval(() => ctx.isIdle(), 20);
        });"#;
        // Works for 300 ms of its own time, however long that takes.
        let works = r#"export default (pi) => pi.registerCommand("work", { handler: (args, ctx) => {
            ctx.ui.notify("working");
            for (let worked = 0; worked < 300;) {
                const begun = performance.now();
                while (performance.now() < begun + 2);
                worked += 2;
            }
            ctx.ui.notify("worked");
        }});"#;
        let requested = r#"export default (pi) => {
            const wait = async (ctx, what) => {
                ctx.ui.notify(what);
                await new Promise((resolve) => setTimeout(resolve, 500));
            };
            pi.on("before_agent_start", async (event, ctx) => {
                if (event.prompt === "go on") await wait(ctx, "asked");
            });
            pi.on("message_end", async (event, ctx) => {
                if (JSON.stringify(event.message).includes("go further")) await wait(ctx, "told");
            });
        };"#;
        let extensions = [
            ("asked.ts", requested),
            ("bystander.ts", BYSTANDER),
            ("clock.ts", clock),
            ("works.ts", works),
        ];
        let timeouts = json!({ "spin": LIMIT, "handler": LIMIT });
        let settings = json!({ "extensionHost": host, "extensionTimeouts": timeouts });
        let mut session = Session::start(settings, &extensions).await;
        session.process().await;
        let program = session.rpc.process_id() as i32;
        for (what, reported) in [
            ("/work", "working"),
            ("go on", "asked"),
            ("go further", "told"),
        ] {
            if what != "/work" {
                session.server.push(Answer::text("Went on."));
            }
            session.rpc.send(&prompt(what).to_string()).await;
            session.rpc.notified(reported).await;
            stop(program).await;
            // Longer than the limit, which only real time can show.
            pause(LIMIT + 300).await;
            send(Signal::SIGCONT, program);
            match what {
                "/work" => session.rpc.notified("worked").await,
                _ => _ = session.rpc.event("agent_settled").await,
            }
            session.goes_on().await;
        }
        let errors = session.rpc.lines().into_iter();
        let errors: Vec<_> = errors
            .filter(|line| line["type"] == "extension_error")
            .collect();
        assert_eq!(errors, [] as [Value; 0], "{host}");
    }
}

/// The process of the extensions ends with the program, even when it is stopped itself.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_process_ends_with_a_killed_program() {
    let mut session = Session::start(json!({}), &[("bystander.ts", BYSTANDER)]).await;
    let process = session.process().await;
    stop(process).await;
    send(Signal::SIGKILL, session.rpc.process_id() as i32);
    has_ended(process).await;
    assert_eq!(session.rpc.end().await.code(), None);
}

#[tokio::test]
async fn children_of_a_crashed_process_end_with_it() {
    let starts = r#"import { spawn } from "node:child_process";
        export default (pi) => pi.registerCommand("start", { handler: async (args, ctx) => {
            ctx.ui.notify(`child ${spawn("sleep", ["1000"]).pid}`);
        }});"#;
    let extensions = [("bystander.ts", BYSTANDER), ("starts.ts", starts)];
    let mut session = Session::start(json!({}), &extensions).await;
    let process = session.process().await;
    session.rpc.ok(prompt("/start")).await;
    let reported = |line: &Value| {
        let text = line["message"].as_str().unwrap_or_default();
        text.starts_with("child ")
    };
    let line = session.rpc.wait("the child", reported).await;
    let child = line["message"].as_str().unwrap()["child ".len()..].parse();
    send(Signal::SIGABRT, process);
    session
        .is_quarantined("/starts.ts", "killed by SIGABRT")
        .await;
    has_ended(child.unwrap()).await;
    session.goes_on().await;
}

#[tokio::test]
async fn a_reload_and_the_end_leave_no_process() {
    let mut session = Session::start(json!({}), &[("bystander.ts", BYSTANDER)]).await;
    let first = session.process().await;
    session.rpc.ok(json!({"type": "reload"})).await;
    let second = session.process_after(first).await;
    has_ended(first).await;
    session.goes_on().await;
    // A reload reads the setting again.
    session.home.settings(json!({"extensionHost": "thread"}));
    session.rpc.ok(json!({"type": "reload"})).await;
    let program = session.process_after(second).await;
    assert_eq!(program, session.rpc.process_id() as i32);
    has_ended(second).await;
    session.goes_on().await;
    session.home.settings(json!({"extensionHost": "process"}));
    session.rpc.ok(json!({"type": "reload"})).await;
    let third = session.process_after(program).await;
    assert_eq!(session.rpc.close().await.code(), Some(0));
    has_ended(third).await;
}

#[tokio::test]
async fn without_extensions_there_is_no_process() {
    let mut session = Session::start(json!({}), &[]).await;
    session.server.push(Answer::text("Hello."));
    assert_eq!(session.rpc.answer_to("hello").await, "Hello.");
    let parent = session.rpc.process_id().to_string();
    let children = Command::new("ps")
        .args(["-o", "pid=", "--ppid", &parent])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&children.stdout), "");
}

/// Stops a process and waits until all its threads have stopped: the signal reaches one thread
/// after the other.
async fn stop(process: i32) {
    send(Signal::SIGSTOP, process);
    let runs = || {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter();
        threads.flatten().flatten().any(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // The state follows the name, which may contain any character.
            stat.rsplit_once(") ")
                .is_some_and(|(_, rest)| !rest.starts_with('T'))
        })
    };
    while runs() {
        pause(5).await;
    }
}

async fn has_ended(process: i32) {
    let ended = async {
        loop {
            let state = Command::new("ps")
                .args(["-o", "stat=", "-p", &process.to_string()])
                .output()
                .unwrap();
            let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
            if state.is_empty() || state.starts_with('Z') {
                return;
            }
            pause(20).await;
        }
    };
    let ended = tokio::time::timeout(TIMEOUT, ended).await;
    assert!(ended.is_ok(), "process {process} is still there");
}

/// A child that asks for a password at the terminal would stop the process of all extensions if
/// that were only in a process group of its own.
#[tokio::test]
async fn the_process_has_no_controlling_terminal() {
    let source = r#"import { readFileSync } from "node:fs";
        export default (pi) => pi.on("session_start", (event, ctx) => {
            const [, , , session, terminal] = readFileSync("/proc/self/stat", "utf8")
                .replace(/.*\) /, "").split(" ").map(Number);
            ctx.ui.notify(JSON.stringify([session === process.pid, terminal]));
        });"#;
    let mut session = Session::start(json!({}), &[("tty.ts", source)]).await;
    session.rpc.notified("[true,0]").await;
}

/// The program answers later than a thread does, and the position of the caller was lost.
#[tokio::test]
async fn errors_of_the_program_have_a_source_position() {
    let mut session = Session::start(
        json!({}),
        &[(
            "late.ts",
            "export default (pi) => pi.on('session_start', () => {\n  setTimeout(() => pi.setModel({}), 5);\n  \
             delete Error.captureStackTrace;\n});",
        )],
    )
    .await;
    let error = session.rpc.event("extension_error").await;
    assert_eq!(error["error"], "pi.setModel: provider is missing");
    assert_eq!(
        (&error["location"]["line"], &error["location"]["column"]),
        (&json!(2), &json!(23)),
        "{error}"
    );
}

/// The parent of the process is the program, which an extension ended.
#[tokio::test]
async fn an_extension_cannot_end_its_parent() {
    let mut session = Session::start(
        json!({}),
        &[(
            "ends.ts",
            r#"export default (pi) => pi.registerCommand("end", {
                handler: async () => void process.kill(process.ppid, "SIGTERM") });"#,
        )],
    )
    .await;
    session.rpc.ok(prompt("/end")).await;
    let refused = |line: &Value| {
        let text = line["error"].as_str().unwrap_or_default();
        text.contains("was called: code inside the program cannot end it")
    };
    session.rpc.wait("the refusal", refused).await;
    session.rpc.ok(json!({"type": "ping"})).await;
}
