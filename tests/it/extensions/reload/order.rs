//! The order of a reload: the new extensions are prepared while the old ones serve, the old ones
//! are shut down and release what they hold, and only then the new ones are loaded.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, prompt, until_exists};

/// An extension that counts, saves the number in `session_shutdown` and reads it when it is loaded.
const COUNTER: &str = r#"import fs from "node:fs";
    let count = fs.existsSync("count") ? Number(fs.readFileSync("count", "utf8")) : 0;
    export default (pi) => {
        pi.registerCommand("count", { handler: async (_, ctx) => {
            count += 1;
            ctx.ui.notify(`count ${count}`);
        } });
        pi.registerCommand("reload", { handler: (_, ctx) => ctx.reload() });
        pi.on("session_shutdown", () => fs.writeFileSync("count", String(count)));
    };"#;

/// The new extension read the old state, and its next shutdown overwrote the new one.
#[tokio::test]
async fn state_saved_at_shutdown_is_read_by_the_next_load() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("counter.ts", COUNTER);
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Hello."));
    rpc.answer_to("hi").await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    let first = state["sessionFile"].clone();
    let messages = rpc.ok(json!({"type": "get_fork_messages"})).await;
    let entry = messages["messages"][0]["entryId"].clone();
    let causes = [
        json!({"type": "reload"}),
        prompt("/reload"),
        json!({"type": "fork", "entryId": entry}),
        json!({"type": "new_session"}),
        json!({"type": "switch_session", "sessionPath": first}),
    ];
    for (before, cause) in causes.into_iter().enumerate() {
        rpc.ok(prompt("/count")).await;
        rpc.notified(&format!("count {}", before + 1)).await;
        rpc.ok(cause).await;
    }
    rpc.ok(prompt("/count")).await;
    rpc.notified("count 6").await;
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap().port()
}

fn answer_of(port: u16) -> String {
    let mut answer = String::new();
    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    connection.read_to_string(&mut answer).unwrap();
    answer
}

/// Checks that a new extension can take what the old one held. Failures were EADDRINUSE, EEXIST and
/// "database is locked".
async fn is_taken_over(closes: bool) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let port = free_port();
    home.file("port", &port.to_string());
    if closes {
        home.file("closes", "");
    }
    home.extension("holder.ts", include_str!("fixtures/holder.ts"));
    let mut rpc = home.rpc(&[]);
    rpc.notified("holds after startup").await;
    for (cause, reason) in [
        (json!({"type": "reload"}), "reload"),
        (json!({"type": "new_session"}), "new"),
        (prompt("/reload"), "reload"),
        (prompt("/fresh"), "new"),
        (json!({"type": "reload"}), "reload"),
    ] {
        rpc.ok(cause.clone()).await;
        rpc.notified(&format!("holds after {reason}")).await;
        assert_eq!(answer_of(port), "served", "{cause}");
    }
    let errors = rpc.lines();
    let errors = errors
        .iter()
        .filter(|line| line["type"] == "extension_error");
    let errors: Vec<&Value> = errors.collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[tokio::test]
async fn what_a_shutdown_gives_back_is_free_for_the_next_load() {
    is_taken_over(true).await;
}

#[tokio::test]
async fn what_careless_extensions_hold_is_free_for_the_next_load() {
    is_taken_over(false).await;
}

/// An extension that loads at once, or, if the file `slow` exists, as soon as the file `go` exists.
const SLOW: &str = r#"import fs from "node:fs";
    if (fs.existsSync("slow")) {
        fs.writeFileSync("loading", "");
        while (!fs.existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    export default (pi) => {
        pi.on("session_start", (event, ctx) => ctx.ui.notify(`started ${event.reason}`));
        pi.on("input", () => ({ action: "transform", text: fs.existsSync("slow") ? "new" : "old" }));
    };"#;

async fn wait_loading(home: &Home) {
    until_exists(&home.cwd().join("loading")).await;
}

#[tokio::test]
async fn a_kill_during_the_load_loses_no_saved_state() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("a.ts", COUNTER);
    home.extension("b.ts", SLOW);
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/count")).await;
    rpc.notified("count 1").await;
    home.file("slow", "");
    rpc.begin("reload", json!({"type": "reload"})).await;
    wait_loading(&home).await;
    rpc.kill().await;
    home.file("go", "");
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/count")).await;
    rpc.notified("count 2").await;
}

async fn answer_time(rpc: &mut Rpc, kind: &str) -> Duration {
    let started = Instant::now();
    rpc.ok(json!({ "type": kind })).await;
    started.elapsed()
}

/// A prompt got no answer and no event, and the user was not told why.
#[tokio::test]
async fn a_slow_load_is_named_and_only_prompts_wait_for_it() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("slow.ts", SLOW);
    let mut rpc = home.rpc(&[]);
    rpc.notified("started startup").await;
    home.file("slow", "");
    rpc.begin("reload", json!({"type": "reload"})).await;
    wait_loading(&home).await;
    server.push(Answer::text("Hello."));
    rpc.begin("prompt", prompt("hi")).await;
    for kind in ["get_state", "get_commands", "get_session_stats"] {
        answer_time(&mut rpc, kind).await;
    }
    rpc.ok(json!({"type": "set_session_name", "name": "named"}))
        .await;
    let wait = rpc.event("extension_wait_start").await;
    let path = wait["extensionPath"].as_str().unwrap();
    assert!(
        path.ends_with("/slow.ts") && wait["event"] == "load",
        "{wait}"
    );
    let is_status = |line: &Value| line["method"] == "setStatus";
    let (_, status) = rpc.find(0, "the status", is_status).await;
    let text = status["statusText"].as_str().unwrap();
    assert!(text.contains("slow"), "{status}");
    assert!(server.requests().is_empty());
    home.file("go", "");
    rpc.response("reload").await;
    rpc.response("prompt").await;
    // Reports of waiting are not ordered with the events of the run.
    for kind in ["extension_wait_end", "agent_end"] {
        rpc.find(0, kind, |line| line["type"] == kind).await;
    }
    let requests = server.requests();
    let messages = requests[0].body["messages"].to_string();
    assert!(
        messages.contains("new") && !messages.contains("old"),
        "{messages}"
    );
}
