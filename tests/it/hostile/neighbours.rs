//! An extension that misbehaves in its source or with shared objects does not harm other
//! extensions, and they are not named.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{EXTENSION_HOSTS, Home, Rpc, prompt};

fn errors(rpc: &Rpc) -> Vec<(String, String)> {
    let lines = rpc.lines();
    let errors = { lines.iter() }.filter(|line| line["type"] == "extension_error");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    errors
        .map(|line| {
            let path = text(&line["extensionPath"]);
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            (name, text(&line["error"]))
        })
        .collect()
}

/// The stack of the parser thread overflowed and ended the program.
#[tokio::test]
async fn a_source_nested_too_deeply_is_left_out() {
    let nested = |open: &str, close: &str, times: usize| {
        let (open, close) = (open.repeat(times), close.repeat(times));
        format!("export const x = {open}1{close};\nexport default () => {{}};")
    };
    let sources = [
        ("parens.ts", nested("(", ")", 20_000), true),
        ("objects.ts", nested("{a:", "}", 20_000), true),
        ("sum.ts", nested("", "+1", 20_000), false),
        (
            "calls.ts",
            nested("Promise.resolve()", "", 1).replace("1;", &".then(() => 1)".repeat(2_000)),
            false,
        ),
    ];
    for host in EXTENSION_HOSTS {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.settings(json!({ "extensionHost": host }));
        home.extension(
            "beside.ts",
            r#"export default (pi) => pi.registerCommand("here", {
                handler: async (path, ctx) => { if (path) await import(path); ctx.ui.notify("here"); },
            });"#,
        );
        let mut paths = Vec::new();
        for (name, source, _) in &sources {
            paths.push(home.extension(name, source));
        }
        let mut rpc = home.rpc(&[]);
        rpc.ok(prompt("/here")).await;
        rpc.notified("here").await;
        let reported = errors(&rpc);
        for (name, _, is_too_deep) in &sources {
            let is_told = reported.iter().any(|(whose, text)| {
                whose == name && text.contains("brackets are within each other")
            });
            assert_eq!(is_told, *is_too_deep, "{host} {name}: {reported:?}");
        }
        let others = |(name, _): &&(String, String)| name == "beside.ts";
        assert_eq!(reported.iter().find(others), None, "{host}");
        // A reload in the middle of a session leaves it out, too.
        let late = home.file("late.ts", &sources[0].1);
        rpc.ok(prompt(&format!("/here {}", late.display()))).await;
        rpc.ok(prompt("/here")).await;
        let reload = rpc.ok(json!({"type": "reload"})).await;
        assert_eq!(
            reload["failed"].as_array().map(Vec::len),
            Some(2),
            "{reload}"
        );
    }
}

/// The queue asked the event object for its type, and no other extension got the event.
#[tokio::test]
async fn a_spoiled_event_object_reaches_other_extensions() {
    for host in EXTENSION_HOSTS {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.settings(json!({ "extensionHost": host }));
        home.extension(
            "a.ts",
            r#"export default (pi) => {
                const spoil = (event) => Object.defineProperty(event, "type", { get() { throw new Error("spoilt"); } });
                for (const name of ["agent_start", "turn_start", "turn_end", "agent_end"]) pi.on(name, spoil);
            };"#,
        );
        home.extension(
            "b.ts",
            r#"export default (pi) => {
                const heard = [];
                for (const name of ["agent_start", "turn_start", "turn_end", "agent_end"]) pi.on(name, (event, ctx) => {
                    heard.push(name);
                    if (name === "agent_end") ctx.ui.notify(heard.join());
                });
            };"#,
        );
        server.push(Answer::text("Fine."));
        let mut rpc = home.rpc(&[]);
        let lines = rpc.run("go").await;
        let all = "agent_start,turn_start,turn_end,agent_end";
        assert!(
            lines.iter().any(|line| line["message"] == all),
            "{host}: {lines:?}"
        );
        assert_eq!(errors(&rpc), [], "{host}");
    }
}

/// Calls of the bridge in the context of another extension were stale, and that extension was
/// named.
#[tokio::test]
async fn a_new_session_in_a_handler_is_no_error_of_others() {
    for host in EXTENSION_HOSTS {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.settings(json!({ "extensionHost": host }));
        home.extension(
            "a.ts",
            r#"let kept;
            export default (pi) => {
                pi.registerCommand("keep", { handler: (_, ctx) => void (kept = ctx) });
                pi.on("turn_start", () => { kept?.newSession().catch(() => {}); kept = undefined; });
            };"#,
        );
        home.extension(
            "b.ts",
            r#"export default (pi) => pi.on("agent_end", () => new Promise((resolve) => setTimeout(resolve, 5)));"#,
        );
        server.push(Answer::text("Fine."));
        server.push(Answer::text("Fine."));
        let mut rpc = home.rpc(&[]);
        rpc.ok(prompt("/keep")).await;
        rpc.send(&prompt("go").to_string()).await;
        rpc.event("agent_end").await;
        rpc.run("again").await;
        let reported = errors(&rpc);
        assert!(
            !reported.iter().any(|(name, _)| name == "b.ts"),
            "{host}: {reported:?}"
        );
    }
}

/// The handler waited for the run and the run for the handler, without a report.
#[tokio::test]
async fn wait_for_idle_in_an_awaited_handler_is_refused() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "a.ts",
        r#"let kept;
        export default (pi) => {
            pi.registerCommand("keep", { handler: (_, ctx) => void (kept = ctx) });
            pi.on("context", async () => { await kept?.waitForIdle(); });
        };"#,
    );
    server.push(Answer::text("Fine."));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/keep")).await;
    rpc.run("go").await;
    let reported = errors(&rpc);
    let words = "ctx.waitForIdle() cannot be waited for in a handler of context";
    assert!(
        reported.len() == 1 && reported[0].1.starts_with(words),
        "{reported:?}"
    );
}

/// Two reads of `ctx.model` never returned the same object.
#[tokio::test]
async fn ctx_model_is_the_same_object_until_the_model_changes() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "a.ts",
        r#"export default (pi) => pi.registerCommand("same", {
            handler: (_, ctx) => ctx.ui.notify(`${ctx.model === ctx.model} ${ctx.model.id}`),
        });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/same")).await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    let id = state["model"]["id"].as_str().unwrap();
    rpc.notified(&format!("true {id}")).await;
}
