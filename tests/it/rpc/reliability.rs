//! Guarantees for careful clients: a greeting, event numbers, heartbeats, and misuse that loses
//! nothing.

use std::time::Duration;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::support::{Home, TIMEOUT, idle, prompt, quiet, until_exists, with_extension};

fn hello(more: Value) -> Value {
    let mut hello = json!({"type": "hello", "protocolVersion": 1, "client": "the tests"});
    for (name, value) in more.as_object().unwrap() {
        hello[name] = value.clone();
    }
    hello
}

#[tokio::test]
async fn hello_exchanges_the_capabilities_of_both_sides() {
    let (server, _home, mut rpc) = idle().await;
    let greeting = rpc
        .ok(hello(
            json!({"capabilities": ["seq", "deltaUpdates", "telepathy"]}),
        ))
        .await;
    assert_eq!(greeting["protocolVersion"], 1);
    assert_eq!(greeting["server"]["compatibleWith"], "0.87.1");
    assert_eq!(greeting["enabled"], json!(["seq", "deltaUpdates"]));
    let commands = greeting["commands"].as_array().unwrap();
    assert!(commands.contains(&json!("get_events")), "{greeting}");
    let from = greeting["seq"].as_u64().unwrap();
    server.push(Answer::text("Hello there."));
    rpc.run("hi").await;
    rpc.event("agent_settled").await;
    let events: Vec<Value> = rpc
        .lines()
        .into_iter()
        .filter(|line| line.get("seq").is_some())
        .collect();
    let numbers: Vec<u64> = events.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    let last = *numbers.last().unwrap();
    assert_eq!(numbers, (from + 1..=last).collect::<Vec<_>>());
    assert_eq!(rpc.ok(json!({"type": "ping"})).await, json!({"seq": last}));
    // The updates had no message, and the replay buffer keeps what was sent.
    let missed = rpc.ok(json!({"type": "get_events", "since": from})).await;
    assert_eq!(missed, json!({"events": events, "latest": last}));
    let some = rpc
        .ok(json!({"type": "get_events", "since": last - 1}))
        .await;
    assert_eq!(some["events"], json!([events.last()]));
    let future = rpc
        .request(json!({"type": "get_events", "since": last + 1}))
        .await;
    assert_eq!(future["errorCode"], "events_gone");
    // A new greeting replaces the old one.
    rpc.ok(hello(json!({}))).await;
    server.push(Answer::text("Again."));
    let events = rpc.run("again").await;
    assert!(events.iter().all(|event| event.get("seq").is_none()));
    let mut updates = events
        .iter()
        .filter(|event| event["type"] == "message_update");
    assert!(updates.all(|update| update["message"].is_object()));
    let gone = rpc
        .request(json!({"type": "get_events", "since": from}))
        .await;
    assert_eq!(gone["errorCode"], "events_gone");
}

const ASKS: &str = include_str!("fixtures/reliability.ts");

#[tokio::test]
async fn unsupported_dialogs_fail_when_the_client_declares_it() {
    let (_server, _home, mut rpc) = crate::support::with_extension(ASKS).await;
    let ui = json!({"ui": ["select", "setStatus", "holograms"]});
    rpc.ok(hello(ui)).await;
    rpc.send(&prompt("/ask").to_string()).await;
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"value": "red"})).await;
    let status = rpc.ui("setStatus").await;
    assert_eq!(
        status["statusText"],
        "true; true UiUnsupportedError UI_UNSUPPORTED custom; \
         true UiUnsupportedError UI_UNSUPPORTED editor; red"
    );
    let notified = |line: &Value| line["method"] == "notify";
    assert!(!rpc.lines().iter().any(notified));
    // A client that declares nothing is taken for a client of the original.
    rpc.ok(hello(json!({}))).await;
    rpc.send(&prompt("/ask").to_string()).await;
    rpc.notified("lost").await;
    let question = rpc.ui("editor").await;
    rpc.reply(&question, json!({"cancelled": true})).await;
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"cancelled": true})).await;
    let status = rpc.ui("setStatus").await;
    assert_eq!(
        status["statusText"],
        "true; undefined; undefined; undefined"
    );
}

#[tokio::test]
async fn errors_have_codes() {
    let (server, _home, mut rpc) = idle().await;
    let session = |path: &str| json!({"type": "switch_session", "sessionPath": path});
    let cases = [
        (json!({"type": "dance"}), "unknown_command"),
        (json!({"type": "prompt"}), "invalid_command"),
        (
            json!({"type": "set_model", "provider": "x", "modelId": "y"}),
            "model_not_found",
        ),
        (json!({"type": "fork", "entryId": "x"}), "invalid_entry"),
        (
            json!({"type": "get_entries", "since": "x"}),
            "invalid_entry",
        ),
        (
            json!({"type": "set_session_name", "name": " "}),
            "invalid_name",
        ),
        (json!({"type": "compact"}), "nothing_to_do"),
        (session(env!("CARGO_MANIFEST_PATH")), "session_unavailable"),
    ];
    for (command, code) in cases {
        let refused = rpc.request(command.clone()).await;
        assert_eq!(refused["errorCode"], code, "{command} got {refused}");
        assert_eq!(refused["success"], false);
    }
    server.push(Answer::stall());
    rpc.ok(prompt("go")).await;
    server.received(1).await;
    assert_eq!(rpc.request(prompt("and now?")).await["errorCode"], "busy");
    assert_eq!(
        rpc.request(json!({"type": "reload"})).await["errorCode"],
        "busy"
    );
}

#[tokio::test]
async fn lines_may_be_long_deep_and_broken() {
    let (_server, _home, mut rpc) = idle().await;
    let long = "x".repeat(64 * 1024 * 1024);
    rpc.write(b"{\"type\":\"set_session_name\",\"id\":\"long\",\"name\":\"")
        .await;
    rpc.write(long.as_bytes()).await;
    rpc.write(b"\"}\r\n").await;
    let named = rpc.event("response").await;
    assert_eq!(
        (&named["id"], &named["success"]),
        (&json!("long"), &json!(true))
    );
    let deep = format!(
        r#"{{"type":"get_state","x":{}{},"id":"deep"}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    rpc.send(&deep).await;
    let refused = rpc.event("response").await;
    assert_eq!(
        (&refused["id"], &refused["errorCode"]),
        (&json!("deep"), &json!("parse_error"))
    );
    rpc.write(b"{\"type\":\"set_session_name\",\"name\":\"\xff\xfeok\"}\n")
        .await;
    assert_eq!(rpc.event("response").await["success"], true);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["sessionName"], "\u{fffd}\u{fffd}ok");
}

#[tokio::test]
async fn thousands_of_commands_and_aborts_at_once() {
    let (server, _home, mut rpc) = idle().await;
    server.push(Answer::stall());
    rpc.ok(prompt("go")).await;
    server.received(1).await;
    let mut lines = String::new();
    for n in 0..3000 {
        let kind = match n % 3 {
            0 => "abort",
            1 => "get_state",
            _ => "abort_bash",
        };
        lines += &format!("{{\"type\":\"{kind}\",\"id\":{n}}}\n");
    }
    rpc.write(lines.as_bytes()).await;
    rpc.ok(json!({"type": "wait_for_idle"})).await;
    let mut answered: Vec<u64> = rpc
        .lines()
        .iter()
        .filter_map(|line| line["id"].as_u64())
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, (0..3000).collect::<Vec<_>>());
    server.push(Answer::text("Still here."));
    assert_eq!(rpc.answer_to("well?").await, "Still here.");
}

#[tokio::test]
async fn a_failed_write_of_a_setting_is_reported_and_repeated() {
    let (_server, home, mut rpc) = idle().await;
    let lock = home.agent_dir().join("settings.json.lock");
    std::fs::create_dir(&lock).unwrap();
    rpc.ok(json!({"type": "set_steering_mode", "mode": "all"}))
        .await;
    let reported = rpc.event("extension_error").await;
    assert_eq!(
        (&reported["extensionPath"], &reported["event"]),
        (&json!("<session>"), &json!("settings"))
    );
    let error = reported["error"].as_str().unwrap();
    assert!(error.contains("settings.json.lock"), "{error}");
    std::fs::remove_dir(lock).unwrap();
    rpc.ok(json!({"type": "set_follow_up_mode", "mode": "all"}))
        .await;
    let stored = std::fs::read(home.agent_dir().join("settings.json")).unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(
        (&stored["steeringMode"], &stored["followUpMode"]),
        (&json!("all"), &json!("all"))
    );
}

/// A client that reads only on request.
struct Lazy {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Lazy {
    fn start(home: &Home) -> Self {
        let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
        let mut child = command.args(["--mode", "rpc"]).spawn().unwrap();
        Self {
            stdin: child.stdin.take().unwrap(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    async fn send(&mut self, command: &Value) {
        let line = format!("{command}\n");
        self.stdin.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> String {
        let line = timeout(TIMEOUT, self.lines.next_line()).await;
        line.expect("a line in time").unwrap().expect("a line")
    }

    async fn response(&mut self, id: &str) -> (Value, Vec<String>) {
        let mut before = Vec::new();
        let mark = format!("{{\"id\":\"{id}\"");
        loop {
            let line = self.next().await;
            if line.starts_with(&mark) {
                return (serde_json::from_str(&line).unwrap(), before);
            }
            before.push(line);
        }
    }

    /// Memory of the process in MiB.
    fn memory(&self) -> usize {
        let pid = self.child.id().unwrap();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<usize>().unwrap() / 1024
    }

    async fn stuck(&self) {
        quiet(self.child.id().unwrap()).await;
    }
}

/// Unread, the output would be 60 MB of updates and 100 MB of responses.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn output_waits_for_a_client_that_does_not_read() {
    const DELTAS: usize = 600;
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let mut client = Lazy::start(&home);
    server.push(Answer::deltas(DELTAS, &"0123456789".repeat(16)));
    client
        .send(&json!({"type": "prompt", "message": "go", "id": "go"}))
        .await;
    client.response("go").await;
    let before = client.memory();
    client.stuck().await;
    let grown = client.memory().saturating_sub(before);
    assert!(grown < 80, "{grown} MiB more");
    // All lines arrive when the client reads, each once.
    client
        .send(&json!({"type": "wait_for_idle", "id": "idle"}))
        .await;
    let (_, seen) = client.response("idle").await;
    let count = |kind: &str| {
        let mark = format!("{{\"type\":\"{kind}\"");
        seen.iter().filter(|line| line.starts_with(&mark)).count()
    };
    // Two more updates are the start and the end of the text.
    assert_eq!(count("message_update"), DELTAS + 2);
    assert_eq!(count("agent_settled"), 1);

    // An abort is handled while the client does not read.
    server.push(Answer::deltas(100_000, &"0123456789".repeat(16)));
    client
        .send(&json!({"type": "prompt", "message": "on", "id": "on"}))
        .await;
    client.response("on").await;
    client.stuck().await;
    client.send(&json!({"type": "abort", "id": "abort"})).await;
    let (_, seen) = client.response("abort").await;
    assert!(seen.len() < 5000, "{} lines", seen.len());

    // While the client does not read responses, pi stops reading commands at some point.
    let before = client.memory();
    let mut sent = 0;
    let many = "{\"type\":\"get_messages\",\"id\":\"m\"}\n".repeat(100);
    for _ in 0..10 {
        // Commands of a megabyte each.
        let written = client.stdin.write_all(many.as_bytes());
        match timeout(Duration::from_secs(2), written).await {
            Ok(written) => written.unwrap(),
            Err(_) => break,
        }
        sent += 100;
    }
    client.stuck().await;
    let grown = client.memory().saturating_sub(before);
    assert!(grown < 200, "{grown} MiB more after {sent}");
    for _ in 0..sent {
        client.response("m").await;
    }
}

/// 40 MB of frames, and as much in notes.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn ui_messages_for_a_client_that_does_not_read_are_bounded() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "floods.ts",
        r#"import { writeFileSync } from "node:fs";
        export default (pi) => pi.registerCommand("flood", { handler: async (_, { ui }) => {
            const long = "x".repeat(20_000);
            for (let n = 1; n <= 2000; n += 1) {
                ui.notify(`note ${n} ${long}`);
                ui.setStatus("key", `frame ${n} ${long}`);
                if (n % 100 === 0) await new Promise((next) => setTimeout(next));
            }
            writeFileSync("flooded", "");
        } });"#,
    );
    let mut client = Lazy::start(&home);
    client.send(&json!({"type": "get_state", "id": "s"})).await;
    client.response("s").await;
    let before = client.memory();
    let flood = json!({"type": "prompt", "message": "/flood", "id": "flood"});
    client.send(&flood).await;
    until_exists(&home.cwd().join("flooded")).await;
    client.stuck().await;
    let grown = client.memory().saturating_sub(before);
    assert!(grown < 60, "{grown} MiB more");

    // The last message of each kind arrives.
    let mut seen = Vec::new();
    for last in ["note 2000 ", "frame 2000 "] {
        while !seen.last().is_some_and(|line: &String| line.contains(last)) {
            seen.push(client.next().await);
        }
    }
    let reported = |line: &&String| line.contains("The client does not read pi's output");
    assert_eq!(seen.iter().filter(reported).count(), 1);
}

/// The messages overtook one another, and came after the response.
#[tokio::test]
async fn ui_messages_come_in_order_and_before_the_response() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("burst", { handler: async (_, { ui }) => {
            for (let n = 0; n < 2000; n += 1) ui.notify(`${n}`);
        } });"#,
    )
    .await;
    rpc.ok(prompt("/burst")).await;
    let lines = rpc.lines();
    let shown = lines.iter().filter_map(|line| line["message"].as_str());
    let shown: Vec<&str> = shown.collect();
    let expected: Vec<String> = (0..2000).map(|n| n.to_string()).collect();
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn closing_stdout_ends_pi() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let Lazy {
        mut child,
        mut stdin,
        lines,
    } = Lazy::start(&home);
    drop(lines);
    // pi writes nothing before a command arrives.
    while stdin.write_all(b"{\"type\":\"get_state\"}\n").await.is_ok() {
        if let Ok(status) = timeout(Duration::from_millis(50), child.wait()).await {
            assert_eq!(status.unwrap().code(), Some(1));
            return;
        }
    }
    let status = timeout(TIMEOUT, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn the_schema_is_printed() {
    let printed = Home::bare().run(&["rpc", "schema"], "").await.ok();
    let schema: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(schema["title"], "RpcLine");
}

/// A package that loads slowly, for example because its module waits for a server.
const SLOW: &str =
    r#"await new Promise(() => setTimeout(() => {}, 60_000)); export default () => {};"#;

#[tokio::test]
async fn a_client_is_answered_while_extensions_load() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"load": 10_000}}));
    home.extension("a-slow.ts", SLOW);
    home.extension(
        "b-quick.ts",
        r#"export default (pi) => pi.registerCommand("quick", { handler: async () => {} });"#,
    );
    let mut rpc = home.rpc(&[]);
    assert_eq!(rpc.ok(json!({"type": "ping"})).await, json!({"seq": 0}));
    let greeting = rpc.ok(hello(json!({"capabilities": ["seq"]}))).await;
    assert_eq!(greeting["enabled"], json!(["seq"]));
    let waits = rpc.event("extension_wait_start").await;
    assert_eq!(waits["event"], "load");
    rpc.ok(json!({"type": "abort"})).await;
    let commands = rpc.ok(json!({"type": "get_commands"})).await;
    assert!(commands.to_string().contains("quick"), "{commands}");
    let error = rpc.event("extension_error").await;
    assert!(
        error["extensionPath"]
            .as_str()
            .unwrap()
            .ends_with("a-slow.ts"),
        "{error}"
    );
}

#[tokio::test]
async fn a_load_is_given_up_when_its_client_has_gone() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"load": 600_000}}));
    home.extension("slow.ts", SLOW);
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "ping"})).await;
    assert!(rpc.close().await.success());
}
