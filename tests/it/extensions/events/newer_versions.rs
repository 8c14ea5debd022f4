//! Events and members that newer extensions rely on, and conflicts of names: what is emitted, what
//! may be changed, which extension wins. `fixtures/events.ts` listens.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, Terminal, message_end, prompt, with_extension};

/// Runs a slash command and returns the JSON of its notification.
async fn notified_json(rpc: &mut Rpc, command: &str) -> Value {
    rpc.ok(prompt(&format!("/{command}"))).await;
    let output = rpc.ui("notify").await;
    let text = output["message"].as_str().expect("a text");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Extension and text of warnings during the load, sorted, because some come later than others.
async fn load_warnings(rpc: &mut Rpc, count: usize) -> Vec<(String, String)> {
    let mut output = Vec::new();
    while output.len() < count {
        let warning = rpc.event("extension_warning").await;
        assert_eq!(warning["event"], "load");
        let text = |member: &str| warning[member].as_str().unwrap().to_owned();
        output.push((text("extensionPath"), text("message")));
    }
    output
}

/// The events since the previous call, once this one is the last.
async fn logged_until(rpc: &mut Rpc, last: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    while all.last() != Some(last) {
        let log = notified_json(rpc, "log").await;
        all.extend(log.as_array().expect("a list").iter().cloned());
    }
    all
}

#[tokio::test]
async fn events_of_newer_versions_are_emitted() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"theme": "light", "enabledModels": ["scripted/scripted-1:high"]}));
    let models = home.agent_dir().join("models.json");
    let mut described: Value =
        serde_json::from_str(&std::fs::read_to_string(&models).unwrap()).unwrap();
    described["providers"]["scripted"]["headers"] = json!({"x-left-out": "1", "x-kept": "1"});
    std::fs::write(&models, described.to_string()).unwrap();
    std::fs::create_dir_all(home.agent_dir().join("prompts")).unwrap();
    std::fs::write(home.agent_dir().join("prompts/greet.md"), "Greet $1.").unwrap();
    home.extension("events.ts", include_str!("fixtures/events.ts"));
    let mut rpc = home.rpc(&[]);

    // A listener to an event that no version has is reported once, and the extension works.
    // Extensions made for several versions listen to events of other versions.
    let output = load_warnings(&mut rpc, 1).await;
    let [(_, text)] = &output[..] else {
        panic!("{output:?}")
    };
    assert!(
        text.contains("There is no event \"tool_cal\""),
        "{output:?}"
    );

    let known = notified_json(&mut rpc, "know").await;
    let expected = json!({
        "theme": "light",
        "scoped": [["scripted-1", "high"]],
        "trusted": true,
        "session": true,
        "mode": "rpc",
        "thinking": "high",
        "editor": true,
        "options": ["appendSystemPrompt", "contextFiles", "customPrompt", "cwd",
            "promptGuidelines", "sections", "selectedTools", "skills", "toolGuidelines", "toolSnippets"],
        "snippet": "string",
        "flag": "first",
        "there": [],
    });
    let mut known = known;
    // Options that are not set are absent.
    let options = known["options"].as_array_mut().unwrap();
    for name in ["customPrompt", "appendSystemPrompt"] {
        if !options.contains(&json!(name)) {
            options.push(json!(name));
        }
    }
    options.sort_by_key(|name| name.as_str().unwrap().to_owned());
    assert_eq!(known, expected);

    rpc.ok(json!({"type": "set_thinking_level", "level": "low"}))
        .await;
    rpc.ok(json!({"type": "set_session_name", "name": "Named"}))
        .await;
    let log = logged_until(&mut rpc, &json!(["session_info_changed", "Named"])).await;
    assert_eq!(log[0], json!(["thinking_level_select", "low", "high"]));

    server.push(Answer::text("Hello."));
    rpc.run("hi").await;
    let settled = json!(["agent_settled", false]);
    let log = logged_until(&mut rpc, &settled).await;
    let tools = json!(["read", "bash", "edit", "write"]);
    let expected = [
        json!(["input", "hi", "rpc", null]),
        json!(["before_agent_start", tools, true]),
        json!(["turn_start", 0]),
        settled.clone(),
    ];
    assert_eq!(log, expected);
    let request = server.last_request();
    assert_eq!(request.headers.get("x-added").unwrap(), "by an extension");
    assert_eq!(request.headers.get("x-kept").unwrap(), "1");
    assert!(!request.headers.contains_key("x-left-out"));
    let system = request.body["system"].to_string();
    for part in ["- Be brave.", "This is the end."] {
        assert!(system.contains(part), "{system}");
    }

    // In the second turn the cancelled subscription gets nothing.
    server.push(Answer::text("Greetings."));
    rpc.ok(prompt("/say /greet Ada")).await;
    rpc.event("agent_end").await;
    let log = logged_until(&mut rpc, &settled).await;
    assert_eq!(log[0], json!(["input", "/greet Ada", "extension", null]));
    assert!(log.iter().all(|entry| entry[0] != "turn_start"), "{log:?}");
    let sent = server.last_request().body.to_string();
    assert!(sent.contains("Greet Ada."), "{sent}");
}

#[tokio::test]
async fn dialogs_compactions_and_steering_are_emitted() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("events.ts", include_str!("fixtures/events.ts"));
    let mut rpc = home.rpc(&[]);

    rpc.send(&json!({"type": "prompt", "message": "/ask"}).to_string())
        .await;
    let question = rpc.ui("confirm").await;
    rpc.reply(&question, json!({"confirmed": true})).await;
    let end = json!(["ui_prompt_end", "ui_prompt", "confirm", "Sure?"]);
    let log = logged_until(&mut rpc, &end).await;
    let begin = json!(["ui_prompt_start", "ui_prompt", "confirm", "Sure?"]);
    assert!(log.contains(&begin), "{log:?}");

    rpc.refused(json!({"type": "compact"})).await;
    let log = logged_until_type(&mut rpc, "session_compact_failed").await;
    let failed = log.last().unwrap();
    assert_eq!(failed[1], "manual");
    assert!(failed[2].is_string() && failed[3] == false, "{failed}");

    server.push(Answer::text("Slow.").held());
    server.push(Answer::text("Steered."));
    rpc.ok(prompt("go")).await;
    rpc.wait("the user's message", message_end("user")).await;
    rpc.ok(json!({"type": "prompt", "message": "faster", "streamingBehavior": "steer"}))
        .await;
    server.release();
    rpc.event("agent_end").await;
    let log = logged_until(&mut rpc, &json!(["agent_settled", false])).await;
    let steered = json!(["input", "faster", "rpc", "steer"]);
    assert!(log.contains(&steered), "{log:?}");

    rpc.refused(json!({"type": "compact", "customInstructions": "no"}))
        .await;
    let log = logged_until_type(&mut rpc, "session_compact_failed").await;
    let requested = log
        .iter()
        .position(|entry| entry[0] == "session_before_compact");
    if let Some(requested) = requested {
        assert_eq!(
            log[requested],
            json!(["session_before_compact", "manual", false])
        );
        let failed = json!(["session_compact_failed", "manual", null, true, false, false]);
        assert_eq!(log.last().unwrap(), &failed);
    }
}

async fn logged_until_type(rpc: &mut Rpc, kind: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    while all.last().is_none_or(|last| last[0] != kind) {
        let log = notified_json(rpc, "log").await;
        all.extend(log.as_array().expect("a list").iter().cloned());
    }
    all
}

const FIRST: &str = include_str!("fixtures/newer-versions/first.ts");

const SECOND: &str = r#"export default (pi) => {
  pi.registerFlag("own", { type: "string", description: "second", default: "two" });
  pi.registerMessageRenderer("kind", () => undefined);
  pi.registerEntryRenderer("kind", () => undefined);
  pi.registerToolRenderer(() => undefined);
  for (const end of ["?", "!"]) pi.registerMarkdownTransformer((text) => text + end, { messageTypes: ["assistant"] });
  pi.registerShortcut("Ctrl+Shift+X", { description: "of the second", handler: (ctx) => ctx.ui.notify("second") });
  pi.registerCommand("flag", { handler: async (_args, ctx) => ctx.ui.notify(`second ${pi.getFlag("own")}`) });
};"#;

#[tokio::test]
async fn the_loser_of_a_name_is_reported_and_works() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("a.ts", FIRST);
    home.extension("b.ts", SECOND);
    let mut rpc = home.rpc(&["--own", "given"]);
    // The order is not fixed.
    for part in [
        "Flag \"--own\" conflicts with",
        "The renderer of \"kind\" conflicts",
    ] {
        let is_it = |line: &Value| {
            let text = line["message"].as_str().unwrap_or_default();
            line["type"] == "extension_warning" && text.contains(part)
        };
        let warning = match rpc.lines().into_iter().find(is_it) {
            Some(warning) => warning,
            None => rpc.wait(part, is_it).await,
        };
        let path = warning["extensionPath"].as_str().unwrap();
        assert!(path.ends_with("b.ts"), "{warning}");
        let text = warning["message"].as_str().unwrap();
        assert!(text.contains("a.ts"), "{warning}");
    }
    rpc.ok(prompt("/flag:1")).await;
    rpc.notified("first given").await;
    rpc.ok(prompt("/flag:2")).await;
    rpc.notified("second given").await;
    // Over RPC the user's shell commands belong to pi, as in the original.
    let ran = rpc
        .ok(json!({"type": "bash", "command": "echo far; exit 5"}))
        .await;
    assert_eq!(
        (&ran["output"], &ran["exitCode"]),
        (&json!("far\n"), &json!(5))
    );
}

#[test]
fn keys_and_commands_work_at_a_terminal() {
    let home = Home::bare();
    home.extension("a.ts", FIRST);
    home.extension("b.ts", SECOND);
    let mut terminal = Terminal::open(&home, "xterm", &["--provider", "demo", "--model", "demo"]);
    terminal.see("Tool \"ls\" replaces the built-in one");
    terminal.see("'escape' from");
    terminal.see("conflicts with built-in shortcut. Skipping.");
    terminal.see("'ctrl+shift+x' registered by both");
    terminal.see("> ");
    terminal.line("/shortcut");
    terminal.see("of the second [b.ts]");
    terminal.line("/shortcut ctrl+shift+X");
    terminal.see("second");
    terminal.line("/shortcut ctrl+z");
    terminal.see("No extension has the key ctrl+z");

    terminal.line("!done");
    terminal.see("it was done");
    terminal.line("!far");
    terminal.see("far away");
    terminal.see("3");
    terminal.line("!far forever");
    terminal.see("far forever");
    terminal.keys("\x1b");
    terminal.see("(aborted)");
    terminal.line("!echo near$((40+2))");
    terminal.see("near42");
}

#[tokio::test]
async fn handlers_change_the_system_prompt_of_a_run() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            let asked = 0;
            pi.on("before_agent_start", ({ systemPrompt }) =>
                (asked += 1) === 1 ? { systemPrompt: systemPrompt + "\nFIRST" } : undefined);
            for (const event of ["turn_start", "agent_end"]) pi.on(event, (_, ctx) =>
                ctx.ui.notify(`${event} ${asked} ${ctx.getSystemPrompt().endsWith("\nFIRST")}`));
        };"#,
    )
    .await;
    for (round, expected) in [(1, true), (2, false)] {
        server.push(Answer::text("Yes."));
        rpc.ok(prompt("go")).await;
        rpc.notified(&format!("turn_start {round} {expected}"))
            .await;
        rpc.notified(&format!("agent_end {round} {expected}")).await;
        rpc.event("agent_end").await;
    }
}

/// The removed text went to the model.
#[tokio::test]
async fn in_place_changes_of_a_throwing_handler_count() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "ext.ts",
        include_str!("fixtures/newer-versions/in-place-changes-of-a-throwing-handler-count.ts"),
    );
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        let before = server.requests().len();
        server.push(Answer::tool("bash", json!({"command": "echo secret"})));
        server.push(Answer::text("Done."));
        rpc.ok(prompt("another secret")).await;
        rpc.event("agent_end").await;
        let requests = server.requests();
        let [_, last] = &requests[before..] else {
            panic!("{who}: {}", requests.len() - before)
        };
        assert_eq!(last.body["metadata"]["user_id"], "changed", "{who}");
        let messages = last.body["messages"].to_string();
        assert!(!messages.contains("another secret"), "{who}: {messages}");
        assert!(messages.contains("[the context is redacted]"), "{who}");
        assert!(
            messages.contains("[the result is redacted]"),
            "{who}: {messages}"
        );
        let lines = rpc.lines();
        let errors = lines
            .iter()
            .filter(|line| line["type"] == "extension_error");
        let errors: Vec<&Value> = errors.map(|error| &error["error"]).collect();
        let round = ["context broke", "request broke"];
        let expected = [&round[..], &["result broke"], &round[..]].concat();
        assert_eq!(errors, expected, "{who}");
    }
}

/// The handler has timed out.
#[tokio::test]
async fn in_place_changes_of_a_timed_out_handler_count() {
    let (server, home, _) = with_extension(
        r#"export default (pi) => pi.on("context", async (event) => {
            event.messages[0].content[0].text = "[redacted]";
            await new Promise(() => {});
        });"#,
    )
    .await;
    home.settings(json!({"extensionTimeouts": {"handler": 500}}));
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Yes."));
    assert_eq!(rpc.answer_to("a secret").await, "Yes.");
    let requested = server.requests()[0].body["messages"].to_string();
    assert!(
        requested.contains("[redacted]") && !requested.contains("a secret"),
        "{requested}"
    );
}
