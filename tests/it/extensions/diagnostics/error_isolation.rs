//! Listeners and changes of one extension do not affect error reports of others.

use serde_json::Value;

use crate::support::{DEMO_NO_SESSION, Home, Rpc, prompt};

/// An extension that listens for errors and fails in ways that such listeners see.
fn extension(name: &str) -> String {
    format!(
        r#"export default (pi) => pi.registerCommand("{name}", {{ handler: async (what, ctx) => {{
            const heard = (error) => ctx.ui.notify("{name} heard " + error.message);
            if (what === "listens") {{
                process.on("uncaughtException", heard);
                process.once("unhandledRejection", heard);
                process.on("unhandledRejection", () => {{}});
            }} else if (what === "captures") {{
                process.removeAllListeners("uncaughtException");
                process.setUncaughtExceptionCaptureCallback(heard);
            }} else if (what === "rejects") {{
                Promise.reject(new Error("{name} rejects"));
            }} else {{
                setTimeout(() => {{ throw new Error("{name} " + what); }}, 1);
            }}
        }} }});"#
    )
}

fn reports(rpc: &Rpc) -> Vec<Value> {
    let lines = rpc.lines().into_iter();
    lines
        .filter(|line| line["type"] == "extension_error")
        .collect()
}

async fn reported(rpc: &mut Rpc, file: &str, text: &str) -> Value {
    rpc.wait(&format!("the report of {text:?}"), |line| {
        let path = line["extensionPath"].as_str().unwrap_or_default();
        line["type"] == "extension_error" && line["error"] == text && path.ends_with(file)
    })
    .await
}

/// An extension that listened for errors, as packages for logs do, suppressed the reports of all
/// others.
#[tokio::test]
async fn error_listeners_apply_to_their_own_extension() {
    let home = Home::bare();
    home.extension("a.ts", &extension("a"));
    home.extension("b.ts", &extension("b"));
    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    let say = |words: &str| prompt(&format!("/{words}"));

    rpc.ok(say("a listens")).await;
    // Failures of the listening extension are its own.
    for what in ["rejects", "throws"] {
        rpc.ok(say(&format!("a {what}"))).await;
        rpc.notified(&format!("a heard a {what}")).await;
    }
    for (what, line) in [("rejects", 11), ("throws", 13)] {
        rpc.ok(say(&format!("b {what}"))).await;
        let error = reported(&mut rpc, "/b.ts", &format!("b {what}")).await;
        assert_eq!(error["event"], "uncaught", "{error}");
        assert_eq!(error["location"]["line"], line, "{error}");
    }
    let heard = |line: &Value| line["message"] == "a heard b throws";
    assert!(
        rpc.lines().iter().any(heard),
        "a listener hears of all, as in Node"
    );

    rpc.ok(say("a captures")).await;
    rpc.ok(say("a throws again")).await;
    rpc.notified("a heard a throws again").await;
    rpc.ok(say("b throws again")).await;
    reported(&mut rpc, "/b.ts", "b throws again").await;

    // Each extension listens for itself.
    rpc.ok(say("b listens")).await;
    rpc.ok(say("b rejects")).await;
    rpc.notified("b heard b rejects").await;
    rpc.ok(say("a last")).await;
    rpc.notified("a heard a last").await;
    let reported_text = reports(&rpc);
    assert_eq!(reported_text.len(), 3, "{reported_text:#?}");
    assert_eq!(rpc.close().await.code(), Some(0));
}

/// Libraries that inspect call sites leave such functions behind.
#[tokio::test]
async fn source_positions_survive_changes_of_error_stacks() {
    let home = Home::bare();
    home.extension(
        "a.ts",
        r#"const written = {
            sites: (_, sites) => sites,
            text: () => "nothing",
            failing: () => { throw new Error("of no use"); },
        };
        export default (pi) => pi.registerCommand("a", {
            handler: async (how) => {
                Error.prepareStackTrace = written[how];
                if (how === "none") Error.stackTraceLimit = 0;
            } });"#,
    );
    home.extension(
        "b.ts",
        r#"export default (pi) => {
            pi.registerCommand("b", { handler: () => { undefined.here; } });
            pi.on("agent_end", async () => { null.there; });
            pi.on("before_agent_start", () => { throw new TypeError("no start"); });
        };"#,
    );
    let mut rpc = home.rpc(&DEMO_NO_SESSION);
    for how in ["nothing", "sites", "text", "failing", "none"] {
        rpc.ok(prompt(&format!("/a {how}"))).await;
        let from = rpc.lines().len();
        rpc.send(&prompt("/b").to_string()).await;
        rpc.event("extension_error").await;
        rpc.run("go").await;
        for (event, line) in [("command", 2), ("before_agent_start", 4), ("agent_end", 3)] {
            let is_it = |line: &Value| line["type"] == "extension_error" && line["event"] == event;
            let (_, error) = rpc
                .find(from, &format!("the report of {event}"), is_it)
                .await;
            let place = &error["location"];
            let file = place["file"].as_str().unwrap_or_default();
            assert!(
                file.ends_with("/b.ts") && place["line"] == line,
                "{how}: {error}"
            );
        }
    }
    assert_eq!(rpc.close().await.code(), Some(0));
}
