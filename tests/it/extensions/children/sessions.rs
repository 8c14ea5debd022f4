//! Child sessions and agents that extensions start, and every name that the original's packages
//! export. `fixtures/sdk.ts` makes the checks.

use std::process::Command;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Reference, command_result};

const SEEDED: &str = include_str!("fixtures/sessions/seeded.ts");

/// pi-btw copies the conversation into a child session in this way.
const IN_A_ROW: &str = include_str!("fixtures/sessions/in-a-row.ts");

#[tokio::test]
async fn calls_to_a_child_take_effect_in_order() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("row.ts", IN_A_ROW);
    for _ in 0..120 {
        server.push(Answer::text("Yes."));
    }
    let mut rpc = home.rpc(&[]);
    assert_eq!(
        command_result(&mut rpc, "row").await,
        json!({
            "two prompts": {"fr": 8},
            "the first is said": {"a": 8},
            "told when it is over": {"message_start message_end": 8},
            "it streams": {"true": 8},
            "they wait": {"5": 8},
            "in a row": {"x 1 2 3 4 5": 8},
            "cleared": {"a": 8},
            "what came after": {"x b": 8},
        })
    );
}

#[tokio::test]
async fn the_agent_of_a_child_takes_messages() {
    for original in [true, false] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.extension("seeded.ts", SEEDED);
        home.settings(json!({"retry": {"enabled": false}}));
        server.push(Answer::tool("told", json!({})));
        server.push(Answer::text("Bob."));
        server.push(Answer::error(400, "no such luck"));
        server.push(Answer::text("I am custom."));
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        let found = command_result(&mut rpc, "seeded").await;
        let expected = json!({
            "seeded": [1, 1, true],
            "after": ["user", "user", "assistant", "toolResult", "assistant"],
            "result": "false false",
            "fine": null,
            "failed": true,
            "queued": true,
            "cleared": null,
            "pending": 0,
            "tools": ["told"],
            "made": ["function", "function"],
        });
        assert_eq!(found, expected, "original: {original}");
        let requests = server.requests();
        let first = requests[0].body["messages"].to_string();
        assert!(first.contains("My name is Bob."), "{first}");
        let last = &requests.last().unwrap().body;
        assert_eq!(
            (&last["model"], &last["max_tokens"]),
            (&json!("custom"), &json!(77))
        );
    }

    let home = Home::bare();
    let source = r#"import { createAgentSession } from "@mariozechner/pi-coding-agent";
        export default (pi) => pi.registerCommand("refused", { handler: async (_args, ctx) => {
          const { session } = await createAgentSession({ model: ctx.model });
          const said = [];
          const { sessionManager } = ctx;
          await createAgentSession({ sessionManager }).catch((error) => said.push(error.message.split(":")[0]));
          for (const set of [
            () => (session.agent.streamFn = () => undefined),
            () => (session.agent.state.systemPrompt = "Be kind."),
            () => (session.agent.anything = 1),
          ]) {
            try { set(); said.push("done"); } catch (error) { said.push(error.message.split(":")[0]); }
          }
          session.messages.push({ role: "user" });
          await session.prompt("x").catch((error) => said.push(error.message));
          session.messages.pop();
          await session.prompt("x");
          said.push(session.messages.length);
          ctx.ui.notify(JSON.stringify(said));
        } });"#;
    home.extension("refused.ts", source);
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    let expected = json!([
        "createAgentSession",
        "agent.streamFn cannot be set",
        "agent.state.systemPrompt cannot be set",
        "Cannot add property anything, object is not extensible",
        "messages cannot be used: missing field `content`",
        2,
    ]);
    assert_eq!(command_result(&mut rpc, "refused").await, expected);
}

#[tokio::test]
async fn an_extension_runs_child_sessions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("sdk.ts", include_str!("fixtures/sdk.ts"));
    let mut rpc = home.rpc(&[]);

    server.push(Answer::tools([
        ("echo", json!({"what": "it"})),
        ("echo", json!({"text": "throw"})),
    ]));
    server.push(Answer::text("Heard."));
    server.push(Answer::text("Again."));
    server.push(Answer::tool("echo", json!({"text": "wait"})));
    let session = command_result(&mut rpc, "session").await;
    let expected = json!({
        "is": true,
        "before": [false, "low", "scripted-1", ["read", "echo"]],
        "seen": ["agent_start", "turn_start", "message_start", "message_end",
            "tool_execution_start", "tool_execution_end", "turn_end", "agent_end", "agent_settled"],
        "streaming": [true, false, false],
        "silent": true,
        "messages": ["user: first", "assistant: echo|echo", "toolResult: echo it false",
            "toolResult: thrown by echo", "assistant: Heard.", "user: second",
            "assistant: Again.", "custom: noted"],
        "last": "Again.",
        "thinking": "high",
        "levels": ["off", "minimal", "low", "medium", "high"],
        "name": "Beside",
        "entries": 7,
        "active": ["echo"],
        "tool": "sdk",
        "stats": 2,
        "forkable": ["first", "second"],
        "bash": "shell\n",
        "prompt": ["You are small.", "And quick."],
        "noModel": "Model not found: none/none",
        "written": "sessionManager.appendModelChange() is not supported of a session that \
            createAgentSession has begun: the session belongs to the agent. Use prompt(), setModel(), \
            compact() and the like",
        "errors": [],
        "fallback": null,
        "busy": "Agent is already processing",
        "queued": [1, ["later"], ["later"]],
        "aborted": ["toolResult: was aborted"],
        "kept": true,
        "gone": "This AgentSession was disposed",
    });
    assert_eq!(session, expected);
    let first = &server.requests()[0].body;
    let system = first["system"].to_string();
    assert!(system.contains("Be kind.") && system.contains("You are small."));
    let tools = first["tools"].as_array().unwrap().iter();
    let names: Vec<&Value> = tools.map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read", "echo"]);

    server.push(Answer::text("At once."));
    server.push(Answer::text("And more."));
    let quick = command_result(&mut rpc, "quick").await;
    let expected = json!({
        "messages": ["user: first", "assistant: At once.", "user: more", "assistant: And more."],
        "aborted": "no error: undefined",
    });
    assert_eq!(quick, expected);

    server.push(Answer::text("Stored."));
    let services = command_result(&mut rpc, "services").await;
    let back = json!(["user: stored", "assistant: Stored."]);
    let expected = json!({"inside": true, "lines": true, "fresh": [true, 0], "back": back});
    assert_eq!(services, expected);

    server.push(Answer::tool("read", json!({"path": "one.txt"})));
    server.push(Answer::text("It says one."));
    let file = command_result(&mut rpc, "file").await;
    assert_eq!(file["messages"][2], "toolResult: ONE");
    assert_eq!(file["cwd"], true);
    // The session of the extension is unaffected.
    let own = rpc.ok(json!({"type": "get_messages"})).await;
    assert_eq!(own["messages"], json!([]));
}

#[tokio::test]
async fn agents_resource_loaders_and_rpc_clients_work() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("sdk.ts", include_str!("fixtures/sdk.ts"));
    let mut rpc = home.rpc(&[]);

    server.push(Answer::text("Hello yourself."));
    let agent = command_result(&mut rpc, "agent").await;
    let output = agent["said"].as_array().unwrap();
    let expected = json!([
        "user: go",
        "user: faster",
        "assistant: echo|echo|echo|echo",
        "toolResult: echo a undefined",
        "toolResult: not that",
        "toolResult: changed"
    ]);
    // Calls that may not run are answered first.
    let sorted = |list: &[Value]| {
        let mut texts: Vec<&str> = list.iter().map(|one| one.as_str().unwrap()).collect();
        texts.sort_unstable();
        texts.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut reported = output[..7].to_vec();
    let refused = reported
        .iter()
        .position(|one| one.as_str().unwrap().contains("Validation"));
    reported.remove(refused.expect("the arguments are refused"));
    assert_eq!(sorted(&reported), sorted(expected.as_array().unwrap()));
    let rest = json!(["assistant: steered", "user: more", "assistant: followed"]);
    assert_eq!(json!(output[7..]), rest);
    let agent_without_said = crate::support::without(&agent, &["said"]);
    let expected = json!({
        "asked": [2, 7, 9],
        "options": ["apiKey", "signal", "transport"],
        "key": "key",
        "events": ["agent_start", "turn_start", "message_start", "message_end",
            "message_update", "tool_execution_start", "tool_execution_end",
            "tool_execution_update", "turn_end", "agent_end"],
        "updates": 2,
        "idle": [false, false, 0],
        "cannot": "Cannot continue from message role: assistant",
        "twice": "Agent is already processing",
        "aborted": ["toolResult: was aborted", "assistant: "],
        "failed": ["nothing left to say", "error"],
        "reset": 0,
        "loop": ["agent_start", "turn_start", "message_start", "message_end", "turn_end",
            "agent_end"],
        "looped": ["user: hello", "assistant: Hello yourself."],
        "continued": ["assistant: went on"],
        "grown": 2,
        "ran": ["user: hello", "assistant: ran"],
        "proxied": "error",
        "empty": "Cannot continue: no messages in context",
    });
    let mut agent = agent_without_said;
    let mut events: Vec<Value> = agent["events"].as_array().unwrap().clone();
    let mut wanted: Vec<Value> = expected["events"].as_array().unwrap().clone();
    for list in [&mut events, &mut wanted] {
        list.sort_by_key(|one| one.as_str().unwrap().to_owned());
    }
    assert_eq!(events, wanted);
    agent["events"] = expected["events"].clone();
    assert_eq!(agent, expected);

    let resources = command_result(&mut rpc, "resources").await;
    let expected = json!({
        "skills": [["dig", "digs holes", "more/dig/SKILL.md"]],
        "none": 0,
        "gone": [],
        "block": true,
        "empty": "",
        "files": ["Be kind."],
        "parsed": {"name": "dig", "location": "/d", "content": "Take it.", "userMessage": "now"},
        "unparsed": null,
        "loader": ["Mine.", 1, 1],
        "runtime": "Extension runtime not initialized. Action methods cannot be called during \
                    extension loading.",
    });
    assert_eq!(resources, expected);

    server.push(Answer::text("From the child."));
    let client = command_result(&mut rpc, "client").await;
    let expected = json!({
        "model": "scripted-1",
        "text": "From the child.",
        "ended": "agent_end",
        "messages": 2,
        "bash": "c\n",
        "refused": "Model not found: none/none",
        "stopped": "Client not started",
    });
    assert_eq!(client, expected);
}

const MODULES: [&str; 5] = [
    "@mariozechner/pi-coding-agent",
    "@mariozechner/pi-ai",
    "@mariozechner/pi-ai/oauth",
    "@mariozechner/pi-agent-core",
    "@mariozechner/pi-tui",
];

/// The stand-in for a missing name reports, when it is used, that the name is missing and why.
#[tokio::test]
async fn every_name_of_the_original_exists() {
    let program = Reference::install().program();
    let script = format!(
        "const names = {{}};
         for (const module of {}) names[module] = Object.keys(await import(module));
         console.log(JSON.stringify(names));",
        json!(MODULES)
    );
    let folder = program.parent().unwrap();
    let output = Command::new("node")
        .args(["--input-type=module", "-e", &script])
        .current_dir(folder)
        .output()
        .expect("node is installed");
    let names = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let names: Value = serde_json::from_str(&names).unwrap_or_else(|e| panic!("{e}: {errors}"));

    let home = Home::bare();
    home.extension(
        "names.ts",
        &format!(
            "const wanted = {names};
             export default (pi) => pi.registerCommand('names', {{ handler: async (_args, ctx) => {{
               const undefinedOnes = [], silent = [], refused = [];
               for (const [module, names] of Object.entries(wanted)) {{
                 const exports = await import(module);
                 for (const name of names) {{
                   if (exports[name] === undefined) undefinedOnes.push(`${{module}} ${{name}}`);
                   if (typeof exports[name] !== 'function') continue;
                   try {{ exports[name].name; }} catch (error) {{
                     refused.push(name);
                     const reason = `\"${{name}}\" of ${{module}} is not available in this version of pi`;
                     if (!error.message.startsWith(reason)) silent.push(error.message);
                   }}
                 }}
               }}
               ctx.ui.notify(JSON.stringify({{ undefinedOnes, silent, refused }}));
             }} }});"
        ),
    );
    let mut rpc = home.rpc(&[]);
    let found = command_result(&mut rpc, "names").await;
    assert_eq!(found["undefinedOnes"], json!([]));
    assert_eq!(found["silent"], json!([]));
    // Refused names have reasons of their own.
    let refused = found["refused"].as_array().unwrap();
    for name in ["main", "runRpcMode", "runPrintMode"] {
        assert!(refused.contains(&json!(name)), "{refused:?}");
    }
    for name in [
        "createAgentSession",
        "createBashTool",
        "RpcClient",
        "Agent",
        "streamProxy",
    ] {
        assert!(!refused.contains(&json!(name)), "{name} is not there");
    }
}
