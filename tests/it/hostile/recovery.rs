//! Recovery after an extension was stopped: the other extensions are reloaded and work as before.

use std::collections::BTreeMap;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::hostile::blamed;
use crate::support::{Home, Rpc, prompt};

#[tokio::test]
async fn a_dialog_after_a_recovery_does_not_delay_reports() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionTimeouts": {"spin": 2000} }));
    home.extension(
        "ext.ts",
        r#"export default (pi) => pi.on("before_agent_start", () => { for (;;); });"#,
    );
    home.extension(
        "asks.ts",
        r#"export default (pi) => pi.on("session_start", async (event, ctx) => {
            if (event.reason !== "reload") return;
            setTimeout(() => { throw new Error("heard meanwhile"); }, 10);
            await ctx.ui.confirm("Continue?", "");
        });"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Anyway."));
    rpc.send(&prompt("go").to_string()).await;
    blamed(&mut rpc, &["quarantined"]).await;
    let heard = |line: &Value| {
        let error = line["error"].as_str().unwrap_or_default();
        line["type"] == "extension_error" && error.contains("heard meanwhile")
    };
    rpc.wait("the error of a timer", heard).await;
}

#[tokio::test]
async fn a_gate_that_does_not_load_after_a_stop_is_reported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"spin": 500}}));
    home.extension(
        "ext.ts",
        r#"export default (pi) => pi.registerCommand("spin", { handler: () => { for (;;); } });"#,
    );
    home.extension(
        "gate.ts",
        r#"import { existsSync } from "node:fs";
        if (existsSync("busy")) throw new Error("the port is taken");
        export default (pi) => pi.on("tool_call", () => ({ block: true }));"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    home.file("busy", "");
    rpc.send(&prompt("/spin").to_string()).await;
    blamed(&mut rpc, &["quarantined"]).await;
    let error = rpc
        .wait("the gate's error", |line| {
            let path = line["extensionPath"].as_str().unwrap_or_default();
            line["type"] == "extension_error" && path.ends_with("gate.ts")
        })
        .await;
    assert_eq!(error["event"], "load");
    let text = error["error"].as_str().unwrap();
    assert!(text.contains("the port is taken"), "{text}");
}

#[tokio::test]
async fn a_stop_in_the_last_handler_is_reported_before_the_end() {
    for (event, report) in [
        ("agent_end", "quarantined"),
        ("session_shutdown", "stopped at"),
    ] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.settings(json!({"extensionTimeouts": {"spin": 300}}));
        let source = format!("export default (pi) => pi.on('{event}', () => {{ for (;;); }});");
        home.extension("ext.ts", &source);
        for _ in 0..3 {
            server.push(Answer::text("Fine."));
            let finished = home.run(&["-p", "go"], "").await;
            let error = finished.stderr.clone();
            assert_eq!(finished.ok(), "Fine.\n");
            assert!(error.contains(report), "{event}: {error}");
        }
    }
}

#[tokio::test]
async fn a_recovered_gate_is_called_after_its_session_start() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"spin": 500}}));
    home.extension(
        "ext.ts",
        r#"export default (pi) => pi.on("message_end", ({ message }) => {
            if (message.role === "assistant") for (;;);
        });"#,
    );
    home.extension(
        "gate.ts",
        r#"let rules;
        export default (pi) => {
            pi.on("session_start", async () => {
                await new Promise((resolve) => setTimeout(resolve, 300));
                rules = /touch/;
            });
            pi.on("tool_call", ({ input }) => rules?.test(input.command) ? { block: true } : undefined);
            pi.registerCommand("rules", { handler: async (_, ctx) => ctx.ui.notify(`rules ${rules}`) });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    server.push(Answer::tool("bash", json!({"command": "touch ran"})));
    server.push(Answer::text("Blocked."));
    rpc.ok(prompt("go")).await;
    blamed(&mut rpc, &["quarantined"]).await;
    rpc.event("agent_end").await;
    assert!(!home.cwd().join("ran").exists());
    rpc.ok(prompt("/rules")).await;
    rpc.notified("rules /touch/").await;
}

/// The elements on the screen of a client, with their contents.
fn screen(rpc: &Rpc) -> BTreeMap<String, Value> {
    let mut screen = BTreeMap::new();
    for line in rpc.lines() {
        let (key, shown) = match line["method"].as_str() {
            Some("setStatus") => (&line["statusKey"], &line["statusText"]),
            Some("setWidget") => (&line["widgetKey"], &line["widgetLines"]),
            _ => continue,
        };
        let key = format!("{} {}", line["method"], key).replace('"', "");
        match shown {
            Value::Null => screen.remove(&key),
            shown => screen.insert(key, shown.clone()),
        };
    }
    screen
}

#[tokio::test]
async fn the_ui_of_a_stopped_extension_is_removed() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"spin": 500}}));
    home.extension("ext.ts", include_str!("fixtures/recovery.ts"));
    home.extension(
        "b.ts",
        r#"export default (pi) => {
            pi.on("session_start", (event, ctx) => ctx.ui.setStatus("b", event.reason));
            pi.registerCommand("work", { handler: (args, ctx) => ctx.ui.setStatus("work", "busy") });
            pi.registerCommand("ping", { handler: (args, ctx) => ctx.ui.notify(args) });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    let status = |reason: &str| BTreeMap::from([("setStatus b".to_owned(), json!(reason))]);
    rpc.ok(prompt("/work")).await;
    rpc.ok(prompt("/ping 1")).await;
    rpc.notified("1").await;
    let mut shown = status("startup");
    shown.insert("setStatus a".into(), json!("recording"));
    shown.insert("setWidget a".into(), json!(["two", "lines"]));
    shown.insert("setStatus work".into(), json!("busy"));
    assert_eq!(screen(&rpc), shown);

    rpc.send(&prompt("/spin").to_string()).await;
    blamed(&mut rpc, &["quarantined"]).await;
    rpc.ok(prompt("/ping 2")).await;
    rpc.notified("2").await;
    assert_eq!(screen(&rpc), status("reload"));
    let mentions = |line: &&Value| line["statusKey"] == "gone";
    assert_eq!(rpc.lines().iter().filter(mentions).count(), 2);

    for (command, reason) in [("reload", "reload"), ("new_session", "new")] {
        rpc.ok(prompt("/work")).await;
        rpc.ok(json!({"type": command})).await;
        rpc.ok(prompt("/ping 3")).await;
        rpc.notified("3").await;
        assert_eq!(screen(&rpc), status(reason), "{command}");
    }
}

/// The stop was lost: the culprit was loaded again, and the other extensions got no
/// `session_shutdown`.
#[tokio::test]
async fn a_stop_before_a_new_session_is_reported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"spin": 300}}));
    home.extension(
        "ext.ts",
        r#"export default (pi) => {
            pi.on("session_before_switch", () => { for (;;); });
            pi.on("session_start", (_, ctx) => ctx.ui.notify("the culprit is here"));
        };"#,
    );
    home.extension(
        "other.ts",
        r#"export default (pi) => {
            for (const event of ["session_start", "session_shutdown"]) {
                pi.on(event, ({ reason }, ctx) => ctx.ui.notify(`${event} ${reason}`));
            }
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.notified("session_start startup").await;
    rpc.ok(json!({"type": "new_session"})).await;
    blamed(&mut rpc, &["quarantined"]).await;
    rpc.notified("session_start reload").await;
    rpc.notified("session_shutdown new").await;
    rpc.notified("session_start new").await;
    let lines = rpc.lines();
    let is_there = |line: &&Value| line["message"] == "the culprit is here";
    assert_eq!(lines.iter().filter(is_there).count(), 1, "{lines:?}");
}

/// A timer spun while the module of another extension took long to load.
#[tokio::test]
async fn a_stop_during_a_reload_is_reported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"extensionTimeouts": {"spin": 300, "load": 5000}}));
    home.extension(
        "ext.ts",
        r#"import { existsSync } from "node:fs";
        if (existsSync("slow")) setTimeout(() => { for (;;); }, 100);
        export default () => {};"#,
    );
    home.extension(
        "slow.ts",
        r#"import { existsSync, writeFileSync } from "node:fs";
        if (existsSync("slow")) await new Promise((done) => setTimeout(done, 1500));
        export default () => writeFileSync("slow", "");"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    let report = rpc.ok(json!({"type": "reload"})).await;
    assert_eq!(report["failed"].as_array().unwrap().len(), 1, "{report}");
    let failed = report["failed"][0]["path"].as_str().unwrap();
    assert!(failed.ends_with("/ext.ts"), "{report}");
    assert_eq!(report["loaded"].as_array().unwrap().len(), 1, "{report}");
}
