//! The built-in tools as extensions use them: unchanged, with other operations, wrapped, and
//! overridden. `fixtures/tools.ts` makes the checks.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, command_result, prompt, text_of};

#[tokio::test]
async fn the_tools_work_for_extensions_as_for_models() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("tools.ts", include_str!("fixtures/tools.ts"));
    let mut rpc = home.rpc(&[]);

    let local = command_result(&mut rpc, "local").await;
    let coding = json!(["read", "bash", "edit", "write"]);
    let reading = json!(["read", "grep", "find", "ls"]);
    let expected = json!({
        "lists": [coding, reading, coding, reading],
        "here": "one\ntwo\nthree",
        "spread": ["description", "execute", "label", "name", "parameters", "prepareArguments"],
        "read": {"content": [{"type": "text", "text":
            "two\n\n[1 more lines in file. Use offset=3 to continue.]"}]},
        "definition": ["description", "execute", "label", "name", "parameters",
            "prepareArguments", "promptGuidelines", "promptSnippet"],
        "shellOfEdit": "self",
        "prepared": {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]},
        "missing": "ENOENT: no such file or directory, acces",
        "bash": "hi\nerr\n",
        "firstUpdate": {"content": []},
        "failed": "out\n\n\nCommand exited with code 3",
        "aborted": "Command aborted",
        "written": "Successfully wrote 3 bytes to sub/b.txt",
        "edited": "Successfully replaced 1 block(s) in a.txt.",
        "after": "one\n2\nthree",
        "grep": "a.txt:3: three",
        "find": "a.txt\nsub/b.txt",
        "ls": "a.txt\nsub/",
        "shell": ["-c"],
    });
    assert_eq!(local, expected);

    let elsewhere = command_result(&mut rpc, "elsewhere").await;
    let expected = json!({
        "read": "alpha\nbeta",
        "missing": "no no.txt there",
        "picture": "Read image file [image/png]|image/png",
        "written": "Successfully wrote 1 bytes to d/new.txt",
        "edited": "Successfully replaced 1 block(s) in far.txt.",
        "unedited": "File not found: no.txt",
        "files": ["alpha\ngamma", "N"],
        "untouched": false,
        "asked": ["access far.txt", "read far.txt", "access no.txt", "mkdir d",
            "write d/new.txt", "access far.txt", "read far.txt", "write far.txt",
            "access no.txt"],
        "ls": "A/\nb.txt",
        "noFolder": "Path not found:",
        "find": "x/*.rs\n{\"ignore\":[\"**/node_modules/**\",\"**/.git/**\"],\"limit\":7}",
        "grep": "hay.txt-1- far hay\nhay.txt:2: needle\nhay.txt-3- far hay",
    });
    assert_eq!(elsewhere, expected);

    let shells = command_result(&mut rpc, "shells").await;
    let expected = json!({
        "remote": "far away",
        "failed": "far away\n\nCommand exited with code 2",
        "seen": [["set -e\nrun", "", 5, "string"], ["fail", "", null, "string"]],
        "aborted": "half\n\nCommand aborted",
        "timedOut": "half\n\nCommand timed out after 4 seconds",
        "broken": "no such host",
        "noCode": "(no output)",
        "hooked": ["ahooked", shells["hooked"][1]],
        "folder": true,
        "prefixed": "1\n",
        "local": {"exitCode": 4},
        "output": "b\n",
        "localStopped": "aborted",
        "localLate": "timeout:0.2",
        "localLost": "Cannot execute bash commands.",
        "hung": "begun\n\nCommand aborted",
    });
    assert_eq!(shells, expected);
}

const DEFINED: &str = include_str!("fixtures/built-in-tools.ts");

/// A handler that compares with `null` sees it.
#[tokio::test]
async fn details_that_are_null_stay_null() {
    for original in [true, false] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.extension(
            "ext.ts",
            r#"export default (pi) => {
                pi.registerTool({ name: "nul", label: "Nul", description: "d",
                    parameters: { type: "object", properties: {} },
                    execute: async () => ({ content: [{ type: "text", text: "no" }], details: null }) });
                pi.on("tool_result", ({ details }, ctx) => ctx.ui.notify(`seen ${details}`));
                pi.registerCommand("say", { handler: async () =>
                    pi.sendMessage({ customType: "c", content: "x", display: true, details: null }) });
            };"#,
        );
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        server.push(Answer::tool("nul", json!({})));
        server.push(Answer::text("Done."));
        rpc.ok(prompt("go")).await;
        rpc.notified("seen null").await;
        let end = rpc.event("tool_execution_end").await;
        assert_eq!(end["result"].get("details"), Some(&Value::Null));
        rpc.event("agent_end").await;
        let stored = home.entries();
        let mut messages = stored.iter().map(|entry| &entry["message"]);
        let result = messages.find(|it| it["role"] == "toolResult").unwrap();
        assert_eq!(result.get("details"), Some(&Value::Null));
        rpc.ok(prompt("/say")).await;
        let output = rpc
            .wait("the message", |line| {
                line["type"] == "message_end" && line["message"]["role"] == "custom"
            })
            .await;
        assert_eq!(output["message"].get("details"), Some(&Value::Null));
    }
}

/// A result of `null` was ignored, and the details of the handler before stayed.
#[tokio::test]
async fn details_of_null_restore_the_tools_own() {
    for original in [true, false] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.extension(
            "ext.ts",
            r#"export default (pi) => {
                const tool = (name, details) => pi.registerTool({ name, label: name, description: "d",
                    parameters: { type: "object", properties: {} },
                    execute: async () => ({ content: [{ type: "text", text: "x" }], details }) });
                tool("own", { own: 1 });
                tool("bare", undefined);
                pi.on("tool_result", () => ({ details: { a: 1 } }));
                pi.on("tool_result", () => ({ details: null }));
                pi.on("tool_result", ({ details }, ctx) => ctx.ui.notify(`seen ${details}`));
            };"#,
        );
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        server.push(Answer::tools([("own", json!({})), ("bare", json!({}))]));
        server.push(Answer::text("Done."));
        rpc.ok(prompt("go")).await;
        rpc.notified("seen null").await;
        for details in [Some(json!({"own": 1})), None] {
            let end = rpc.event("tool_execution_end").await;
            assert_eq!(end["result"].get("details"), details.as_ref(), "{end}");
        }
        rpc.event("agent_end").await;
    }
}

/// The limits follow the original where they meet or make no sense.
#[tokio::test]
async fn truncation_is_described_as_in_the_original() {
    let script = r#"import { truncateHead, truncateTail } from "@mariozechner/pi-coding-agent";
export default (pi) => pi.registerCommand("cut", { handler: async (_args, ctx) => {
  const limits = [undefined, null, -1, 0, 1, 1.5, 2, 5];
  const said = [];
  for (const text of ["\u{e9}".repeat(40), "one\ntwo\n\u{e9}\n", "\n\n", ""])
    for (const maxLines of limits) for (const maxBytes of limits) for (const cut of [truncateHead, truncateTail])
      said.push(JSON.stringify([text, cut(text, { maxLines, maxBytes })]));
  ctx.ui.notify(said.join("\n"));
} });"#;
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("cut.ts", script);
    let mut output = Vec::new();
    for original in [true, false] {
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        rpc.ok(prompt("/cut")).await;
        let reported = rpc.ui("notify").await;
        output.push(reported["message"].as_str().unwrap().to_owned());
    }
    let (theirs, ours) = (output[0].lines(), output[1].lines());
    assert_eq!(ours.clone().count(), 512);
    for (theirs, ours) in theirs.zip(ours) {
        assert_eq!(ours, theirs);
    }
}

#[tokio::test]
async fn a_tool_definition_has_its_effects() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file("a.txt", "A");
    home.extension("a-first.ts", DEFINED);
    home.extension(
        "b-second.ts",
        r#"export default (pi) => pi.registerTool({ name: "side", label: "x", description: "mine",
            parameters: { type: "object" }, execute: async () => ({ content: [] }) });"#,
    );
    let mut rpc = home.rpc(&[]);
    let conflict = rpc.event("extension_warning").await;
    assert_eq!(conflict["event"], "load");
    let text = conflict["message"].as_str().unwrap();
    assert!(text.starts_with("Tool \"side\" conflicts with"), "{text}");
    assert!(text.contains("a-first.ts"), "{text}");
    let loser = conflict["extensionPath"].as_str().unwrap();
    assert!(loser.ends_with("b-second.ts"), "{conflict}");

    let mut results = async |calls: Answer| -> Vec<String> {
        server.push(calls);
        server.push(Answer::text("I see."));
        let events = rpc.run("go").await;
        let ends = events.iter();
        let ends = ends.filter(|event| event["type"] == "tool_execution_end");
        ends.map(|event| text_of(&event["result"])).collect()
    };
    let side_by_side = results(Answer::tools([
        ("side", json!({"how": 1})),
        ("side", json!({"old": "2"})),
    ]))
    .await;
    assert_eq!(side_by_side, ["side 1 of 2", "side 2 of 2"]);
    let one_by_one = results(Answer::tools([
        ("side", json!({"how": 1})),
        ("lone", json!({"how": 2})),
    ]))
    .await;
    assert_eq!(one_by_one, ["side 1 of 1", "lone 2 of 1"]);
    let wrong = results(Answer::tools([
        ("side", json!({"how": 0})),
        ("read", json!({"path": "a.txt"})),
    ]))
    .await;
    let text = wrong.iter().find(|text| text.starts_with("Validation"));
    let text = text.expect("the arguments are refused");
    assert!(text.starts_with("Validation failed for tool \"side\":\n  - how: "));
    assert!(
        text.ends_with("Received arguments:\n{\n  \"how\": 0\n}"),
        "{text}"
    );
    assert!(wrong.contains(&"read: A".to_string()), "{wrong:?}");

    let reported = server.last_request().body["system"].to_string();
    for part in ["- side: Snippet of side", "- Guideline of lone"] {
        assert!(reported.contains(part), "{reported}");
    }
    let listed = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(listed["isStreaming"], false);
}

/// Newer versions document `isError`, and published tools rely on it: the model was told of a
/// success.
#[tokio::test]
async fn a_result_with_is_error_is_an_error() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "says.ts",
        r#"export default (pi) => {
          for (const [name, isError] of [["fails", true], ["almost", "yes"], ["works", false]]) {
            pi.registerTool({ name, label: name, description: name, parameters: { type: "object", properties: {} },
              execute: async () => ({ content: [{ type: "text", text: name }], details: { kept: name }, isError }) });
          }
          pi.on("tool_result", ({ toolName, isError }, ctx) => ctx.ui.notify(`${toolName} ${isError}`));
        };"#,
    );
    server.push(Answer::tools([
        ("fails", json!({})),
        ("almost", json!({})),
        ("works", json!({})),
    ]));
    server.push(Answer::text("I see."));
    let mut rpc = home.rpc(&[]);
    let events = rpc.run("go").await;
    let results = events
        .iter()
        .filter(|event| event["type"] == "message_end" && event["message"]["role"] == "toolResult");
    let results: Vec<Value> = results
        .map(|event| {
            let message = &event["message"];
            json!([
                message["toolName"],
                message["isError"],
                message["details"]["kept"]
            ])
        })
        .collect();
    assert_eq!(
        results,
        [
            json!(["fails", true, "fails"]),
            json!(["almost", false, "almost"]),
            json!(["works", false, "works"]),
        ]
    );
    let reported = events.iter().filter_map(|event| event["message"].as_str());
    let reported: Vec<&str> = reported.collect();
    assert!(reported.contains(&"fails true"), "{reported:?}");
    let sent = server.last_request().body["messages"].to_string();
    assert_eq!(sent.matches("\"is_error\":true").count(), 1, "{sent}");
}

/// Extensions look for Node's error message.
#[tokio::test]
async fn a_failed_spawn_has_nodes_error_message() {
    let home = Home::bare();
    home.extension(
        "runs.ts",
        r#"export default (pi) => pi.registerCommand("runs", { handler: async (_args, ctx) => {
          const told = [await pi.exec("no-such-program", []), await pi.exec("/", []), await pi.exec("ls", [], { cwd: "/no/such" })];
          ctx.ui.notify(JSON.stringify(told.map(({ code, stderr }) => [code, stderr])));
        } });"#,
    );
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    rpc.ok(prompt("/runs")).await;
    let expected = json!([
        [1, "spawn no-such-program ENOENT"],
        [1, "spawn / EACCES"],
        [1, "spawn ls ENOENT"],
    ]);
    rpc.notified(&expected.to_string()).await;
}
