//! Events of newer versions about requests and answers in the provider's form, and the tools that
//! sessions start with.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt, with_extension};

/// The system prompt of the last request.
fn system(server: &ModelServer) -> String {
    let body = server.last_request().body;
    body["system"][0]["text"].as_str().unwrap().to_string()
}

fn tools(server: &ModelServer) -> Vec<Value> {
    let body = server.last_request().body;
    let tools = body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].clone()).collect()
}

#[tokio::test]
async fn handlers_may_change_the_whole_request() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/provider-requests/handlers-may-change-the-whole-request.ts"
    ))
    .await;
    server.repeat(Answer::text("Fine."));
    rpc.ok(prompt("one")).await;
    rpc.notified(
        r#"["system","",["preamble","tools","rules","cwd"],["user"],true,true,["read","bash","edit","write"]]"#,
    )
    .await;
    rpc.event("agent_settled").await;
    let plain = system(&server);
    rpc.answer_to("two").await;
    let changed = system(&server);
    assert!(
        changed.starts_with("You are a poet.\n\nAvailable tools:"),
        "{changed}"
    );
    assert!(changed.ends_with("\n\n<mood>glad</mood>"), "{changed}");
    assert!(plain.contains("Guidelines:") && !changed.contains("Guidelines:"));
    assert_eq!(
        json!(tools(&server)),
        json!(["read", "edit", "write", "sing"])
    );
    // An unusable change is reported, and the previous request is sent.
    rpc.ok(prompt("three")).await;
    let error = rpc.event("extension_error").await;
    assert_eq!(error["event"], "context_with_system");
    let text = error["error"].as_str().unwrap();
    assert!(
        text.contains("the first must have the role \"system\""),
        "{text}"
    );
    rpc.event("agent_settled").await;
    assert_eq!((system(&server), tools(&server).len()), (plain, 4));
}

/// The message was dropped silently.
#[tokio::test]
async fn a_system_message_of_a_context_handler_is_sent() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
          pi.on("context", ({ messages }) => ({
            messages: [...messages, { role: "system", content: "Speak French.", timestamp: 1 }] }));
        };"#,
    )
    .await;
    server.repeat(Answer::text("Bien."));
    for prompt in ["one", "two"] {
        rpc.answer_to(prompt).await;
        let prompt = system(&server);
        assert!(prompt.starts_with("Speak French.\n\n"), "{prompt}");
        assert_eq!(prompt.matches("Speak French.").count(), 1, "{prompt}");
        assert_eq!(tools(&server).len(), 4);
        let body = server.last_request().body.to_string();
        assert_eq!(body.matches("Speak French.").count(), 1, "{body}");
    }
}

/// Handlers of the whole request see the message, too.
#[tokio::test]
async fn context_with_system_has_additions_of_context_handlers() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
          pi.on("context", ({ messages }) => ({
            messages: [...messages, { role: "system", content: "Speak French.", timestamp: 1 }] }));
          pi.on("context_with_system", ({ messages }, ctx) =>
            ctx.ui.notify(messages.map(({ role, content }) => role === "system" ? content : role).join("|")));
        };"#,
    )
    .await;
    server.repeat(Answer::text("Bien."));
    rpc.ok(prompt("go")).await;
    rpc.notified("|Speak French.|user").await;
    rpc.event("agent_settled").await;
    assert!(system(&server).starts_with("Speak French.\n\n"));
}

/// `event.systemPromptOptions.sections.x = …` threw: there were no sections.
#[tokio::test]
async fn system_prompt_sections_can_be_added_and_replaced() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/provider-requests/system-prompt-sections-can-be-added-and-replaced.ts"
    ))
    .await;
    server.repeat(Answer::text("Fine."));
    rpc.ok(prompt("add")).await;
    rpc.notified(r#"["",["preamble","tools","rules","cwd","team_rules"]]"#)
        .await;
    rpc.event("agent_settled").await;
    let prompt_text = system(&server);
    assert!(
        prompt_text.ends_with("\n\n<team_rules>\nBe kind.\n</team_rules>"),
        "{prompt_text}"
    );
    assert!(
        prompt_text.contains("\n\n<rules>\nNone.\n</rules>\nCurrent date: "),
        "{prompt_text}"
    );
    rpc.ok(prompt("wrong")).await;
    let error = rpc.event("extension_error").await;
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .contains(r#""No name" is no name of a section"#)
    );
    rpc.event("agent_settled").await;
    rpc.ok(prompt("force")).await;
    rpc.notified(r#"["Only this, said the user.",[]]"#).await;
    rpc.event("agent_settled").await;
    assert_eq!(system(&server), "Only this, said the user.");
}

#[tokio::test]
async fn stream_events_are_emitted_in_order() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "raw.ts",
        r#"const seen = [];
        export default (pi) => {
          pi.on("provider_stream_event", ({ provider, api, model, data }) => { seen.push([provider, api, model, data.type, data.delta?.text]); });
          pi.on("agent_settled", (_event, ctx) => ctx.ui.notify(JSON.stringify(seen.filter((one) => one[3].includes("delta")))));
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("go")).await;
    let of = |kind: &str, text: Value| {
        json!(["scripted", "anthropic-messages", "scripted-1", kind, text])
    };
    let seen = json!([
        of("content_block_delta", json!("Fine.")),
        of("message_delta", Value::Null),
    ]);
    rpc.notified(&seen.to_string()).await;
}

/// `defaultTools` of newer versions was stored and ignored: a user who had removed `bash` had it
/// again.
#[tokio::test]
async fn settings_and_extensions_choose_the_initial_tools() {
    let server = ModelServer::start().await;
    server.repeat(Answer::text("Fine."));
    let home = Home::new(&server);
    home.extension(
        "two.ts",
        r#"export default (pi) => {
          for (const [name, defaultActive] of [["shown"], ["hidden", false]])
            pi.registerTool({ name, defaultActive, description: name, parameters: { type: "object", properties: {} }, execute() {} });
        };"#,
    );
    for (setting, options, expected) in [
        (
            json!(null),
            vec![],
            json!(["read", "bash", "edit", "write", "shown"]),
        ),
        (
            json!(["-bash", "+ls", "+hidden"]),
            vec![],
            json!(["read", "edit", "write", "ls", "hidden", "shown"]),
        ),
        (json!(["ls", "none"]), vec![], json!(["ls", "shown"])),
        (json!([]), vec![], json!(["shown"])),
        (
            json!(["-shown", "ls"]),
            vec!["--tools", "+grep,-ls"],
            json!(["grep"]),
        ),
        (json!(["ls"]), vec!["--tools", "read"], json!(["read"])),
        (json!(["ls"]), vec!["--no-builtin-tools"], json!(["shown"])),
    ] {
        home.settings(json!({ "defaultTools": setting }));
        let mut rpc = home.rpc(&options);
        rpc.answer_to("hi").await;
        assert_eq!(json!(tools(&server)), expected, "{setting} {options:?}");
        rpc.close().await;
    }
    // A reload activates the tools that the settings name now, and leaves out those that they did
    // not name before.
    home.settings(json!({ "defaultTools": ["read"] }));
    let mut rpc = home.rpc(&[]);
    rpc.answer_to("hi").await;
    home.settings(json!({ "defaultTools": ["read", "ls"] }));
    rpc.ok(json!({"type": "reload"})).await;
    rpc.answer_to("hi").await;
    assert_eq!(json!(tools(&server)), json!(["read", "shown", "ls"]));
}

/// Newer versions pass the session's file in the environment.
#[tokio::test]
async fn a_command_of_the_model_has_the_session_in_its_environment() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "mine.ts",
        r#"import { createBashTool } from "@mariozechner/pi-coding-agent";
        export default (pi) => {
          for (const [name, options] of [["open"], ["closed", { exposeSessionEnvironment: false }],
              ["hooked", { spawnHook: (context) => ({ ...context, env: { PI_MODEL: `hooked ${context.env.PI_MODEL}` } }) }]])
            pi.registerTool({ ...createBashTool(process.cwd(), options), name });
        };"#,
    );
    let mut rpc = home.rpc(&["--thinking", "off"]);
    let state = rpc.ok(json!({"type": "get_state"})).await;
    let id = state["sessionId"].as_str().unwrap();
    let file = state["sessionFile"].as_str().unwrap();
    let command = "echo $PI_SESSION_ID $PI_SESSION_FILE $PI_PROVIDER $PI_MODEL $PI_REASONING_LEVEL $AI_AGENT.";
    for (tool, expected) in [
        ("bash", format!("{id} {file} scripted scripted-1 off pi.\n")),
        ("open", format!("{id} {file} scripted scripted-1 off pi.\n")),
        ("closed", "pi.\n".to_owned()),
        ("hooked", "hooked scripted-1 .\n".to_owned()),
    ] {
        server.push(Answer::tool(tool, json!({ "command": command })));
        server.push(Answer::text("Fine."));
        let reported = rpc.run("go").await;
        let result = (reported.iter()).find(|line| line["type"] == "tool_execution_end");
        let output = &result.unwrap()["result"]["content"][0]["text"];
        assert_eq!(*output, expected, "{tool}");
    }
    // Commands of the user do not get it.
    let bash = rpc
        .ok(json!({"type": "bash", "command": "echo $PI_SESSION_ID."}))
        .await;
    assert_eq!(bash["output"], ".\n");
}
