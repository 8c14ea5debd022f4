//! Extensions that misbehave: the next prompt is answered, and the extension is named.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::hostile::blamed;
use crate::support::{Home, Rpc, prompt, with_extension};

async fn answers_the_next_prompt(server: &ModelServer, rpc: &mut Rpc) {
    server.push(Answer::text("Still here."));
    assert_eq!(rpc.answer_to("are you there?").await, "Still here.");
}

#[tokio::test]
async fn an_endless_loop_in_a_handler() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.on("before_agent_start", () => { for (;;); });"#,
    )
    .await;
    server.push(Answer::text("Anyway."));
    rpc.send(&prompt("go").to_string()).await;
    // On a busy machine another report comes first: the loop holds the thread of all extensions.
    assert_eq!(
        blamed(&mut rpc, &["stopped"]).await["event"],
        "before_agent_start"
    );
    rpc.event("agent_end").await;
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn a_loop_that_allocates() {
    let source = r#"export default (pi) => pi.on("before_agent_start", () => {
        const all = []; for (;;) all.push(new Array(1000).fill(0));
    });"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    server.push(Answer::text("Anyway."));
    rpc.send(&prompt("go").to_string()).await;
    assert_eq!(blamed(&mut rpc, &[]).await["event"], "before_agent_start");
    rpc.event("agent_end").await;
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn a_promise_that_never_settles() {
    let source =
        r#"export default (pi) => pi.on("before_agent_start", () => new Promise(() => {}));"#;
    let (server, _home, mut rpc) = attacked_within(json!({"handler": 2000}), source).await;
    server.push(Answer::text("Anyway."));
    rpc.send(&prompt("go").to_string()).await;
    assert_eq!(blamed(&mut rpc, &[]).await["event"], "before_agent_start");
    rpc.event("agent_end").await;
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn a_hanging_gate_blocks_its_tool_and_can_be_aborted() {
    let source = r#"export default (pi) => pi.on("tool_call", (event, ctx) => {
        ctx.ui.notify("hanging");
        return new Promise(() => {});
    });"#;
    let (server, home, mut rpc) = attacked_within(json!({"handler": 5000}), source).await;
    let touch = || Answer::tool("bash", json!({"command": "touch ran"}));
    server.push(touch());
    rpc.ok(prompt("go")).await;
    rpc.notified("hanging").await;
    rpc.ok(json!({"type": "abort"})).await;
    let reported = rpc.lines();
    let reported = reported
        .iter()
        .any(|line| line["type"] == "extension_error");
    assert!(!reported, "abort did not wait for the deadline");

    server.push(touch());
    server.push(Answer::text("Blocked."));
    rpc.ok(prompt("again")).await;
    rpc.notified("hanging").await;
    blamed(&mut rpc, &[]).await;
    let result = rpc.event("tool_execution_end").await;
    assert_eq!(result["isError"], true);
    rpc.event("agent_end").await;
    assert!(!home.cwd().join("ran").exists());
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn a_throw_in_a_timer_is_reported() {
    let source = r#"export default (pi) => pi.on("session_start", () => {
        setTimeout(() => { throw new Error("from a timer"); }, 20);
    });"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    let error = blamed(&mut rpc, &["from a timer"]).await;
    let text = error["stack"].as_str().unwrap();
    assert!(text.contains("ext.ts:2"), "it says where: {text}");
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn process_exit_is_refused() {
    let source = r#"export default (pi) => {
        pi.on("session_start", () => { setTimeout(() => process.exit(3), 20); });
        pi.on("before_agent_start", () => { process.exit(4); });
    };"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    blamed(&mut rpc, &["process.exit"]).await;
    answers_the_next_prompt(&server, &mut rpc).await;
    answers_the_next_prompt(&server, &mut rpc).await;
    assert_eq!(rpc.close().await.code(), Some(0));
}

#[tokio::test]
async fn output_of_extensions_does_not_reach_stdout() {
    let source = r#"import { execSync, spawnSync } from "node:child_process";
        import fs from "node:fs";
        export default (pi) => {
            console.log("LOUD console");
            pi.on("before_agent_start", () => {
                process.stdout.write("LOUD stdout\n");
                console.table([{ LOUD: 1 }]);
                fs.writeSync(1, "LOUD descriptor\n");
                execSync("echo LOUD child", { stdio: "inherit" });
                spawnSync("sh", ["-c", "echo LOUD spawned"], { stdio: ["ignore", 1, 2] });
            });
        };"#;
    let (server, home, mut rpc) = with_extension(source).await;
    answers_the_next_prompt(&server, &mut rpc).await;
    // Each line is parsed as JSON when it arrives.
    let lines = rpc.raw_lines();
    assert!(!lines.iter().any(|line| line.contains("LOUD")), "{lines:?}");
    while !["console", "stdout", "descriptor", "child", "spawned"]
        .iter()
        .all(|word| rpc.stderr().contains(&format!("LOUD {word}")))
    {
        crate::support::pause(10).await;
    }
    rpc.close().await;
    server.push(Answer::text("Quiet."));
    assert_eq!(home.run(&["-p", "go"], "").await.ok(), "Quiet.\n");
}

#[tokio::test]
async fn an_unhandled_rejection_is_reported() {
    let source = r#"export default (pi) => pi.on("session_start", () => {
        Promise.reject(new Error("nobody listens"));
    });"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    blamed(&mut rpc, &["nobody listens"]).await;
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn each_unhandled_rejection_is_reported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    for name in ["one", "two"] {
        let source = r#"export default (pi) => pi.events.on("now", () => {
            for (const what of ["first", "second"]) {
                void (async () => { await 0; throw new Error(`${what} of NAME`); })();
            }
        });"#;
        home.extension(&format!("{name}.ts"), &source.replace("NAME", name));
    }
    home.extension(
        "start.ts",
        r#"export default (pi) => pi.registerCommand("now", { handler: () => pi.events.emit("now", {}) });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/now")).await;
    let reported = |what: &'static str, name: &'static str| {
        move |line: &Value| {
            let path = line["extensionPath"].as_str().unwrap_or_default();
            let error = line["error"].as_str().unwrap_or_default();
            path.ends_with(&format!("{name}.ts")) && error.contains(&format!("{what} of {name}"))
        }
    };
    for name in ["one", "two"] {
        for what in ["first", "second"] {
            if !rpc.lines().iter().any(reported(what, name)) {
                rpc.wait(what, reported(what, name)).await;
            }
        }
    }
}

#[tokio::test]
async fn a_syntax_error_is_reported() {
    let (server, _home, mut rpc) =
        with_extension("export default (pi) => {\n  const x = ;\n};").await;
    let error = blamed(&mut rpc, &["ext.ts:2"]).await;
    assert_eq!(error["event"], "load");
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn a_broken_extension_does_not_stop_print_mode() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext.ts", "export default (pi) => {\n  const x = ;\n};");
    server.push(Answer::text("Fine."));
    let finished = home.run(&["-p", "go"], "").await;
    let error = finished.stderr.clone();
    assert_eq!(finished.ok(), "Fine.\n");
    assert!(error.contains("ext.ts:2"), "{error}");
}

#[tokio::test]
async fn a_missing_module_is_reported() {
    let (server, home, mut rpc) =
        with_extension("import './lib/nowhere.js';\nexport default () => {};").await;
    blamed(&mut rpc, &["nowhere.js"]).await;
    answers_the_next_prompt(&server, &mut rpc).await;
    // Once the file exists, the extension loads.
    home.extension("lib/nowhere.ts", "export {};");
    rpc.ok(json!({"type": "reload"})).await;
    rpc.close().await;
    server.push(Answer::text("Whole."));
    let finished = home.run(&["-p", "go"], "").await;
    // The line about new files of the user names lib/nowhere.ts.
    assert!(!finished.stderr.contains("nowhere.js"), "{finished:?}");
}

#[tokio::test]
async fn other_extensions_go_on() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("broken.ts", "export const nothing = 1;");
    home.extension(
        "throws.ts",
        r#"export default () => { throw new Error("not today"); };"#,
    );
    let good = r#"export default (pi) => pi.registerCommand("good", { handler: async (args, ctx) =>
        ctx.ui.notify("good " + args) });"#;
    home.extension("good.ts", good);
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/good day")).await;
    rpc.notified("good day").await;
    let lines = rpc.lines();
    let errors = lines
        .iter()
        .filter(|line| line["type"] == "extension_error");
    let mut blamed: Vec<&str> = errors
        .filter_map(|error| error["extensionPath"].as_str()?.rsplit('/').next())
        .collect();
    blamed.sort_unstable();
    assert_eq!(blamed, ["broken.ts", "throws.ts"]);
}

/// [`with_extension`], with these `extensionTimeouts`.
async fn attacked_within(timeouts: Value, source: &str) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionTimeouts": timeouts }));
    home.extension("ext.ts", source);
    let rpc = home.rpc(&[]);
    (server, home, rpc)
}

fn errors(rpc: &Rpc) -> Vec<Value> {
    let lines = rpc.lines().into_iter();
    lines
        .filter(|line| line["type"] == "extension_error")
        .collect()
}

#[tokio::test]
async fn huge_and_fractional_timeouts_are_accepted() {
    let source = r#"export default (pi) => pi.registerCommand("go", { handler: async (args, ctx) => {
        const { code } = await pi.exec("sh", ["-c", "exit 3"], { timeout: 1e30 });
        const sure = await ctx.ui.confirm("Sure?", "", { timeout: 1e30 });
        const late = await ctx.ui.confirm("Late?", "", { timeout: "20.5" });
        ctx.ui.notify([code, sure, late].join(" "));
    }});"#;
    let (_server, _home, mut rpc) = with_extension(source).await;
    rpc.send(&prompt("/go").to_string()).await;
    let question = rpc.wait("Sure?", |line| line["title"] == "Sure?").await;
    rpc.reply(&question, json!({"confirmed": true})).await;
    rpc.notified("3 true false").await;
}

#[tokio::test]
async fn a_hanging_queued_handler_costs_its_deadline_once() {
    let source = r#"export default (pi) => {
        pi.on("message_update", () => new Promise(() => {}));
        pi.on("before_agent_start", () => {});
    };"#;
    let (server, _home, mut rpc) = attacked_within(json!({"handler": 300}), source).await;
    for _ in 0..2 {
        server.push(Answer::deltas(4, "word "));
        rpc.run("go").await;
    }
    answers_the_next_prompt(&server, &mut rpc).await;
    let errors = errors(&rpc);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["event"], "message_update");
}

#[tokio::test]
async fn an_abandoned_handler_is_called_again_once_it_has_settled() {
    let source = r#"export default (pi) => {
        let settle;
        pi.on("agent_start", (event, ctx) => {
            if (settle) return ctx.ui.notify("called again");
            return new Promise((resolve) => { settle = resolve; });
        });
        pi.registerCommand("settle", { handler: async () => settle() });
    };"#;
    let (server, _home, mut rpc) = attacked_within(json!({"handler": 200}), source).await;
    answers_the_next_prompt(&server, &mut rpc).await;
    blamed(&mut rpc, &["pi continues without it"]).await;
    answers_the_next_prompt(&server, &mut rpc).await;
    assert!(
        !rpc.lines()
            .iter()
            .any(|line| line["message"] == "called again")
    );
    rpc.ok(prompt("/settle")).await;
    server.push(Answer::text("Again."));
    rpc.ok(prompt("go")).await;
    rpc.notified("called again").await;
    assert_eq!(errors(&rpc).len(), 1);
}

#[tokio::test]
async fn waiting_in_the_queue_does_not_lengthen_a_deadline() {
    let source = r#"export default (pi) => {
        pi.registerCommand("ask", { handler: async (args, ctx) => {
            await ctx.ui.confirm("Sure?", "", { timeout: 1500 });
            ctx.ui.notify("asked");
        }});
        pi.on("agent_start", () => new Promise((resolve) => setTimeout(resolve, 1000)));
        pi.on("before_agent_start", () => {});
    };"#;
    let (server, _home, mut rpc) = attacked_within(json!({"handler": 200}), source).await;
    rpc.ok(prompt("/ask")).await;
    rpc.notified("asked").await;
    answers_the_next_prompt(&server, &mut rpc).await;
    blamed(&mut rpc, &["pi continues without it"]).await;
}

#[tokio::test]
async fn a_dialog_at_shutdown_does_not_delay_the_end() {
    let source = r#"export default (pi) => {
        pi.on("agent_start", (event, ctx) => ctx.ui.confirm("Before?", ""));
        pi.on("session_shutdown", async (event, ctx) => {
            console.log("answer " + await ctx.ui.confirm("Really?", ""));
        });
    };"#;
    let (server, _home, mut rpc) = with_extension(source).await;
    server.push(Answer::text("Fine."));
    rpc.ok(prompt("go")).await;
    rpc.wait("Before?", |line| line["title"] == "Before?").await;
    rpc.close_stdin();
    assert_eq!(rpc.end().await.code(), Some(0));
    assert!(rpc.stderr().contains("answer false"), "{}", rpc.stderr());
}

#[tokio::test]
async fn an_endless_loop_at_the_end_of_a_reload() {
    let source = r#"export default (pi) => {
        pi.on("session_shutdown", () => { for (;;); });
        pi.on("session_start", (event, ctx) => ctx.ui.notify("start " + event.reason));
    };"#;
    let timeouts = json!({"spin": 2000, "shutdown": 5000});
    let (server, _home, mut rpc) = attacked_within(timeouts, source).await;
    rpc.notified("start startup").await;
    rpc.ok(json!({"type": "reload"})).await;
    let starts = |rpc: &Rpc| {
        let lines = rpc.lines().into_iter();
        lines
            .filter_map(|line| line["message"].as_str().map(str::to_owned))
            .filter(|text| text.starts_with("start"))
            .collect::<Vec<_>>()
    };
    answers_the_next_prompt(&server, &mut rpc).await;
    assert_eq!(starts(&rpc), ["start startup", "start reload"]);
    let is_error = |line: &Value| line["type"] == "extension_error";
    let (_, error) = rpc.find(0, "the report of the loop", is_error).await;
    assert_eq!(error["event"], "session_shutdown");
    assert_eq!(errors(&rpc), [error]);
}

#[tokio::test]
async fn an_abort_does_not_withhold_session_start_from_others() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "a.ts",
        r#"export default (pi) => pi.on("session_start", (event, ctx) => {
            if (event.reason !== "new") return;
            ctx.ui.notify("hanging");
            return new Promise(() => {});
        });"#,
    );
    home.extension(
        "b.ts",
        r#"export default (pi) => pi.on("session_start", (event, ctx) => {
            ctx.ui.notify("restored " + event.reason);
        });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.notified("restored startup").await;
    rpc.send(r#"{"type":"new_session"}"#).await;
    rpc.notified("hanging").await;
    rpc.ok(json!({"type": "abort"})).await;
    rpc.notified("restored new").await;
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn a_duplicate_tool_name_is_reported_at_the_start() {
    let tool = r#"export default (pi) => pi.registerTool({ name: "mine", label: "m", description: "d",
        parameters: { type: "object", properties: {} }, execute: async () => ({ content: [] }) });"#;
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("earlier.ts", tool);
    home.extension("ext.ts", tool);
    let mut rpc = home.rpc(&[]);
    let warning = rpc.event("extension_warning").await;
    let text = warning["message"].as_str().unwrap();
    for word in ["mine", "earlier.ts", "conflicts"] {
        assert!(text.contains(word), "{warning}");
    }
    let path = warning["extensionPath"].as_str().unwrap();
    assert!(path.ends_with("ext.ts"), "{warning}");
}

#[tokio::test]
async fn a_command_outlives_the_session_that_it_replaced() {
    let source = r#"export default (pi) => {
        pi.on("session_start", async (event) => {
            if (event.reason === "new") await new Promise((resolve) => setTimeout(resolve, 2500));
        });
        pi.registerCommand("next", { handler: async (args, ctx) => {
            console.log("result " + JSON.stringify(await ctx.newSession()));
        }});
    };"#;
    let (_server, _home, mut rpc) = attacked_within(json!({"shutdown": 1500}), source).await;
    rpc.ok(prompt("/next")).await;
    rpc.close_stdin();
    rpc.end().await;
    assert!(
        rpc.stderr().contains(r#"result {"cancelled":false}"#),
        "{}",
        rpc.stderr()
    );
}

#[tokio::test]
async fn a_stop_is_reported_after_more_reports_than_fit() {
    let source = r#"export default (pi) => pi.on("before_agent_start", () => {
        for (let i = 0; i < 5000; i++) { try { process.exit(1); } catch {} }
        for (;;);
    });"#;
    let (server, _home, mut rpc) = attacked_within(json!({"spin": 1000}), source).await;
    server.push(Answer::text("Anyway."));
    rpc.run("go").await;
    let is_quarantined = |error: &Value| error["error"].as_str().unwrap().contains("quarantined");
    while !errors(&rpc).iter().any(is_quarantined) {
        crate::support::pause(10).await;
    }
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn a_session_is_replaced_while_an_extension_spins() {
    let source = r#"export default (pi) => {
        pi.on("before_agent_start", (event, ctx) => {
            if (event.prompt !== "spin") return;
            ctx.ui.notify("spinning");
            return new Promise(() => setTimeout(() => { for (;;); }, 50));
        });
        pi.on("session_start", (event, ctx) => ctx.ui.notify("start " + event.reason));
    };"#;
    let (server, _home, mut rpc) = attacked_within(json!({"spin": 2000}), source).await;
    rpc.send(&prompt("spin").to_string()).await;
    rpc.notified("spinning").await;
    rpc.ok(json!({"type": "new_session"})).await;
    let started = |line: &Value| line["message"] == "start new";
    if !rpc.lines().iter().any(started) {
        rpc.notified("start new").await;
    }
    answers_the_next_prompt(&server, &mut rpc).await;
}

#[tokio::test]
async fn an_abort_frees_a_run_that_waits_for_the_full_queue() {
    let source = r#"export default (pi) => pi.on("message_update", (event, ctx) => {
        ctx.ui.notify("hanging");
        return new Promise(() => {});
    });"#;
    let (server, _home, mut rpc) = attacked_within(json!({"handler": 600_000}), source).await;
    server.push(Answer::deltas(4000, "word "));
    rpc.ok(prompt("go")).await;
    rpc.notified("hanging").await;
    // The stream stops, because the handler blocks the events after it.
    let mut seen = 0;
    while seen != rpc.raw_lines().len() {
        seen = rpc.raw_lines().len();
        crate::support::pause(300).await;
    }
    let ended = |line: &Value| line["type"] == "agent_end";
    assert!(!rpc.lines().iter().any(ended));
    rpc.ok(json!({"type": "abort"})).await;
    rpc.event("agent_end").await;
}

/// The second extension was blamed, because its handler ran last.
#[tokio::test]
async fn a_throw_in_a_timer_is_attributed_to_its_extension() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "a.ts",
        r#"export default (pi) => pi.on("session_start", () => {
            setTimeout(() => { throw new Error("from a timer"); }, 100);
        });"#,
    );
    home.extension(
        "b.ts",
        r#"export default (pi) => pi.on("session_start", () => {});"#,
    );
    home.extension("c.ts", r#"throw new Error("at the top");"#);
    let mut rpc = home.rpc(&[]);
    rpc.wait("the timer's error", |line| {
        line["error"]
            .as_str()
            .is_some_and(|error| error.contains("from a timer"))
    })
    .await;
    let reported: Vec<(String, String)> = errors(&rpc)
        .iter()
        .map(|error| {
            let path = error["extensionPath"].as_str().unwrap().rsplit('/');
            let event = error["event"].as_str().unwrap();
            (path.take(1).collect(), event.to_string())
        })
        .collect();
    let expected = [("c.ts", "load"), ("a.ts", "uncaught")];
    assert_eq!(
        reported,
        expected.map(|(path, event)| (path.to_string(), event.to_string()))
    );
}
