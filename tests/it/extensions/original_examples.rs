//! The examples of the original package as published on npm: each runs until its effect is visible.

use std::fs;
use std::path::Path;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, locked, message_end, prompt, text_of, until_exists};

async fn with(example: &str) -> (ModelServer, Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example(example);
    let rpc = home.rpc(&[]);
    (server, home, rpc)
}

/// Lets the model call one tool and returns the tool's result.
async fn call(server: &ModelServer, rpc: &mut Rpc, tool: &str, arguments: Value) -> Value {
    server.push(Answer::tool(tool, arguments));
    server.push(Answer::text("I see."));
    rpc.ok(prompt("use the tool")).await;
    let result = rpc.event("tool_execution_end").await;
    rpc.event("agent_end").await;
    result
}

fn outcome(result: &Value) -> (String, bool) {
    (text_of(&result["result"]), result["isError"] == true)
}

async fn tools_offered(server: &ModelServer) -> Vec<String> {
    let tools = server.last_request().body["tools"].clone();
    let tools = tools.as_array().expect("tools").iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn an_extension_calls_a_model() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "asks.ts",
        r#"import { complete, getModel, streamSimple } from "@mariozechner/pi-ai";
        export default (pi) => pi.registerCommand("ask", { handler: async (_args, ctx) => {
            const context = { messages: [{ role: "user", content: "hi", timestamp: 0 }] };
            const { apiKey } = await ctx.modelRegistry.getApiKeyAndHeaders(ctx.model);
            const answer = await complete(getModel("scripted", "scripted-1"), context, { apiKey });
            const kinds = new Set();
            for await (const event of streamSimple(ctx.model, context, { apiKey })) kinds.add(event.type);
            ctx.ui.notify(answer.content[0].text + " " + [...kinds].join(","));
        } });"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("one"));
    server.push(Answer::text("two"));
    rpc.ok(prompt("/ask")).await;
    rpc.notified("one start,text_start,text_delta,text_end,done")
        .await;
}

#[tokio::test]
async fn skills_and_prompts_of_an_extension_are_loaded() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file("more/prompts/greet.md", "Say hello to $1.");
    home.file(
        "more/skills/dig/SKILL.md",
        "---\nname: dig\ndescription: digs holes\n---\nTake a spade.",
    );
    home.extension(
        "more.ts",
        r#"export default (pi) => pi.on("resources_discover", () => ({
            skillPaths: ["more/skills"], promptPaths: ["more/prompts/greet.md"] }));"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("Hello."));
    rpc.run("/greet Ada").await;
    let request = server.last_request().body.to_string();
    assert!(request.contains("Say hello to Ada."), "{request}");
    assert!(request.contains("digs holes"), "{request}");
}

#[tokio::test]
async fn hello() {
    let (server, _home, mut rpc) = with("hello.ts").await;
    let result = call(&server, &mut rpc, "hello", json!({"name": "Ann"})).await;
    assert_eq!(outcome(&result), ("Hello, Ann!".into(), false));
    assert_eq!(result["result"]["details"], json!({"greeted": "Ann"}));
    let reported = server.last_request().body.to_string();
    assert!(reported.contains("Hello, Ann!"), "{reported}");
}

#[tokio::test]
async fn permission_gate() {
    let (server, home, mut rpc) = with("permission-gate.ts").await;
    let file = home.file("precious", "");
    for (answer, text, survives) in [
        ("No", "Blocked by user", true),
        ("Yes", "(no output)", false),
    ] {
        server.push(Answer::tool("bash", json!({"command": "rm -rf precious"})));
        server.push(Answer::text("I see."));
        rpc.ok(prompt("clean up")).await;
        let question = rpc.ui("select").await;
        assert_eq!(question["options"], json!(["Yes", "No"]));
        assert!(
            question["title"]
                .as_str()
                .unwrap()
                .contains("rm -rf precious"),
            "{question}"
        );
        rpc.reply(&question, json!({"value": answer})).await;
        let result = rpc.event("tool_execution_end").await;
        assert_eq!(outcome(&result), (text.into(), survives));
        rpc.event("agent_end").await;
        assert_eq!(file.exists(), survives);
    }
}

#[tokio::test]
async fn permission_gate_without_a_user() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example("permission-gate.ts");
    let file = home.file("precious", "");
    server.push(Answer::tool("bash", json!({"command": "rm -rf precious"})));
    server.push(Answer::text("I could not."));
    assert_eq!(
        home.run(&["-p", "clean up"], "").await.ok(),
        "I could not.\n"
    );
    let reported = server.last_request().body.to_string();
    assert!(
        reported.contains("Dangerous command blocked (no UI for confirmation)"),
        "{reported}"
    );
    assert!(file.exists());
}

#[tokio::test]
async fn protected_paths() {
    let (server, home, mut rpc) = with("protected-paths.ts").await;
    let arguments = json!({"path": ".env", "content": "KEY=x"});
    let result = call(&server, &mut rpc, "write", arguments).await;
    assert_eq!(
        outcome(&result),
        (r#"Path ".env" is protected"#.into(), true)
    );
    assert!(!home.cwd().join(".env").exists());
    let arguments = json!({"path": "free.txt", "content": "x"});
    let result = call(&server, &mut rpc, "write", arguments).await;
    assert_eq!(result["isError"], false);
    let lines = rpc.lines();
    let notes: Vec<&Value> = lines
        .iter()
        .filter(|line| line["method"] == "notify")
        .collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0]["message"], "Blocked write to protected path: .env");
    assert_eq!(notes[0]["notifyType"], "warning");
}

#[tokio::test]
async fn todo() {
    let (server, home, mut rpc) = with("todo.ts").await;
    for text in ["milk", "bread"] {
        call(
            &server,
            &mut rpc,
            "todo",
            json!({"action": "add", "text": text}),
        )
        .await;
    }
    let result = call(
        &server,
        &mut rpc,
        "todo",
        json!({"action": "toggle", "id": 1}),
    )
    .await;
    assert_eq!(outcome(&result), ("Todo #1 completed".into(), false));
    rpc.close().await;

    let mut rpc = home.rpc(&["-c"]);
    let result = call(&server, &mut rpc, "todo", json!({"action": "list"})).await;
    assert_eq!(
        outcome(&result),
        ("[x] #1: milk\n[ ] #2: bread".into(), false)
    );
    // The list comes from the branch, not from a variable of the extension.
    rpc.ok(json!({"type": "new_session"})).await;
    let result = call(&server, &mut rpc, "todo", json!({"action": "list"})).await;
    assert_eq!(outcome(&result), ("No todos".into(), false));
    let wrong = call(&server, &mut rpc, "todo", json!({"action": "eat"})).await;
    assert_eq!(wrong["isError"], true, "{wrong}");
}

#[tokio::test]
async fn event_bus() {
    let (_server, _home, mut rpc) = with("event-bus.ts").await;
    rpc.notified("Event from event-bus-example: Session started")
        .await;
    rpc.ok(prompt("/emit good news")).await;
    rpc.notified("Event from /emit command: good news").await;
}

#[tokio::test]
async fn dynamic_tools() {
    let (server, _home, mut rpc) = with("dynamic-tools.ts").await;
    rpc.notified("Registered dynamic tool: echo_session").await;
    let result = call(&server, &mut rpc, "echo_session", json!({"message": "a"})).await;
    assert_eq!(outcome(&result), ("[session] a".into(), false));
    assert!(!tools_offered(&server).await.contains(&"shout".into()));
    rpc.ok(prompt("/add-echo-tool Shout")).await;
    rpc.notified("Registered dynamic tool: shout").await;
    let result = call(&server, &mut rpc, "shout", json!({"message": "b"})).await;
    assert_eq!(outcome(&result), ("[shout] b".into(), false));
    assert!(tools_offered(&server).await.contains(&"shout".into()));
    let system = server.last_request().body["system"].to_string();
    assert!(
        system.contains("Echo back user-provided text with [shout] prefix"),
        "{system}"
    );
}

#[tokio::test]
async fn input_transform() {
    let (server, _home, mut rpc) = with("input-transform.ts").await;
    rpc.ok(prompt("ping")).await;
    rpc.notified("pong").await;
    assert_eq!(server.requests().len(), 0, "no model was asked");
    server.push(Answer::text("A language."));
    rpc.ok(prompt("?quick What is TypeScript?")).await;
    let user = rpc.wait("the prompt", message_end("user")).await;
    let expected = "Respond briefly in 1-2 sentences: What is TypeScript?";
    assert_eq!(text_of(&user["message"]), expected);
    rpc.event("agent_end").await;
    let reported = server.last_request().body.to_string();
    assert!(reported.contains(expected), "{reported}");
}

#[tokio::test]
async fn pirate() {
    let (server, _home, mut rpc) = with("pirate.ts").await;
    server.repeat(Answer::text("Arrr."));
    let mut pirates = Vec::new();
    for note in ["Arrr! Pirate mode enabled!", "Pirate mode disabled"] {
        rpc.ok(prompt("/pirate")).await;
        rpc.notified(note).await;
        rpc.run("hello").await;
        let system = server.last_request().body["system"].to_string();
        pirates.push(system.contains("You are now in PIRATE MODE"));
    }
    assert_eq!(pirates, [true, false]);
}

#[tokio::test]
async fn session_name() {
    let (server, home, mut rpc) = with("session-name.ts").await;
    rpc.ok(prompt("/session-name")).await;
    rpc.notified("No session name set").await;
    rpc.ok(prompt("/session-name the big one")).await;
    rpc.notified("Session named: the big one").await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["sessionName"], "the big one");
    server.push(Answer::text("Fine."));
    rpc.run("go").await;
    rpc.close().await;
    let mut rpc = home.rpc(&["-c"]);
    rpc.ok(prompt("/session-name")).await;
    rpc.notified("Session: the big one").await;
}

#[tokio::test]
async fn send_user_message() {
    let (server, home, mut rpc) = with("send-user-message.ts").await;
    server.push(Answer::text("Four."));
    rpc.ok(prompt("/ask What is 2+2?")).await;
    let user = rpc.wait("the message", message_end("user")).await;
    assert_eq!(text_of(&user["message"]), "What is 2+2?");
    rpc.event("agent_end").await;

    let wait_for_go = "touch started; until [ -e go ]; do sleep 0.01; done";
    server.push(Answer::tool("bash", json!({"command": wait_for_go})));
    server.push(Answer::text("Steered."));
    server.push(Answer::text("Followed."));
    rpc.ok(prompt("begin")).await;
    until_exists(&home.cwd().join("started")).await;
    rpc.ok(prompt("/followup LATER")).await;
    rpc.notified("Follow-up queued").await;
    rpc.ok(prompt("/steer SOONER")).await;
    rpc.wait("both queued", |event| {
        event["steering"] == json!(["SOONER"]) && event["followUp"] == json!(["LATER"])
    })
    .await;
    home.file("go", "");
    rpc.event("agent_end").await;
    let requests = server.requests();
    let bodies = requests[2..].iter().map(|request| request.body.to_string());
    let requested: Vec<_> = bodies
        .map(|body| (body.contains("SOONER"), body.contains("LATER")))
        .collect();
    assert_eq!(requested, [(true, false), (true, true)]);
}

#[tokio::test]
async fn confirm_destructive() {
    let (server, _home, mut rpc) = with("confirm-destructive.ts").await;
    server.push(Answer::text("Hello."));
    rpc.run("hi").await;
    for (confirmed, messages) in [(false, 2), (true, 0)] {
        rpc.send(r#"{"type":"new_session","id":"new"}"#).await;
        let question = rpc.ui("confirm").await;
        assert_eq!(question["title"], "Clear session?");
        rpc.reply(&question, json!({"confirmed": confirmed})).await;
        if !confirmed {
            rpc.notified("Clear cancelled").await;
        }
        let response = rpc.wait("the response", |line| line["id"] == "new").await;
        assert_eq!(response["data"], json!({"cancelled": !confirmed}));
        let state = rpc.ok(json!({"type": "get_state"})).await;
        assert_eq!(state["messageCount"], messages);
    }
}

#[tokio::test]
async fn timed_confirm() {
    let (_server, _home, mut rpc) = with("timed-confirm.ts").await;
    rpc.send(r#"{"type":"prompt","message":"/timed"}"#).await;
    let question = rpc.ui("confirm").await;
    assert_eq!(
        (&question["title"], &question["timeout"]),
        (&json!("Timed Confirmation"), &json!(5000))
    );
    rpc.reply(&question, json!({"confirmed": true})).await;
    rpc.notified("Confirmed by user!").await;

    rpc.send(r#"{"type":"prompt","message":"/timed-select"}"#)
        .await;
    let question = rpc.ui("select").await;
    rpc.reply(&question, json!({"value": "Option B"})).await;
    rpc.notified("Selected: Option B").await;

    rpc.send(r#"{"type":"prompt","message":"/timed"}"#).await;
    rpc.ui("confirm").await;
    rpc.notified("Cancelled or timed out").await;
    rpc.send(r#"{"type":"prompt","message":"/timed-signal"}"#)
        .await;
    rpc.ui("confirm").await;
    rpc.notified("Dialog timed out (auto-cancelled)").await;
}

#[tokio::test]
async fn rpc_demo() {
    let (server, _home, mut rpc) = with("rpc-demo.ts").await;
    assert_eq!(rpc.ui("setTitle").await["title"], "pi RPC Demo");
    let widget = rpc.ui("setWidget").await;
    assert_eq!(widget["widgetKey"], "rpc-demo");
    assert_eq!(
        widget["widgetLines"],
        json!(["--- RPC Extension UI Demo ---", "Loaded and ready."])
    );
    assert_eq!(rpc.ui("setStatus").await["statusText"], "Turns: 0");

    rpc.send(r#"{"type":"prompt","message":"/rpc-input"}"#)
        .await;
    let question = rpc.ui("input").await;
    assert_eq!(question["placeholder"], "type something...");
    rpc.reply(&question, json!({"value": "words"})).await;
    rpc.notified("You entered: words").await;

    rpc.send(r#"{"type":"prompt","message":"/rpc-editor"}"#)
        .await;
    let question = rpc.ui("editor").await;
    assert_eq!(question["prefill"], "Line 1\nLine 2\nLine 3");
    rpc.reply(&question, json!({"cancelled": true})).await;
    rpc.notified("Editor cancelled").await;

    rpc.ok(prompt("/rpc-prefill")).await;
    let text = rpc
        .wait("the editor text", |line| {
            line["method"] == "set_editor_text"
        })
        .await;
    assert_eq!(text["text"], "This text was set by the rpc-demo extension.");

    server.push(Answer::text("Hi."));
    rpc.ok(prompt("hello")).await;
    assert_eq!(rpc.ui("setStatus").await["statusText"], "Turn 1 running...");
    assert_eq!(rpc.ui("setStatus").await["statusText"], "Turn 1 done");
}

#[tokio::test]
async fn with_deps() {
    let (server, _home, mut rpc) = with("with-deps").await;
    let result = call(
        &server,
        &mut rpc,
        "parse_duration",
        json!({"duration": "2 days"}),
    )
    .await;
    assert_eq!(
        outcome(&result),
        ("2 days = 172800000 milliseconds".into(), false)
    );
    let result = call(
        &server,
        &mut rpc,
        "parse_duration",
        json!({"duration": "a while"}),
    )
    .await;
    assert_eq!(
        outcome(&result),
        (r#"Invalid duration: "a while""#.into(), true)
    );
}

#[tokio::test]
async fn reload_runtime() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.example("reload-runtime.ts");
    let command = |name: &str| {
        format!(
            r#"export default (pi) => pi.registerCommand("{name}", {{ handler: async () => {{}} }});"#
        )
    };
    home.extension("changing.ts", &command("before"));
    let mut rpc = home.rpc(&[]);
    assert_eq!(commands(&mut rpc).await, ["before", "reload-runtime"]);
    home.extension("changing.ts", &command("after"));
    rpc.ok(prompt("/reload-runtime")).await;
    assert_eq!(commands(&mut rpc).await, ["after", "reload-runtime"]);
    let result = call(&server, &mut rpc, "reload_runtime", json!({})).await;
    let expected = "Queued /reload-runtime as a follow-up command.";
    assert_eq!(outcome(&result), (expected.into(), false));
}

async fn commands(rpc: &mut Rpc) -> Vec<String> {
    let commands = rpc.ok(json!({"type": "get_commands"})).await["commands"].clone();
    let names = commands
        .as_array()
        .unwrap()
        .iter()
        .map(|command| command["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn file_trigger() {
    // The path in the example is fixed, so tests that use it run one at a time.
    let _lock = locked(Path::new("/tmp/agent-trigger.lock"));
    let trigger = Path::new("/tmp/agent-trigger.txt");
    fs::write(trigger, "").unwrap();
    let (server, _home, mut rpc) = with("file-trigger.ts").await;
    rpc.notified("Watching /tmp/agent-trigger.txt").await;
    server.push(Answer::text("Running them."));
    fs::write(trigger, "Run the tests\n").unwrap();
    let custom = rpc
        .wait("the trigger's message", message_end("custom"))
        .await;
    assert_eq!(
        text_of(&custom["message"]),
        "External trigger: Run the tests"
    );
    assert_eq!(custom["message"]["customType"], "file-trigger");
    rpc.event("agent_end").await;
    let reported = server.last_request().body.to_string();
    assert!(
        reported.contains("External trigger: Run the tests"),
        "{reported}"
    );
    rpc.close().await;
    fs::remove_file(trigger).unwrap();
}
