//! Signals that end pi, as listeners of extensions receive them.

use std::fs;

use model_server::{Answer, ModelServer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::support::{EXTENSION_HOSTS, Home, Rpc, prompt};

/// `log()` writes a line.
const LOG: &str = r#"
    import { appendFileSync } from "node:fs";
    const log = (...words) => appendFileSync("log", words.join(" ") + "\n");"#;

async fn start(home: &Home, host: &str, extension: &str) -> Rpc {
    home.settings(json!({ "extensionHost": host }));
    home.extension("ext.ts", &format!("{LOG}\n{extension}"));
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({ "type": "get_state" })).await;
    rpc
}

async fn ended_by(signal: Signal, rpc: &mut Rpc) -> Option<i32> {
    let process = Pid::from_raw(rpc.process_id().cast_signed());
    kill(process, signal).unwrap();
    rpc.end().await.code()
}

fn log(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.cwd().join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The listeners lost a race in three of eight runs.
#[tokio::test]
async fn signal_listeners_run_before_session_shutdown() {
    for host in EXTENSION_HOSTS {
        for (signal, number, code) in [
            (Signal::SIGTERM, 15, 143),
            (Signal::SIGHUP, 1, 129),
            (Signal::SIGINT, 2, 130),
        ] {
            let server = ModelServer::start().await;
            let home = Home::new(&server);
            let extension = r#"
                const all = ["SIGTERM", "SIGHUP", "SIGINT"];
                process.on("SIGTERM", () => { throw new Error("of one listener"); });
                for (const name of all) process.on(name, (...args) => log(...args));
                for (const name of all) process.once(name, function () {
                    // signal-exit does this, and kills the process if there is no other listener.
                    log("once", this === process, process.listenerCount(name) > 1);
                });
                export default (pi) => pi.on("session_shutdown", () => log("shutdown"));"#;
            let mut rpc = start(&home, host, extension).await;
            let case = format!("{host}, {signal}");
            assert_eq!(ended_by(signal, &mut rpc).await, Some(code), "{case}");
            let heard = format!("{signal} {number}");
            assert_eq!(
                log(&home),
                [&*heard, "once true true", "shutdown"],
                "{case}"
            );
            if signal == Signal::SIGTERM {
                let error = rpc.event("extension_error").await;
                assert_eq!(error["event"], "SIGTERM", "{case}: {error}");
                assert_eq!(error["extension"]["name"], "ext", "{case}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn process_exit_in_a_listener_to_the_signal_ends_pi() {
    for host in EXTENSION_HOSTS {
        for (listener, shutdown) in [
            ("() => { process.exit(7); }", None),
            (
                "async () => { await null; process.exit(7); }",
                Some("shutdown"),
            ),
        ] {
            let server = ModelServer::start().await;
            let home = Home::new(&server);
            let extension = format!(
                r#"process.on("SIGTERM", {listener});
                process.on("exit", (code) => log("exit", code));
                export default (pi) => pi.on("session_shutdown", () => log("shutdown"));"#
            );
            let mut rpc = start(&home, host, &extension).await;
            let case = format!("{host}, {listener}");
            assert_eq!(ended_by(Signal::SIGTERM, &mut rpc).await, Some(7), "{case}");
            let output: Vec<_> = shutdown.into_iter().chain(["exit 7"]).collect();
            assert_eq!(log(&home), output, "{case}");
            let errors = rpc.lines();
            let mut errors = errors.iter().filter(|l| l["type"] == "extension_error");
            assert_eq!(errors.next(), None, "{case}");
        }
    }
}

/// `process.exit` ended the process at once, before any `session_shutdown`.
#[tokio::test]
async fn a_listener_to_another_signal_allows_an_orderly_end() {
    for host in EXTENSION_HOSTS {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        let extension = r#"
            process.on("SIGWINCH", (...args) => log(...args));
            export default (pi) => {
                pi.registerCommand("winch", { handler: async () => {
                    const heard = new Promise((done) => process.once("SIGWINCH", done));
                    process.kill(process.pid, "SIGWINCH");
                    await heard;
                } });
                pi.on("session_shutdown", () => log("shutdown"));
            };"#;
        let mut rpc = start(&home, host, extension).await;
        rpc.ok(prompt("/winch")).await;
        rpc.ok(json!({ "type": "reload" })).await;
        assert_eq!(
            ended_by(Signal::SIGTERM, &mut rpc).await,
            Some(143),
            "{host}"
        );
        assert_eq!(
            log(&home),
            ["SIGWINCH 28", "shutdown", "shutdown"],
            "{host}"
        );
    }
}

/// The run was started, aborted and stored.
#[tokio::test]
async fn a_shutdown_before_a_run_prevents_it() {
    for host in EXTENSION_HOSTS {
        for event in ["input", "before_agent_start"] {
            let server = ModelServer::start().await;
            server.push(Answer::text("never"));
            let home = Home::new(&server);
            let extension = format!(
                r#"export default (pi) => {{
                    pi.on("{event}", (_event, ctx) => ctx.shutdown());
                    pi.on("agent_start", () => log("begun"));
                    pi.on("session_shutdown", () => log("shutdown"));
                }};"#
            );
            let mut rpc = start(&home, host, &extension).await;
            rpc.ok(prompt("go")).await;
            let case = format!("{host}, {event}");
            assert_eq!(rpc.end().await.code(), Some(0), "{case}");
            assert_eq!(log(&home), ["shutdown"], "{case}");
            assert_eq!(server.requests().len(), 0, "{case}");
            let stored = home.sessions().len();
            assert_eq!(stored, 0, "{case}");
        }
    }
}
