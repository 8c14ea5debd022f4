//! Extensions that take part in compactions.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use super::compact;
use crate::support::{Home, Rpc, pause, prompt};

async fn with(source: &str) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    home.extension("ext.ts", source);
    let mut rpc = home.rpc(&[]);
    for text in ["one", "two"] {
        server.push(Answer::text(&format!("About {text}.")));
        rpc.run(text).await;
    }
    (server, home, rpc)
}

fn compactions(home: &Home) -> Vec<Value> {
    let mut entries = home.entries();
    entries.retain(|entry| entry["type"] == "compaction");
    entries
}

#[tokio::test]
async fn a_handler_writes_the_summary() {
    let (server, home, mut rpc) = with(
        r#"export default (pi) => {
            pi.on("session_before_compact", (event, ctx) => {
                const { preparation: p, branchEntries, customInstructions, signal } = event;
                ctx.ui.notify(JSON.stringify({
                    summarize: p.messagesToSummarize.map((m) => m.role),
                    prefix: p.turnPrefixMessages.map((m) => m.role),
                    split: p.isSplitTurn, tokens: p.tokensBefore, settings: p.settings,
                    sets: [p.fileOps.read, p.fileOps.written, p.fileOps.edited]
                        .map((set) => set instanceof Set),
                    entries: branchEntries.map((e) => e.type),
                    kept: branchEntries.findIndex((e) => e.id === p.firstKeptEntryId),
                    customInstructions,
                    aborted: signal.aborted, live: signal instanceof AbortSignal,
                }));
                return { compaction: {
                    summary: "Mine.", firstKeptEntryId: p.firstKeptEntryId,
                    tokensBefore: p.tokensBefore, details: { by: "me" },
                } };
            });
            pi.on("session_compact", (event, ctx) => {
                const { compactionEntry: e, fromExtension } = event;
                ctx.ui.notify([e.type, e.summary, e.fromHook, fromExtension,
                    ctx.sessionManager.getLeafId() === e.id].join(" "));
            });
        }"#,
    )
    .await;
    let requested = server.requests().len();
    let command = json!({"type": "compact", "customInstructions": "that"});
    let result = rpc.ok(command).await;
    let seen = rpc.ui("notify").await;
    let seen: Value = serde_json::from_str(seen["message"].as_str().unwrap()).unwrap();
    assert_eq!(
        seen,
        json!({
            "summarize": ["user", "assistant"], "prefix": ["user"], "split": true, "tokens": 15,
            "settings": {"enabled": true, "reserveTokens": 16384, "keepRecentTokens": 1},
            "sets": [true, true, true],
            "entries": ["model_change", "thinking_level_change", "message", "message", "message",
                "message"],
            "kept": 5, "customInstructions": "that", "aborted": false, "live": true,
        })
    );
    rpc.notified("compaction Mine. true true true").await;
    assert_eq!(result["summary"], "Mine.");
    assert_eq!(result["details"], json!({"by": "me"}));
    assert_eq!(compactions(&home)[0]["details"], json!({"by": "me"}));
    assert_eq!(server.requests().len(), requested);
}

#[tokio::test]
async fn a_handler_cancels_the_compaction() {
    let (server, home, mut rpc) = with(
        r#"export default (pi) =>
            pi.on("session_before_compact", () => ({ cancel: true }));"#,
    )
    .await;
    assert_eq!(rpc.refused(compact()).await, "Compaction cancelled");
    let end = rpc.event("compaction_end").await;
    assert_eq!(end["aborted"], true);
    // An automatic compaction is cancelled, too.
    server.push(Answer::text("About three.").usage(190_000, 5));
    rpc.run("three").await;
    let end = rpc.event("compaction_end").await;
    assert_eq!(
        (&end["reason"], &end["aborted"]),
        (&json!("threshold"), &json!(true))
    );
    assert!(compactions(&home).is_empty());
}

#[tokio::test]
async fn a_waiting_handler_sees_the_abort() {
    let (_server, home, mut rpc) = with(
        r#"export default (pi) => pi.on("session_before_compact", async ({ signal }, ctx) => {
            ctx.ui.notify("waiting");
            await new Promise((resolve) => signal.addEventListener("abort", resolve));
            ctx.ui.notify("told");
            return { compaction: { summary: "too late" } };
        });"#,
    )
    .await;
    rpc.send(&json!({"type": "compact"}).to_string()).await;
    rpc.notified("waiting").await;
    rpc.ok(json!({"type": "abort"})).await;
    // pi does not wait for the handler.
    let mut awaited = vec!["compaction_end", "extension_ui_request"];
    while !awaited.is_empty() {
        let line = rpc
            .wait("the end and the notification", |line| {
                awaited.iter().any(|kind| line["type"] == *kind)
            })
            .await;
        assert!(
            line["aborted"] == true || line["message"] == "told",
            "{line}"
        );
        awaited.retain(|kind| line["type"] != *kind);
    }
    assert!(compactions(&home).is_empty());
}

#[tokio::test]
async fn an_unusable_result_is_reported() {
    let (server, home, mut rpc) = with(
        r#"export default (pi) => pi.on("session_before_compact", () =>
            ({ compaction: { summary: 7 } }));"#,
    )
    .await;
    server.repeat(Answer::text("The summary."));
    rpc.ok(compact()).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["event"], "session_before_compact");
    let summary = compactions(&home)[0]["summary"].clone();
    assert!(
        summary.as_str().unwrap().starts_with("The summary."),
        "{summary}"
    );
}

#[tokio::test]
async fn a_slash_command_starts_a_compaction() {
    let (server, home, mut rpc) = with(
        r#"export default (pi) => pi.registerCommand("shorten", {
            handler: (args, ctx) => ctx.compact({
                customInstructions: args,
                onComplete: (result) => ctx.ui.notify(`done: ${result.summary}`),
                onError: (error) => ctx.ui.notify(`${error instanceof Error}: ${error.message}`),
            }),
        });"#,
    )
    .await;
    server.push(Answer::text("History."));
    server.push(Answer::text("Prefix."));
    rpc.ok(prompt("/shorten the docs")).await;
    rpc.event("compaction_end").await;
    let done = rpc.ui("notify").await;
    assert!(
        done["message"]
            .as_str()
            .unwrap()
            .starts_with("done: History."),
        "{done}"
    );
    let request = server.requests()[2].body.to_string();
    assert!(request.contains("Additional focus: the docs"), "{request}");
    assert_eq!(compactions(&home).len(), 1);
    rpc.ok(prompt("/shorten")).await;
    rpc.notified("true: Already compacted").await;
}

#[tokio::test]
async fn a_message_during_a_compaction_is_answered_after_it() {
    let (server, _home, mut rpc) = with(
        r#"export default (pi) => pi.on("session_before_compact", () => {
            pi.sendMessage({ customType: "note", content: "go on", display: true },
                { triggerTurn: true });
            return { compaction: { summary: "Mine." } };
        });"#,
    )
    .await;
    server.push(Answer::text("Going on."));
    rpc.ok(compact()).await;
    rpc.event("compaction_end").await;
    rpc.event("agent_end").await;
    let request = server.last_request().body.to_string();
    assert!(
        request.contains("Mine.") && request.contains("go on"),
        "{request}"
    );
}

#[tokio::test]
async fn the_examples_of_the_original_work() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    home.example("custom-compaction.ts");
    home.example("trigger-compact.ts");
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("About one."));
    rpc.run("one").await;
    server.repeat(Answer::text("The summary."));
    rpc.ok(prompt("/trigger-compact")).await;
    rpc.notified("Compaction started").await;
    rpc.notified("Custom compaction extension triggered").await;
    // The model that the example chooses has no key.
    rpc.wait("a warning", |line| line["notifyType"] == "warning")
        .await;
    rpc.notified("Compaction completed").await;
    assert_eq!(compactions(&home).len(), 1);
}

/// Reports the parts of a session in the original and here.
const PARTS: &str = include_str!("fixtures/extensions.ts");

#[tokio::test]
async fn the_parts_equal_the_original_s() {
    let (server, home, mut rpc) = with(PARTS).await;
    server.push(Answer::tool("read", json!({"path": "missing.txt"})));
    server.push(Answer::text("It is not there."));
    rpc.run("read it").await;
    rpc.ok(prompt("/parts")).await;
    let ours = rpc.ui("notify").await["message"].clone();
    assert!(rpc.close().await.success());
    let mut original = home.original_rpc(&["-c"]);
    original.ok(prompt("/parts")).await;
    let theirs = original.ui("notify").await["message"].clone();
    let parse = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap();
    assert_eq!(parse(&ours), parse(&theirs));
}

#[tokio::test]
async fn a_handler_summarises_with_a_model_of_its_choice() {
    let (server, home, mut rpc) = with(
        r#"import { compact, generateSummary } from "@mariozechner/pi-coding-agent";
        export default (pi) => pi.on("session_before_compact", async (event, ctx) => {
            const { preparation, customInstructions, signal } = event;
            const model = { ...ctx.model, maxTokens: 77 };
            const compaction = await compact(
                preparation, model, "its-key", { "x-mine": "yes" }, customInstructions, signal);
            const more = await generateSummary(preparation.turnPrefixMessages, model, 1000, "k");
            return { compaction: { ...compaction, summary: `${compaction.summary} + ${more}` } };
        });"#,
    )
    .await;
    for text in ["History.", "Prefix.", "More."] {
        server.push(Answer::text(text));
    }
    let command = json!({"type": "compact", "customInstructions": "the docs"});
    let result = rpc.ok(command).await;
    let summary = result["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("History.") && summary.ends_with("Prefix. + More."),
        "{summary}"
    );
    let request = &server.requests()[2];
    assert_eq!(request.headers["x-api-key"], "its-key");
    assert_eq!(request.headers["x-mine"], "yes");
    assert!(
        request
            .body
            .to_string()
            .contains("Additional focus: the docs")
    );
    assert_eq!(compactions(&home)[0]["fromHook"], true);
}

/// A published extension still calls with the older arguments: its signal was sent as the focus,
/// which failed.
#[tokio::test]
async fn a_handler_may_call_with_the_arguments_of_old_versions() {
    let (server, home, mut rpc) = with(
        r#"import { compact } from "@mariozechner/pi-coding-agent";
        export default (pi) => pi.on("session_before_compact", async ({ preparation, signal }, ctx) =>
          ({ compaction: await compact(preparation, ctx.model, "its-key", "the tests", signal) }));"#,
    )
    .await;
    for text in ["History.", "Prefix."] {
        server.push(Answer::text(text));
    }
    rpc.ok(compact()).await;
    let requests = server.requests();
    let focused = requests.iter().filter(|request| {
        request.headers["x-api-key"] == "its-key"
            && request
                .body
                .to_string()
                .contains("Additional focus: the tests")
    });
    assert!(focused.count() > 0);
    assert_eq!(compactions(&home)[0]["fromHook"], true);
}

/// Later arguments were ignored, and models of an extension's own API could not be asked at all.
#[tokio::test]
async fn arguments_of_newer_versions_count() {
    let (server, _home, mut rpc) = with(
        r#"import { createAssistantMessageEventStream, streamSimple } from "@earendil-works/pi-ai";
        import { compact, generateSummary } from "@earendil-works/pi-coding-agent";
        const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
        const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost };
        const said = (model, text) => {
          const stream = createAssistantMessageEventStream();
          const message = { role: "assistant", content: [{ type: "text", text }], api: model.api, provider: model.provider,
            model: model.id, usage, stopReason: "stop", timestamp: Date.now() };
          stream.push({ type: "done", reason: "stop", message });
          stream.end(message);
          return stream;
        };
        export default (pi) => {
          pi.registerProvider("own", { baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "own-api",
            models: [{ id: "m", name: "m", reasoning: false, input: ["text"], cost, contextWindow: 9000, maxTokens: 99 }],
            streamSimple: (model) => said(model, "By my own.") });
          pi.on("session_before_compact", async ({ preparation }, ctx) => {
            const asked = [], retries = [];
            const model = { ...ctx.model, reasoning: true };
            const streamFn = (model, context, { maxTokens, reasoning, apiKey, sessionId }) => {
              asked.push([context.messages.length, context.systemPrompt.length > 0, maxTokens, reasoning ?? null, apiKey, sessionId]);
              return said(model, "Asked.");
            };
            const messages = preparation.messagesToSummarize;
            const mine = await generateSummary(messages, model, 1000, "k", {}, undefined, "", "", "low", streamFn, {}, undefined, undefined, "s1");
            const own = await generateSummary(messages, ctx.modelRegistry.find("own", "m"), 1000, undefined);
            const retry = { enabled: true, maxRetries: 2, baseDelayMs: 1 };
            const callbacks = {
              onRetryScheduled: (attempt, most, delay, error) => retries.push([attempt, most, delay, error.includes("busy")]),
              onRetryAttemptStart: () => retries.push("start"),
              onRetryFinished: (...done) => retries.push(done),
            };
            const again = await generateSummary(messages, model, 1000, "k", {}, undefined, "", "", "off", undefined, {}, retry, callbacks);
            const broken = await compact(preparation, model, "k", {}, "", undefined, "off",
              () => { throw new Error("no such luck"); }).catch(({ message }) => message);
            ctx.ui.notify(JSON.stringify({ asked, mine, own, again, retries, broken }));
            return { cancel: true };
          });
        };"#,
    )
    .await;
    server.push(Answer::error(529, "busy").with_header("x-should-retry", "false"));
    server.push(Answer::text("At last."));
    let known = server.requests().len();
    rpc.refused(compact()).await;
    let output = rpc.ui("notify").await["message"].clone();
    let output: Value = serde_json::from_str(output.as_str().unwrap()).unwrap();
    let expected = json!({
        "asked": [[1, true, 800, "low", "k", "s1"]],
        "mine": "Asked.", "own": "By my own.", "again": "At last.",
        "retries": [[1, 2, 1, true], "start", [true, 1]],
        "broken": "Summarization failed: no such luck",
    });
    assert_eq!(output, expected);
    assert_eq!(server.requests().len(), known + 2);
}

#[tokio::test]
async fn settings_of_a_model_choose_its_compaction() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let overrides =
        json!({"scripted/scripted-1": {"keepRecentTokens": 1}, "a/b": {"reserveTokens": 1}});
    home.settings(json!({"compaction": {"modelOverrides": overrides}}));
    home.extension(
        "ext.ts",
        r#"export default (pi) => pi.on("session_before_compact", ({ preparation }, ctx) => {
          ctx.ui.notify(JSON.stringify(preparation.settings));
          return { cancel: true };
        });"#,
    );
    let mut rpc = home.rpc(&[]);
    for text in ["one", "two"] {
        server.push(Answer::text(&format!("About {text}.")));
        rpc.run(text).await;
    }
    rpc.refused(compact()).await;
    rpc.notified(r#"{"enabled":true,"reserveTokens":16384,"keepRecentTokens":1}"#)
        .await;
}

#[tokio::test]
async fn an_abort_reaches_the_model_of_an_extension() {
    let (server, home, mut rpc) = with(
        r#"import { compact } from "@mariozechner/pi-coding-agent";
        export default (pi) => pi.on("session_before_compact", async (event, ctx) => {
            const { preparation, signal } = event;
            try {
                await compact(preparation, ctx.model, "key", undefined, undefined, signal);
            } catch (error) {
                ctx.ui.notify(`ended: ${error.message}`);
            }
        });"#,
    )
    .await;
    server.repeat(Answer::stall());
    rpc.send(&json!({"type": "compact"}).to_string()).await;
    server.received(3).await;
    rpc.ok(json!({"type": "abort"})).await;
    rpc.notified("ended: cancelled").await;
    server.hung_up(1).await;
    assert!(compactions(&home).is_empty());
}

#[tokio::test]
async fn pi_summarises_after_a_handler_has_failed() {
    let (server, home, mut rpc) = with(
        r#"export default (pi) => {
            pi.on("session_before_compact", () => { throw new Error("not me"); });
            pi.on("session_compact", () => { throw new Error("nor me"); });
        };"#,
    )
    .await;
    server.repeat(Answer::text("The summary."));
    rpc.ok(compact()).await;
    for (event, text) in [
        ("session_before_compact", "not me"),
        ("session_compact", "nor me"),
    ] {
        let error = rpc.event("extension_error").await;
        assert_eq!(error["event"], event);
        assert!(error["error"].as_str().unwrap().contains(text), "{error}");
    }
    assert_eq!(compactions(&home)[0]["fromHook"], false);
}

#[tokio::test]
async fn an_example_compacts_in_the_middle_of_a_run() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    home.example("trigger-compact.ts");
    // The example's handler of `turn_end` is not awaited; this handler runs after it.
    home.extension(
        "zz.ts",
        r#"export default (pi) => pi.on("turn_end", (event, ctx) => ctx.ui.notify("turn seen"));"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("About one.").usage(90_000, 5));
    rpc.ok(prompt("one")).await;
    rpc.notified("turn seen").await;
    while rpc.ok(json!({"type": "get_state"})).await["isStreaming"] == true {
        pause(10).await;
    }
    server.push(Answer::tool("bash", json!({"command": "true"})).usage(110_000, 5));
    // Whether the run continues is decided by the handler of `turn_end`.
    server.repeat(Answer::stall());
    server.answer_by(|request| {
        let requested = request.body.to_string();
        requested
            .contains("<conversation>")
            .then(|| Answer::text("The summary."))
    });
    rpc.ok(prompt("two")).await;
    rpc.notified("Compaction started").await;
    let end = rpc.event("compaction_end").await;
    assert_eq!(
        (&end["reason"], &end["aborted"]),
        (&json!("manual"), &json!(false))
    );
    rpc.notified("Compaction completed").await;
    assert_eq!(compactions(&home).len(), 1);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["isStreaming"], false);
}
