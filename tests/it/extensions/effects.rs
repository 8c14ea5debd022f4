//! Actions of extensions have the effect that they have in the original.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, PIXEL, prompt, text_of, with_extension};

/// The message was lost when the command or the handler was done.
#[tokio::test]
async fn messages_of_a_command_are_printed_in_print_mode() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "it.ts",
        r#"export default (pi) => {
            let again = true;
            pi.registerCommand("review", { handler: async () => pi.sendUserMessage("look at it") });
            pi.on("agent_end", async () => {
                await new Promise((resolve) => setTimeout(resolve, 5));
                if (again) pi.sendUserMessage("and again");
                again = false;
            });
        };"#,
    );
    server.push(Answer::text("One."));
    server.push(Answer::text("Two."));
    let output = home.run(&["-p", "/review"], "").await;
    assert_eq!(output.stdout, "Two.\n", "{output:?}");
    assert_eq!(output.status.code(), Some(0));
    let printed: Vec<String> = server
        .requests()
        .iter()
        .map(|it| it.body["messages"].to_string())
        .collect();
    assert!(
        printed[0].contains("look at it") && printed[1].contains("and again"),
        "{printed:?}"
    );
}

/// The secret went to the model and into the file.
#[tokio::test]
async fn a_tool_result_may_be_changed_in_place() {
    let (server, home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.on("tool_result", (event) => {
                for (const block of event.content) block.text = block.text.replace(/SECRET\d+/g, "***");
                event.details = { ...event.details, redacted: true };
            });
            pi.on("tool_result", (event) => {
                event.content.push({ type: "text", text: String(event.details.redacted) });
            });
        };"#,
    )
    .await;
    server.push(Answer::tool("bash", json!({"command": "echo SECRET123"})));
    server.push(Answer::text("Done."));
    rpc.ok(prompt("go")).await;
    let end = rpc.event("tool_execution_end").await;
    assert_eq!(text_of(&end["result"]), "***\ntrue");
    assert_eq!(end["result"]["details"]["redacted"], true, "{end}");
    rpc.event("agent_end").await;
    let reported = server.requests()[1].body.to_string();
    assert!(
        reported.contains("***") && !reported.contains("SECRET123\\n"),
        "{reported}"
    );
    assert!(!json!(home.entries()).to_string().contains("SECRET123\\n"));
}

#[tokio::test]
async fn pictures_of_a_prompt_are_blocks() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.on("input", ({ images, text }) => {
                if (text !== "look") return;
                pi.sendUserMessage([{ type: "text", text: "mine" }, ...images]);
                return { action: "handled" };
            });
            pi.on("before_agent_start", ({ images }, ctx) => ctx.ui.notify(images[0].type));
        };"#,
    )
    .await;
    server.push(Answer::text("A pixel."));
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    rpc.ok(json!({"type": "prompt", "message": "look", "images": [image]}))
        .await;
    rpc.notified("image").await;
    rpc.event("agent_end").await;
    assert!(server.requests()[0].body.to_string().contains(PIXEL));
}

#[tokio::test]
async fn message_end_handlers_replace_the_message() {
    let (server, home, mut rpc) = with_extension(include_str!(
        "fixtures/effects/message-end-handlers-replace-the-message.ts"
    ))
    .await;
    server.push(Answer::tool("bash", json!({"command": "echo tool-output"})));
    server.push(Answer::text("the word is swordfish"));
    rpc.ok(json!({"type": "prompt", "message": "the word is swordfish"}))
        .await;
    // The error is reported beside the run, perhaps after its end.
    let mut awaited = vec!["extension_error", "agent_end"];
    while !awaited.is_empty() {
        let line = rpc
            .wait("the error and the end", |line| {
                awaited.iter().any(|kind| line["type"] == *kind)
            })
            .await;
        match line["type"] == "agent_end" {
            true => assert!(line.to_string().contains("Said. Twice."), "{line}"),
            false => assert_eq!(
                line["error"],
                "pi ignores the handler's change: a message of the role \"toolResult\" cannot become one of \"user\""
            ),
        }
        awaited.retain(|kind| line["type"] != *kind);
    }
    server.push(Answer::text("Fine."));
    rpc.run("more").await;
    for request in server.requests() {
        let requested = request.body.to_string();
        assert!(requested.contains("[hidden]"), "{requested}");
        assert!(!requested.contains("swordfish"), "{requested}");
    }
    let requested = server.last_request().body.to_string();
    assert!(
        requested.contains("tool-output") && requested.contains("Said. Twice."),
        "{requested}"
    );
    let stored = std::fs::read_to_string(home.session()).unwrap();
    assert!(
        !stored.contains("swordfish") && stored.contains("Said. Twice."),
        "{stored}"
    );

    server.push(Answer::text("Round."));
    rpc.ok(json!({"type": "prompt", "message": "a circle"}))
        .await;
    let error = rpc.event("extension_error").await;
    let text = error["error"].as_str().unwrap();
    assert!(text.contains("circular"), "{error}");
    rpc.event("agent_end").await;
    let requested = server.last_request().body.to_string();
    assert!(requested.contains("a circle"), "{requested}");
}

/// Handlers of the first message continue after the run, and the run does not wait for them.
#[tokio::test]
async fn a_late_change_does_not_reach_another_message() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/effects/a-late-change-does-not-reach-another-message.ts"
    ))
    .await;
    rpc.ok(json!({"type": "prompt", "message": "/hold"})).await;
    rpc.notified("held").await;
    server.repeat(Answer::text("Yes."));
    rpc.ok(json!({"type": "prompt", "message": "one"})).await;
    rpc.notified("over").await;
    rpc.run("two").await;
    let requested = server.last_request().body.to_string();
    assert!(
        requested.contains("\"one\"")
            && requested.contains("\"two\"")
            && !requested.contains("late"),
        "{requested}"
    );
}

/// Half of the extension was registered.
#[tokio::test]
async fn an_extension_that_fails_to_load_leaves_nothing() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.registerCommand("early", { handler: async (_, ctx) => ctx.ui.notify("here") });
            pi.registerTool({ name: "early", label: "e", description: "d", parameters: { type: "object", properties: {} },
                execute: async () => ({ content: [] }) });
            pi.registerProvider("half", { baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "anthropic-messages",
                models: [{ id: "h1", name: "h1", reasoning: false, input: ["text"], contextWindow: 1000, maxTokens: 100,
                    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }] });
            pi.on("before_agent_start", () => ({ systemPrompt: "HALF" }));
            throw new Error("config missing");
        };"#,
    )
    .await;
    let error = rpc.event("extension_error").await;
    assert!(
        error["error"].as_str().unwrap().contains("config missing"),
        "{error}"
    );
    server.push(Answer::text("Plain."));
    rpc.run("/early").await;
    let requested = server.requests()[0].body.to_string();
    assert!(
        !requested.contains("HALF") && !requested.contains("\"early\""),
        "{requested}"
    );
    let models = rpc.ok(json!({"type": "get_available_models"})).await;
    assert!(!models.to_string().contains("h1"), "{models}");
}

#[tokio::test]
async fn tool_choice_is_sent_and_nothing_after_an_abort() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/effects/tool-choice-is-sent-and-nothing-after-an-abort.ts"
    ))
    .await;
    server.repeat(Answer::text("Fine."));
    rpc.ok(prompt("/ask")).await;
    rpc.notified("aborted").await;
    let choices: Vec<Value> = server
        .requests()
        .iter()
        .map(|it| it.body["tool_choice"].clone())
        .collect();
    assert_eq!(
        choices,
        [
            json!({"type": "any"}),
            json!({"type": "tool", "name": "answer"})
        ]
    );
}

/// Steering missed the next request by chance.
#[tokio::test]
async fn a_message_of_a_tool_is_queued_when_the_tool_returns() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerTool({ name: "steer", label: "s", description: "d",
            parameters: { type: "object", properties: {} },
            execute: async (_id, _args, _signal, _update, ctx) => {
                pi.sendUserMessage("steered", { deliverAs: "steer" });
                return { content: [{ type: "text", text: String(ctx.hasPendingMessages()) }] };
            } });"#,
    )
    .await;
    server.push(Answer::tool("steer", json!({})));
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    let reported = server.requests()[1].body["messages"].to_string();
    assert!(
        reported.contains("steered") && reported.contains("true"),
        "{reported}"
    );
}

#[tokio::test]
async fn send_user_message_resolves_after_the_answer() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/effects/send-user-message-resolves-after-the-answer.ts"
    ))
    .await;
    server.push(Answer::text("First."));
    server.push(Answer::text("Second."));
    server.push(Answer::text("Third."));
    rpc.ok(prompt("/sub")).await;
    rpc.notified("First. Second. Third.").await;
}

#[tokio::test]
async fn a_stream_may_end_with_its_message() {
    let (_server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/effects/a-stream-may-end-with-its-message.ts"
    ))
    .await;
    rpc.ok(json!({"type": "set_model", "provider": "own", "modelId": "o1"}))
        .await;
    assert_eq!(rpc.answer_to("go").await, "In one.");
}

#[tokio::test]
async fn an_abort_is_seen_by_its_caller() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            pi.on("turn_start", (_, ctx) => {
                ctx.abort();
                ctx.ui.notify(String(ctx.signal.aborted));
                try { pi.setSessionName(undefined); } catch (error) { ctx.ui.notify(error.message); }
            });
        };"#,
    )
    .await;
    server.repeat(Answer::text("Never."));
    rpc.ok(prompt("go")).await;
    rpc.notified("true").await;
    rpc.notified("pi.setSessionName: a string is wanted, not undefined")
        .await;
}

#[tokio::test]
async fn set_model_takes_the_model_object() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("small", { handler: async (args, ctx) => {
            const changed = args ? { id: args } : { maxTokens: 123 };
            ctx.ui.notify(String(await pi.setModel({ ...ctx.model, ...changed })));
        } });"#,
    )
    .await;
    server.repeat(Answer::text("Fine."));
    for (command, member, value) in [
        ("/small", "max_tokens", json!(123)),
        ("/small mine", "model", json!("mine")),
    ] {
        rpc.ok(prompt(command)).await;
        rpc.notified("true").await;
        rpc.run("go").await;
        assert_eq!(server.requests().pop().unwrap().body[member], value);
    }
}

/// An unusable result of one extension does not undo the work of another: a secret stays hidden.
#[tokio::test]
async fn an_unusable_result_affects_only_its_extension() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "1-redacts.ts",
        include_str!("fixtures/effects/an-unusable-result-affects-only-its-extension.ts"),
    );
    home.extension(
        "2-breaks.ts",
        r#"export default (pi) => {
          pi.on("tool_result", ({ content, details = { none: true } }) => ({
            content: [...content, { type: "text" }], details: { kept: details.none } }));
          pi.on("message_end", ({ message }) => { if (message.role === "assistant") message.role = "user"; });
          pi.on("context", ({ messages }) => ({ messages: [{ role: "user", content: { no: "list" } }, ...messages] }));
          pi.on("before_provider_headers", (event) => { event.headers = null; });
          pi.on("input", () => ({ action: "transform", text: "say SECRET", images: [5] }));
        };"#,
    );
    home.extension(
        "3-sees.ts",
        r#"export default (pi) => {
          pi.on("tool_result", ({ content }, ctx) => ctx.ui.notify(`result ${content[0].text}`));
          pi.on("message_end", ({ message }, ctx) => { if (message.role === "assistant") ctx.ui.notify(`said ${message.content.at(-1).text}`); });
          pi.on("input", ({ text }) => ({ action: "transform", text: text + "!" }));
        };"#,
    );
    home.file("a.txt", "SECRET\n");
    server.push(Answer::tool("read", json!({"path": "a.txt"})));
    server.push(Answer::text("It is SECRET."));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("say")).await;
    rpc.notified("result ***\n").await;
    rpc.notified("said It is ***.").await;
    rpc.event("agent_end").await;
    let last = server.last_request();
    assert_eq!(last.headers["x-kept"], "1");
    let last = last.body["messages"].to_string();
    for part in ["***", "by hand", "also"] {
        assert!(last.contains(part), "{last}");
    }
    let messages = rpc.ok(json!({"type": "get_messages"})).await;
    let all = messages.to_string();
    // The result was a text, so it was used.
    assert!(all.contains("say SECRET!"), "{all}");
    assert_eq!(all.matches("SECRET").count(), 1, "{all}");
    assert!(all.contains(r#""details":{"kept":true}"#), "{all}");
    let lines = rpc.lines();
    let errors = lines
        .iter()
        .filter(|line| line["type"] == "extension_error");
    let mut reported: Vec<String> = errors
        .map(|error| {
            let path = error["extensionPath"].as_str().unwrap();
            assert!(path.ends_with("2-breaks.ts"), "{error}");
            format!(
                "{}: {}",
                error["event"].as_str().unwrap(),
                error["error"].as_str().unwrap()
            )
        })
        .collect();
    reported.sort();
    reported.dedup();
    let expected = [
        "before_provider_headers: pi ignores the handler's change: `headers` cannot be used: ",
        "context: pi ignores the handler's change: `messages[0]` cannot be used: ",
        "input: pi ignores the handler's change: `images[0]` cannot be used: ",
        "message_end: pi ignores the handler's change: a message of the role \"assistant\" cannot become one of \"user\"",
        "tool_result: pi ignores the handler's change: `content[1]` cannot be used: ",
    ];
    assert_eq!(reported.len(), expected.len(), "{reported:#?}");
    for (reported, expected) in reported.iter().zip(expected) {
        assert!(reported.contains(expected), "{reported} for {expected}");
    }
}
