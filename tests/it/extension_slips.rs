//! What extensions do without a second thought: cut a text in the middle of an emoji,
//! leave an argument out, throw a string, go on after the session was replaced. It
//! works, or says what is wrong in words of the extension's.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, blocks, prompt, text_of, with_extension};

const HALVES: &str = r#"
import { createAssistantMessageEventStream } from "@mariozechner/pi-ai";
const S = "cut \ud83d";
const parameters = { type: "object", properties: {} };

function streamSimple(model) {
  const stream = createAssistantMessageEventStream();
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const partial = { role: "assistant", content: [{ type: "text", text: "" }], api: model.api,
    provider: model.provider, model: model.id, stopReason: "stop", timestamp: Date.now(),
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost } };
  stream.push({ type: "start", partial });
  stream.push({ type: "text_start", contentIndex: 0, partial });
  for (const delta of ["hi \ud83d", "\ude00 and \ud83d", "x"]) {
    partial.content[0].text += delta;
    stream.push({ type: "text_delta", contentIndex: 0, delta, partial });
  }
  stream.push({ type: "text_end", contentIndex: 0, content: partial.content[0].text, partial });
  stream.push({ type: "done", reason: "stop", message: partial });
  stream.end();
  return stream;
}

export default function (pi) {
  const model = { id: "m", name: "M", reasoning: false, input: ["text"], contextWindow: 200000,
    maxTokens: 9999, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
  pi.registerProvider("split", { baseUrl: "http://x", apiKey: "k", api: "split", models: [model], streamSimple });
  pi.registerTool({ name: "cut", label: S, description: "Cuts " + S, parameters,
    execute: async () => ({ content: [{ type: "text", text: S }], details: { S, [S]: "\\ud83d" } }) });
  pi.on("tool_result", ({ content }) => ({ content: [...content, { type: "text", text: S }] }));
  pi.on("input", ({ text }) => text === "go" ? { action: "transform", text: "go " + S } : undefined);
  pi.on("before_agent_start", ({ systemPrompt }) => ({ systemPrompt: systemPrompt + S,
    message: { customType: "c", content: S, display: true, details: { S } } }));
  pi.on("context", ({ messages }) => ({ messages: [...messages, { role: "user", content: S, timestamp: 1 }] }));
  pi.registerCommand("say", { handler: async (_, ctx) => {
    ctx.ui.setStatus("k", S);
    ctx.ui.setWidget("w", [S]);
    const chosen = await ctx.ui.select(S, [S]);
    const { stdout } = await pi.exec("echo", [S]);
    pi.appendEntry("t", { S });
    pi.sendMessage({ customType: "c", content: S, display: true });
    pi.setSessionName(S);
    pi.setLabel(ctx.sessionManager.getLeafId(), S);
    ctx.ui.notify([chosen, stdout.trim(), S].join());
  } });
}
"#;

#[tokio::test]
async fn half_an_emoji_breaks_nothing() {
    let (server, home, mut rpc) = with_extension(HALVES).await;
    let cut = "cut \u{fffd}";
    server.push(Answer::tool("cut", json!({})));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    let errors = events.iter().filter(|one| one["type"] == "extension_error");
    assert_eq!(errors.count(), 0, "{events:#?}");
    let end = |one: &&Value| one["type"] == "tool_execution_end";
    let result = &events.iter().find(end).unwrap()["result"];
    assert_eq!(text_of(result), format!("{cut}{cut}"));
    assert_eq!(result["details"], json!({"S": cut, cut: "\\ud83d"}));
    let first = server.requests()[0].body.to_string();
    // Tool, prompt, instructions, the handler's message and the one for the model alone.
    assert_eq!(first.matches(cut).count(), 5, "{first}");

    rpc.send(r#"{"type": "prompt", "message": "/say", "id": "\ud83d"}"#)
        .await;
    assert_eq!(rpc.ui("setStatus").await["statusText"], cut);
    assert_eq!(rpc.ui("setWidget").await["widgetLines"], json!([cut]));
    let question = rpc.ui("select").await;
    assert_eq!(question["options"], json!([cut]));
    rpc.reply(&question, json!({"value": cut})).await;
    rpc.notified(&[cut; 3].join(",")).await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["sessionName"], cut);

    rpc.ok(json!({"type": "set_model", "provider": "split", "modelId": "m"}))
        .await;
    let events = rpc.run("stream").await;
    let deltas = events
        .iter()
        .filter_map(|one| one["assistantMessageEvent"]["delta"].as_str());
    assert_eq!(deltas.collect::<String>(), "hi \u{1f600} and \u{fffd}x");
    let answer = &events.last().unwrap()["messages"];
    let answer = answer.as_array().unwrap().last().unwrap();
    assert_eq!(text_of(answer), "hi \u{1f600} and \u{fffd}x");
    rpc.close().await;

    // As the original writes it.
    let file = home.session();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(cut, r"cut \ud83d")).unwrap();
    let mut rpc = home.rpc(&["--session", file.to_str().unwrap()]);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["sessionName"], cut);
    let messages = rpc.ok(json!({"type": "get_messages"})).await["messages"].take();
    let said: Vec<String> = messages.as_array().unwrap().iter().map(text_of).collect();
    let expected = [
        &format!("go {cut}"),
        cut,
        "",
        &format!("{cut}{cut}"),
        "Done.",
        cut,
        "stream",
        cut,
        "hi \u{1f600} and \u{fffd}x",
    ];
    assert_eq!(said, expected);
    assert_eq!(rpc.stderr(), "");
    rpc.close().await;
}

const LOOSE: &str = r#"
const parameters = { type: "object", properties: {} };
const tool = (name, execute) => pi => pi.registerTool({ name, label: name, description: name, parameters, execute });
const done = { content: [{ type: "text", text: "done" }], details: {} };
export default function (pi) {
  tool("text", async () => { throw "a text"; })(pi);
  tool("nothing", async () => { throw new Error(""); })(pi);
  tool("cause", async () => {
    class Own extends Error { name = "Own"; }
    throw new Own("outer", { cause: new Error("inner") });
  })(pi);
  tool("updates", async (_id, _params, _signal, onUpdate) => {
    onUpdate(undefined);
    onUpdate("half way");
    return done;
  })(pi);
  pi.registerFlag("count", { type: "number", default: 3 });
  pi.registerCommand("loose", { handler: async (_, ctx) => {
    ctx.ui.notify(new Error("an error"), "error");
    ctx.ui.notify(undefined);
    ctx.ui.setStatus("k", 5);
    ctx.ui.setWidget("w", [1, null]);
    const sure = await ctx.ui.confirm("Sure?");
    const { stdout } = await pi.exec("echo", [1, true]);
    pi.setSessionName(7);
    let wrong;
    try { ctx.ui.setWidget("w", { a: 1 }); } catch (error) { wrong = error.message; }
    const argv = process.argv.slice(2);
    ctx.ui.notify(JSON.stringify({ sure, stdout, count: pi.getFlag("count"), wrong, argv }));
  } });
}
"#;

#[tokio::test]
async fn arguments_are_taken_as_javascript_takes_them() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("loose.ts", LOOSE);
    let mut rpc = home.rpc(&["--count", "4"]);
    rpc.send(&prompt("/loose").to_string()).await;
    let error = rpc.ui("notify").await;
    assert_eq!(error["message"], "Error: an error");
    assert_eq!(rpc.ui("notify").await["message"], "undefined");
    assert_eq!(rpc.ui("setStatus").await["statusText"], "5");
    let widget = rpc.ui("setWidget").await;
    assert_eq!(widget["widgetLines"], json!(["1", "null"]));
    let question = rpc.ui("confirm").await;
    assert_eq!(question["message"], "");
    rpc.reply(&question, json!({"confirmed": true})).await;
    let seen = rpc.ui("notify").await;
    let seen: Value = serde_json::from_str(seen["message"].as_str().unwrap()).unwrap();
    let expected = json!({
        "sure": true,
        "stdout": "1 true\n",
        "count": "4",
        "wrong": "ctx.ui.setWidget: an array of strings is wanted, not [object Object]",
        "argv": ["--mode", "rpc", "--count", "4"],
    });
    assert_eq!(seen, expected);

    server.push(Answer::tools([
        ("text", json!({})),
        ("nothing", json!({})),
        ("cause", json!({})),
        ("updates", json!({})),
    ]));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    let of = |kind: &str, member: &str| -> Vec<String> {
        let events = events.iter().filter(|one| one["type"] == kind);
        let texts = events.map(|one| blocks(&one[member]["content"], "text"));
        texts.collect()
    };
    let mut results = of("tool_execution_end", "result");
    results.sort();
    assert_eq!(results, ["", "a text", "done", "outer"]);
    let updates = of("tool_execution_update", "partialResult");
    assert_eq!(updates.last().unwrap(), "half way");
    rpc.close().await;
}

#[tokio::test]
async fn what_is_stale_says_so_and_what_was_aborted_has_a_result() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            const parameters = { type: "object", properties: {} };
            pi.registerTool({ name: "slow", label: "slow", description: "slow", parameters,
                execute: (_id, _params, signal, onUpdate) => new Promise((_, reject) => {
                    signal.addEventListener("abort", () => reject(new Error("it saw the abort")));
                    onUpdate({ content: [{ type: "text", text: "on its way" }] });
                }) });
            pi.on("tool_result", async (event, ctx) => {
                await new Promise((resolve) => setTimeout(resolve, 20));
                return { content: [...event.content, { type: "text", text: ", noted" }] };
            });
            pi.registerCommand("replace", { handler: async (_, ctx) => {
                await ctx.newSession();
                ctx.ui.notify("never seen");
            } });
        }"#,
    )
    .await;
    server.push(Answer::tool("slow", json!({})));
    rpc.ok(prompt("go")).await;
    rpc.event("tool_execution_update").await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.event("tool_execution_end").await;
    assert_eq!(text_of(&end["result"]), "it saw the abort, noted");
    rpc.event("agent_end").await;

    rpc.send(&prompt("/replace").to_string()).await;
    let error = rpc.event("extension_error").await;
    let text = error["error"].as_str().unwrap();
    assert!(text.contains("This extension instance is stale"), "{error}");
    rpc.close().await;
}

/// As in Node, where it would be an uncaught exception of the program.
#[tokio::test]
async fn a_worker_that_throws_and_nobody_listens_to_is_told_of() {
    let (_server, _home, mut rpc) = with_extension(
        r#"import { Worker } from "node:worker_threads";
        export default (pi) => pi.registerCommand("work", { handler: async (listens, ctx) => {
          const worker = new Worker("setTimeout(() => { throw new TypeError('in worker') }, 1)", { eval: true });
          if (listens) worker.on("error", (error) => ctx.ui.notify(`heard ${error.message}`));
          worker.on("exit", (code) => ctx.ui.notify(`exit ${code}`));
        } });"#,
    )
    .await;
    rpc.ok(prompt("/work")).await;
    rpc.notified("exit 1").await;
    rpc.ok(prompt("/work listens")).await;
    rpc.notified("heard in worker").await;
    rpc.notified("exit 1").await;
    let lines = rpc.lines();
    let errors = lines
        .iter()
        .filter(|line| line["type"] == "extension_error");
    let errors: Vec<&Value> = errors.collect();
    let [error] = errors[..] else {
        panic!("{errors:?}")
    };
    let said = error["error"].as_str().unwrap();
    assert!(said.contains("in worker"), "{error}");
    let path = error["extensionPath"].to_string();
    assert!(path.contains("ext.ts"), "{error}");
}

#[tokio::test]
async fn names_of_later_versions_and_lists_of_other_kinds_are_taken() {
    let (_server, _home, mut rpc) = with_extension(
        r#"import { contentText, uuidv7 } from "@earendil-works/pi-ai";
        import { isPowerShellToolResult } from "@earendil-works/pi-coding-agent";
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => {
          pi.setActiveTools(new Set(["read", "bash"]));
          pi.setThinkingLevel("max");
          const { theme } = ctx.ui;
          const before = theme.fg("accent", "x");
          ctx.ui.setTheme(theme);
          const ids = [uuidv7(), uuidv7(), uuidv7(0)];
          ctx.ui.notify(JSON.stringify([pi.getActiveTools(), theme.fg("accent", "x") === before,
            contentText([{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }]), contentText("c"),
            isPowerShellToolResult({ toolName: "bash" }), ids[0] < ids[1], ids[2].startsWith("00000000-0000-7"), ids[0].length]));
        } });"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified(r#"[["read","bash"],true,"a\nb","c",false,true,true,36]"#)
        .await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_named_as_the_extension_knows_them() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("slip", { handler: async (_, ctx) => {
            const words = [];
            for (const slip of [
                () => pi.sendMessage({ customType: "x", content: 5 }),
                () => pi.sendMessage("hello"),
                () => pi.sendUserMessage([{ type: "txt", text: "a" }]),
                () => pi.registerProvider("p", { baseUrl: 1 }),
                () => pi.exec("echo", "hi"),
            ]) {
                try {
                    await slip();
                    words.push("nothing");
                } catch (error) {
                    words.push(`${error.name} ${error.message}`);
                }
            }
            ctx.ui.notify(words.join("\n"));
        } });"#,
    )
    .await;
    rpc.ok(prompt("/slip")).await;
    let said = rpc
        .wait("the words", |line| line["method"] == "notify")
        .await;
    let words: Vec<&str> = said["message"].as_str().unwrap().lines().collect();
    assert_eq!(
        words,
        [
            "TypeError pi.sendMessage: message.content: it must be a text, or an array of blocks of \
             text and pictures",
            "TypeError pi.sendMessage: message: invalid type: string \"hello\", expected an object",
            "TypeError pi.sendUserMessage: content: it must be a text, or an array of blocks of \
             text and pictures",
            "Error pi.registerProvider: config.baseUrl: invalid type: integer `1`, expected a string",
            "TypeError The arguments of echo must be an array, such as [\"hi\"]",
        ]
    );
}

/// Who looks for an optional package tells by these words that it is not there.
#[tokio::test]
async fn a_package_that_is_missing_is_told_in_nodes_words() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("slip", { handler: async (_, ctx) => {
            const { code, message } = await import("nope-pkg").catch((error) => error);
            ctx.ui.notify(`${code} ${message.startsWith("Cannot find package 'nope-pkg' ")}`);
        } });"#,
    )
    .await;
    rpc.ok(prompt("/slip")).await;
    rpc.notified("ERR_MODULE_NOT_FOUND true").await;
}

/// The model read a bare `42` as what the tool had said.
#[tokio::test]
async fn what_a_gate_throws_says_that_the_tool_did_not_run() {
    let (server, home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.on("session_start", () => pi.appendEntry("state", null));
            pi.on("tool_call", ({ input }) => {
                if (input.command === "one") throw 42;
                if (input.command === "two") throw new Error("");
                throw new Error("no such thing");
            });
            pi.on("context", (event) => { event.messages = []; });
        };"#,
    )
    .await;
    for command in ["one", "two", "three"] {
        server.push(Answer::tool("bash", json!({"command": command})));
    }
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    let messages = server.last_request().body["messages"].to_string();
    for said in [
        "Extension failed, blocking execution: 42",
        "Extension failed, blocking execution: an error without a message",
        "no such thing",
    ] {
        assert!(messages.contains(said), "{said}: {messages}");
    }
    let state = |entry: &&Value| entry["customType"] == "state";
    let entries = home.entries();
    let state = entries.iter().find(state).expect("the state is stored");
    assert_eq!(state.get("data"), Some(&Value::Null));
}
