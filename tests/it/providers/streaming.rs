//! Providers that extensions register: models, keys, and answers that JavaScript streams to the
//! agent.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, blocks, message_end, prompt, text_of};

/// Answers as the last user message says, in the ways a provider can.
const PROVIDER: &str = r#"
import { calculateCost, createAssistantMessageEventStream } from "@mariozechner/pi-ai";

const asked = [];
let fails = 1;

function streamSimple(model, context, options) {
  const stream = createAssistantMessageEventStream();
  const last = context.messages[context.messages.length - 1];
  const text = last.role === "toolResult"
    ? "tool said " + last.content[0].text
    : typeof last.content === "string" ? last.content : last.content[0].text;
  asked.push({ text, options: { ...options, signal: undefined }, tools: context.tools.length,
    system: context.systemPrompt.length > 0, model: model.id, baseUrl: model.baseUrl });
  (async () => {
    const output = { role: "assistant", content: [], api: model.api, provider: model.provider,
      model: model.id, usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
      stopReason: "stop", timestamp: Date.now() };
    try {
      const payload = await options.onPayload?.({ text }, model) ?? { text };
      await options.onResponse?.({ status: 200, headers: { "x-mine": "yes" } }, model);
      stream.push({ type: "start", partial: output });
      if (text === "fail" && fails-- > 0) throw new Error("overloaded");
      if (text === "hang") {
        output.content.push({ type: "text", text: "so far" });
        stream.push({ type: "text_start", contentIndex: 0, partial: output });
        stream.push({ type: "text_delta", contentIndex: 0, delta: "so far", partial: output });
        await new Promise((_, reject) => options.signal.addEventListener("abort",
          () => reject(new Error("aborted by signal"))));
      }
      output.content.push({ type: "thinking", thinking: "" });
      stream.push({ type: "thinking_start", contentIndex: 0, partial: output });
      output.content[0].thinking += "hm";
      stream.push({ type: "thinking_delta", contentIndex: 0, delta: "hm", partial: output });
      output.content[0].thinkingSignature = "sig";
      stream.push({ type: "thinking_end", contentIndex: 0, content: "hm", partial: output });
      if (text.startsWith("use ")) {
        const call = { type: "toolCall", id: "c1", name: "bash", arguments: {} };
        output.content.push(call);
        stream.push({ type: "toolcall_start", contentIndex: 1, partial: output });
        const whole = JSON.stringify({ command: text.slice(4) });
        for (const delta of [whole.slice(0, 5), whole.slice(5)]) {
          stream.push({ type: "toolcall_delta", contentIndex: 1, delta, partial: output });
        }
        call.arguments = JSON.parse(whole);
        stream.push({ type: "toolcall_end", contentIndex: 1, toolCall: call, partial: output });
        output.stopReason = "toolUse";
      } else {
        output.content.push({ type: "text", text: "" });
        stream.push({ type: "text_start", contentIndex: 1, partial: output });
        for (const delta of ["echo ", payload.text]) {
          output.content[1].text += delta;
          stream.push({ type: "text_delta", contentIndex: 1, delta, partial: output });
        }
        stream.push({ type: "text_end", contentIndex: 1, content: output.content[1].text, partial: output });
      }
      output.usage.input = 1000; output.usage.output = 10; output.usage.totalTokens = 1010;
      calculateCost(model, output.usage);
      stream.push({ type: "done", reason: output.stopReason, message: output });
    } catch (error) {
      output.stopReason = options.signal.aborted ? "aborted" : "error";
      output.errorMessage = error.message;
      stream.push({ type: "error", reason: output.stopReason, error: output });
    }
    stream.end();
  })();
  return stream;
}

const model = (id, more) => ({ id, name: id, reasoning: true, input: ["text"],
  cost: { input: 3, output: 15, cacheRead: 0, cacheWrite: 0 }, contextWindow: 100000,
  maxTokens: 4096, ...more });

export default (pi) => {
  pi.registerProvider("mine", { baseUrl: "http://mine", apiKey: "MINE_KEY", api: "mine-api",
    headers: { "x-a": "MINE_KEY" }, authHeader: true,
    models: [model("m1"), model("m2", { headers: { "x-b": "2" } })], streamSimple });
  pi.on("before_provider_request", (event) => (event.payload.text === "hooked" ? { text: "changed" } : undefined));
  pi.on("after_provider_response", (event) => void asked.push(event.headers));
  pi.registerCommand("asked", { handler: async (_args, ctx) =>
    ctx.ui.notify(JSON.stringify(asked.splice(0))) });
  pi.registerCommand("move", { handler: async () => pi.registerProvider("mine", { baseUrl: "http://moved" }) });
  pi.registerCommand("drop", { handler: async () => pi.unregisterProvider("mine") });
  pi.registerCommand("bad", { handler: async (_args, ctx) => {
    const problem = (config) => { try { pi.registerProvider("bad", config); return "none"; }
      catch (error) { return error.message; } };
    ctx.ui.notify([problem({ streamSimple }), problem({ models: [model("x")] }),
      problem({ models: [model("x")], baseUrl: "u" }),
      problem({ models: [model("x")], baseUrl: "u", apiKey: "k" })].join("|"));
  } });
  pi.registerCommand("override", { handler: async (_args, ctx) => {
    pi.registerProvider("anthropic", { baseUrl: "http://proxy", headers: { "x-team": "t" } });
    const over = ctx.modelRegistry.find("anthropic", "claude-opus-4-6").baseUrl;
    pi.unregisterProvider("anthropic");
    ctx.ui.notify(over + " " + ctx.modelRegistry.find("anthropic", "claude-opus-4-6").baseUrl);
  } });
};
"#;

fn home() -> Home {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension("mine.ts", PROVIDER);
    home
}

/// The provider's key comes from the environment variable `MINE_KEY`.
fn start(home: &Home, arguments: &[&str]) -> crate::support::Rpc {
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.args(["--mode", "rpc"]).args(arguments);
    command.env("MINE_KEY", "secret");
    crate::support::Rpc::start(command)
}

async fn asked(rpc: &mut crate::support::Rpc) -> Value {
    rpc.ok(prompt("/asked")).await;
    let told = rpc.ui("notify").await;
    serde_json::from_str(told["message"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_whole_session_runs_on_a_provider_in_javascript() {
    let home = home();
    home.settings(
        json!({"transport": "websocket-cached", "retry": {"provider": {"maxRetryDelayMs": 500}}}),
    );
    let mut rpc = start(&home, &["--model", "mine/m2", "--thinking", "high"]);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["model"]["baseUrl"], "http://mine");

    // Text, with the provider hooks.
    rpc.ok(prompt("hooked")).await;
    let delta = rpc.event("message_update").await;
    assert_eq!(delta["message"]["provider"], "mine");
    let end = rpc.wait("an answer", message_end("assistant")).await;
    assert_eq!(text_of(&end["message"]), "echo changed");
    assert_eq!(blocks(&end["message"]["content"], "thinking"), "hm");
    assert_eq!(end["message"]["content"][0]["thinkingSignature"], "sig");
    assert_eq!(end["message"]["usage"]["cost"]["input"], json!(0.003));
    rpc.event("agent_end").await;
    let seen = asked(&mut rpc).await;
    assert_eq!(seen[0]["options"]["apiKey"], "secret");
    assert_eq!(seen[0]["options"]["reasoning"], "high");
    assert_eq!(seen[0]["options"]["transport"], "websocket-cached");
    assert_eq!(seen[0]["options"]["maxRetryDelayMs"], 500);
    assert_eq!(
        seen[0]["options"]["headers"],
        json!({"x-a": "secret", "x-b": "2", "Authorization": "Bearer secret"})
    );
    assert_eq!(seen[0]["system"], true);
    assert_eq!(seen[1], json!({"x-mine": "yes"}));

    // A tool and its result.
    rpc.ok(prompt("use echo hi")).await;
    let call = rpc.event("tool_execution_start").await;
    assert_eq!(call["args"], json!({"command": "echo hi"}));
    rpc.event("agent_end").await;
    let said = rpc.ok(json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(said["text"], "echo tool said hi");

    // A transient failure is retried.
    rpc.ok(prompt("fail")).await;
    rpc.event("auto_retry_start").await;
    assert_eq!(rpc.event("auto_retry_end").await["success"], true);
    rpc.event("agent_end").await;

    // An abort reaches the signal, and the text until then is kept.
    rpc.ok(prompt("hang")).await;
    rpc.wait("a delta", |event| {
        event["assistantMessageEvent"]["delta"] == "so far"
    })
    .await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.wait("an answer", message_end("assistant")).await;
    assert_eq!(end["message"]["stopReason"], "aborted");
    assert_eq!(text_of(&end["message"]), "so far");

    // The session's model follows changes of its provider.
    asked(&mut rpc).await;
    rpc.ok(prompt("/move")).await;
    rpc.run("where").await;
    assert_eq!(asked(&mut rpc).await[0]["baseUrl"], "http://moved");
    rpc.ok(json!({"type": "reload"})).await;
    rpc.run("where").await;
    assert_eq!(asked(&mut rpc).await[0]["baseUrl"], "http://mine");

    let models = rpc.ok(json!({"type": "get_available_models"})).await;
    let models = models["models"].as_array().unwrap().clone();
    let ids: Vec<&str> = models.iter().filter_map(|m| m["id"].as_str()).collect();
    assert_eq!(ids, ["m1", "m2"]);
    rpc.ok(json!({"type": "set_model", "provider": "mine", "modelId": "m1"}))
        .await;
    rpc.ok(prompt("/bad")).await;
    rpc.notified(
        "Provider bad: \"api\" is required when registering streamSimple.|\
         Provider bad: \"baseUrl\" is required when defining models.|\
         Provider bad: \"apiKey\" or \"oauth\" is required when defining models.|\
         Provider bad, model x: no \"api\" specified.",
    )
    .await;
    rpc.ok(prompt("/override")).await;
    rpc.notified("http://proxy https://api.anthropic.com").await;
    rpc.ok(prompt("/drop")).await;
    let models = rpc.ok(json!({"type": "get_available_models"})).await;
    assert_eq!(models["models"], json!([]));
}

#[tokio::test]
async fn providers_are_listed_and_mistakes_are_reported() {
    let home = home();
    home.extension(
        "wrong.ts",
        r#"export default (pi) => { pi.registerProvider("wrong", { models: [{ id: "x" }] });
             pi.registerCommand("still", { handler: async () => {} }); }"#,
    );
    let mut command = home.command(env!("CARGO_BIN_EXE_pi"));
    command.arg("--list-models").env("MINE_KEY", "k");
    let listed = crate::support::finish(command, "").await;
    assert!(
        listed
            .stderr
            .contains("wrong.ts\" error: Provider wrong: \"baseUrl\""),
        "{listed:#?}"
    );
    let table = listed.ok();
    assert!(table.contains("mine      m1     100K     4.1K"), "{table}");

    let mut rpc = start(&home, &[]);
    let told = rpc.event("extension_error").await;
    assert_eq!(told["event"], "register_provider");
    let commands = rpc.ok(json!({"type": "get_commands"})).await.to_string();
    assert!(commands.contains("still"), "{commands}");
}

#[tokio::test]
async fn apis_are_shared_between_pi_and_javascript() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "apis.ts",
        r#"import { complete, fauxAssistantMessage, fauxThinking, fauxToolCall, getApiProvider,
             getApiProviders, registerFauxProvider, streamSimple } from "@mariozechner/pi-ai";
        export default (pi) => {
          const faux = registerFauxProvider({ api: "faux-api", provider: "faux" });
          pi.registerProvider("faux", { baseUrl: "http://faux", apiKey: "none", api: "faux-api", models: faux.models });
          // A provider in JavaScript that calls a built-in API.
          pi.registerProvider("wrap", { baseUrl: "http://wrap", apiKey: "none", api: "wrap-api",
            models: faux.models.map((model) => ({ ...model, api: undefined })),
            streamSimple: (model, context, options) => {
              const inner = pi.inner;
              return streamSimple({ ...inner.model, id: "wrapped" }, context, { ...options, apiKey: inner.apiKey,
                onPayload: (payload) => ({ ...payload, metadata: { user_id: "me" } }) });
            } });
          pi.registerCommand("go", { handler: async (args, ctx) => {
            if (args === "wrap") {
              pi.inner = { model: ctx.model, ...await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model) };
              await pi.setModel(ctx.modelRegistry.find("wrap", "faux-1"));
            } else {
              faux.setResponses([
                fauxAssistantMessage([fauxThinking("well"), fauxToolCall("bash", { command: "echo 1" })], { stopReason: "toolUse" }),
                (context) => fauxAssistantMessage("seen " + context.messages.length), "unused"]);
              await pi.setModel(ctx.modelRegistry.find("faux", "faux-1"));
            }
          } });
          pi.registerCommand("look", { handler: async (_args, ctx) => {
            const names = getApiProviders().map(({ api }) => api);
            const mismatch = (() => { try { getApiProvider("faux-api").stream({ ...ctx.model, api: "x" }, {}); }
              catch (error) { return error.message; } })();
            faux.setResponses([fauxAssistantMessage("direct")]);
            const answer = await complete(faux.getModel(), { messages: [] });
            ctx.ui.notify([names.includes("openai-responses"), names.includes("faux-api"), mismatch,
              answer.content[0].text, faux.state.callCount].join(" "));
          } });
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go faux")).await;
    rpc.ok(prompt("hello")).await;
    let call = rpc.event("tool_execution_start").await;
    assert_eq!(call["args"], json!({"command": "echo 1"}));
    rpc.event("agent_end").await;
    let said = rpc.ok(json!({"type": "get_last_assistant_text"})).await;
    assert_eq!(said["text"], "seen 3");
    rpc.ok(prompt("/look")).await;
    rpc.notified("true true Mismatched api: x expected faux-api direct 3")
        .await;

    server.push(Answer::text("through the program"));
    rpc.ok(json!({"type": "set_model", "provider": "scripted", "modelId": "scripted-1"}))
        .await;
    rpc.ok(prompt("/go wrap")).await;
    assert_eq!(rpc.answer_to("again").await, "through the program");
    let request = server.last_request();
    assert_eq!(request.body["metadata"], json!({"user_id": "me"}));
    assert_eq!(request.body["model"], "wrapped");
}

#[tokio::test]
async fn an_invalid_stream_costs_only_the_answer() {
    let home = Home::bare();
    home.settings(json!({}));
    home.extension(
        "odd.ts",
        r#"import { createAssistantMessageEventStream } from "@mariozechner/pi-ai";
        const ways = {
          throws: () => { throw new Error("cannot"); },
          nothing: () => undefined,
          ends: () => { const s = createAssistantMessageEventStream(); s.end(); return s; },
          junk: () => { const s = createAssistantMessageEventStream();
            s.push({ type: "text_delta", contentIndex: 1e9, delta: "a" });
            s.push({ type: "done", reason: "stop", message: { content: [{ type: "text", text: "fine" }], usage: { input: NaN } } });
            return s; },
          broken: () => { const s = createAssistantMessageEventStream();
            s.push({ type: "done", message: { content: "no array" } }); return s; },
          rejects: () => { (async () => { await 0; throw new Error("deep down"); })();
            return createAssistantMessageEventStream(); },
          timer: async () => { setTimeout(() => { throw new Error("in a timer"); }, 5);
            return createAssistantMessageEventStream(); },
          later: async () => ({ async *[Symbol.asyncIterator]() {
            yield { type: "unheard_of", contentIndex: -1 };
            await new Promise((resolve) => setTimeout(resolve, 100));
            yield { type: "done", message: { content: [{ type: "text", text: "fine" }] } }; } }),
          own: async () => ({ async *[Symbol.asyncIterator]() {
            yield { type: "done", message: { content: [{ type: "text", text: "mine" }] } }; } }),
        };
        export default (pi) => pi.registerProvider("odd", { baseUrl: "u", apiKey: "k", api: "odd", models: [
          { id: "o", name: "o", reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
            contextWindow: 1000, maxTokens: 10 }],
          streamSimple: (_model, context) => ways[context.messages.at(-1).content[0].text]() });"#,
    );
    let mut rpc = home.rpc(&["--model", "odd/o"]);
    for (way, stop, said) in [
        ("throws", "error", "cannot"),
        ("nothing", "error", "must return an event stream"),
        ("ends", "error", "without a done or error event"),
        ("junk", "stop", "fine"),
        ("broken", "stop", "no array"),
        ("rejects", "error", "deep down"),
        ("timer", "error", "in a timer"),
        ("later", "stop", "fine"),
        ("own", "stop", "mine"),
    ] {
        // The failures must not be retried.
        rpc.ok(json!({"type": "set_auto_retry", "enabled": false}))
            .await;
        rpc.ok(prompt(way)).await;
        if way == "later" {
            rpc.wait("the report", |line| {
                let error = line["error"].as_str().unwrap_or_default();
                error.contains("no event \"unheard_of\"")
            })
            .await;
        }
        let end = rpc.wait("an answer", message_end("assistant")).await;
        let message = &end["message"];
        assert_eq!(message["stopReason"], stop, "{way}: {message}");
        assert!(message.to_string().contains(said), "{way}: {message}");
        rpc.event("agent_end").await;
    }
}
