//! The tools that the model is offered while extensions register new ones, and the events of
//! running tools.

use model_server::Answer;
use serde_json::{Value, json};

use crate::support::{prompt, text_of, with_extension};

const TOOLS: &str = include_str!("fixtures/active-tools/tools.ts");

/// Every registration activated all tools again.
#[tokio::test]
async fn inactive_tools_stay_inactive_when_others_are_registered() {
    let (_server, home, mut rpc) = with_extension(TOOLS).await;
    rpc.ok(prompt("/only read one")).await;
    rpc.notified("active: read one").await;
    rpc.ok(prompt("/add fresh")).await;
    rpc.notified("active: read one fresh").await;
    // Registering the same name again changes nothing.
    rpc.ok(prompt("/only read one")).await;
    rpc.ok(prompt("/add fresh")).await;
    rpc.ok(prompt("/add bash")).await;
    rpc.ok(prompt("/which")).await;
    let reported = rpc.lines();
    let last = reported
        .iter()
        .rev()
        .find(|line| line["method"] == "notify");
    assert_eq!(last.unwrap()["message"], "active: read one");
    // A reload activates all tools.
    home.extension("more.ts", "export default (pi) => {};");
    rpc.ok(json!({"type": "reload"})).await;
    rpc.ok(prompt("/which")).await;
    rpc.notified("active: read one two counts").await;
}

/// An update that came together with the result was sometimes lost.
#[tokio::test]
async fn tool_updates_are_emitted_before_the_result() {
    let (server, _home, mut rpc) = with_extension(TOOLS).await;
    for _ in 0..10 {
        server.push(Answer::tool("counts", json!({})));
        server.push(Answer::text("Counted."));
        let events = rpc.run("count").await;
        let parts: Vec<&Value> = events
            .iter()
            .filter(|event| event["type"] == "tool_execution_update")
            .map(|event| &event["partialResult"]["content"][0]["text"])
            .collect();
        assert_eq!(parts, ["part 1", "part 2", "part 3", "part 4", "part 5"]);
    }
}

/// A tool that finds tools for the model (`tool search`) could offer them only in the next run.
#[tokio::test]
async fn a_tool_activated_in_a_run_can_be_called_in_it() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/active-tools/a-tool-activated-in-a-run-can-be-called-in-it.ts"
    ))
    .await;
    server.push(Answer::tool("search", json!({})));
    server.push(Answer::tool("found", json!({})));
    server.push(Answer::tool("made", json!({})));
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    let offered = |request: &Value| -> Vec<String> {
        let tools = request["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let requests = server.requests();
    assert_eq!(offered(&requests[0].body), ["search"]);
    assert_eq!(offered(&requests[1].body), ["search", "found", "made"]);
    let output = requests[3].body["messages"].to_string();
    assert!(
        output.contains("found ran") && output.contains("made ran"),
        "{output}"
    );
}

/// A read-only or plan mode that a handler set left the model `write` and `bash`: the list that
/// handlers received was taken for their choice.
#[tokio::test]
async fn tools_chosen_in_before_agent_start_hold_for_that_run() {
    let set = r#"pi.setActiveTools(["read"]);"#;
    let register = r#"pi.registerTool({ name: "late", label: "late", description: "late",
      parameters: { type: "object", properties: {} }, execute: async () => ({ content: [] }) });"#;
    let sections = r#"event.systemPromptOptions.sections.plan = "Plan only.";"#;
    let text = r#"return { systemPrompt: event.systemPrompt + " Plan only." };"#;
    let edit = r#"event.systemPromptOptions.selectedTools = ["read", "grep"];"#;
    let usual = ["read", "bash", "edit", "write"];
    let with_late = ["read", "bash", "edit", "write", "late"];
    let cases: [(&[&str], &[&str]); 8] = [
        (&[], &usual),
        (&[set], &["read"]),
        (&[register], &with_late),
        (&[set, register], &["read", "late"]),
        (&[set, sections], &["read"]),
        (&[set, text], &["read"]),
        (&[edit], &["read", "grep"]),
        // Editing the list counts, whatever was called before.
        (&[set, edit], &["read", "grep"]),
    ];
    for (body, offered) in cases {
        let handler = body.concat();
        let source = format!(
            "export default (pi) => {{ pi.on(\"before_agent_start\", (event) => {{ {handler} }}); }};"
        );
        let (server, _home, mut rpc) = with_extension(&source).await;
        server.push(Answer::text("Fine."));
        rpc.run("go").await;
        let requested = server.last_request().body;
        let tools = requested["tools"].as_array().unwrap().iter();
        let names: Vec<&Value> = tools.map(|tool| &tool["name"]).collect();
        assert_eq!(names, offered, "{handler}");
        let system = requested["system"].to_string();
        assert_eq!(
            system.contains("- bash:"),
            offered.contains(&"bash") || body.contains(&text),
            "{handler}"
        );
        let plans = handler.contains("Plan only.");
        assert_eq!(system.contains("Plan only."), plans, "{handler}");
    }
}

/// A turn keeps the tools with which it began, as in the newest original.
#[tokio::test]
async fn tools_chosen_when_a_turn_starts_are_for_the_next() {
    for event in ["agent_start", "turn_start", "message_start", "message_end"] {
        let source = format!(
            r#"export default (pi) => {{
              let first = true;
              pi.on("{event}", () => {{
                if (first) pi.setActiveTools(["read"]);
                first = false;
              }});
            }};"#
        );
        let (server, _home, mut rpc) = with_extension(&source).await;
        server.push(Answer::tool("read", json!({"path": "none"})));
        server.push(Answer::text("Done."));
        rpc.run("go").await;
        let requests = server.requests();
        let counts = requests.iter().map(|request| {
            let tools = request.body["tools"].as_array();
            tools.unwrap().len()
        });
        assert_eq!(counts.collect::<Vec<_>>(), [4, 1], "{event}");
    }
}

/// A plan mode that began in one of these events let the call of the same turn write.
#[tokio::test]
async fn a_tool_deactivated_before_the_answer_does_not_run() {
    for event in [
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "context",
        "before_provider_request",
        "after_provider_response",
    ] {
        let source = format!(
            r#"export default (pi) => {{
              pi.on("{event}", () => pi.setActiveTools(["read"]));
            }};"#
        );
        let (server, home, mut rpc) = with_extension(&source).await;
        server.push(Answer::tool("bash", json!({"command": "touch ran"})));
        server.push(Answer::text("Done."));
        let events = rpc.run("go").await;
        let end = events
            .iter()
            .find(|event| event["type"] == "tool_execution_end")
            .unwrap();
        assert_eq!(end["isError"], true, "{event}");
        assert_eq!(text_of(&end["result"]), "Tool bash not found", "{event}");
        assert!(!home.cwd().join("ran").exists(), "{event}");
    }
}

/// The first tool was taken for one that the user had deactivated.
#[tokio::test]
async fn tools_of_session_start_stay_in_the_next_session() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
          pi.on("session_start", () => {
            for (const name of ["one", "two"]) {
              pi.registerTool({ name, label: name, description: name,
                parameters: { type: "object", properties: {} },
                execute: () => ({ content: [] }) });
            }
          });
          pi.registerCommand("which", { handler: (_, ctx) => ctx.ui.notify(pi.getActiveTools().join(" ")) });
        };"#,
    )
    .await;
    for _ in 0..2 {
        rpc.ok(json!({"type": "new_session"})).await;
        rpc.ok(prompt("/which")).await;
        rpc.notified("read bash edit write one two").await;
    }
}

#[tokio::test]
async fn excluded_tools_are_absent_whoever_registers_them() {
    let (server, home, rpc) = with_extension(TOOLS).await;
    rpc.close().await;
    let mut rpc = home.rpc(&["--exclude-tools", "bash,two"]);
    rpc.ok(prompt("/only bash read two one")).await;
    rpc.notified("active: read one").await;
    rpc.ok(json!({"type": "new_session"})).await;
    server.push(Answer::text("Fine."));
    rpc.run("hi").await;
    let body = server.last_request().body;
    let tools = body["tools"].as_array().unwrap().iter();
    let names: Vec<&Value> = tools.map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read", "edit", "write", "one", "counts"]);
    assert!(!body["system"].to_string().contains("- bash:"));
}

/// Some servers refuse an empty list, and others a conversation with calls and without a list.
#[tokio::test]
async fn no_tools_are_an_empty_list_once_there_are_calls() {
    let (server, _home, mut rpc) = with_extension(TOOLS).await;
    rpc.ok(prompt("/only nothing")).await;
    rpc.notified("active: ").await;
    server.push(Answer::text("Hello."));
    rpc.run("hello").await;
    server.push(Answer::tool("one", json!({})));
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    let requests = server.requests();
    let tools = requests.iter().map(|request| request.body.get("tools"));
    let none = json!([]);
    assert_eq!(tools.collect::<Vec<_>>(), [None, None, Some(&none)]);
}

/// A writing tool of an extension was offered beside the listed read-only tools; `*` kept only
/// tools of extensions.
#[tokio::test]
async fn only_listed_tools_are_offered() {
    let (server, home, rpc) = with_extension(TOOLS).await;
    rpc.close().await;
    let usual = ["read", "bash", "edit", "write"];
    let of_extension = ["one", "two", "counts"];
    let all = [&usual[..], &["grep", "find", "ls"], &of_extension].concat();
    for (words, expected) in [
        (
            vec!["-t", "read,grep,find,ls"],
            vec!["read", "grep", "find", "ls"],
        ),
        (vec!["--tools", "two,ls"], vec!["two", "ls"]),
        (vec!["--tools", "*"], all),
        (vec!["--tools", "t*,*s"], vec!["ls", "two", "counts"]),
        (vec!["-nt"], vec![]),
        (vec!["--no-tools", "-t", "+one"], vec!["one"]),
        (vec!["-nbt"], of_extension.to_vec()),
        (
            vec!["--tools", "+ls,-bash,-two"],
            vec!["read", "edit", "write", "ls", "one", "counts"],
        ),
        (vec!["-xt", "*o*,edit"], vec!["read", "bash", "write"]),
    ] {
        let mut rpc = home.rpc(&words);
        server.push(Answer::text("Fine."));
        rpc.run("hi").await;
        let body = server.last_request().body;
        let tools = body["tools"].as_array().into_iter().flatten();
        let names: Vec<&Value> = tools.map(|tool| &tool["name"]).collect();
        assert_eq!(json!(names), json!(expected), "{words:?}");
        rpc.close().await;
    }
    let mut rpc = home.rpc(&["--tools", "read,grep,find,ls"]);
    rpc.ok(prompt("/only read write one")).await;
    rpc.notified("active: read").await;
    rpc.ok(prompt("/add write")).await;
    rpc.notified("active: read").await;
}

#[tokio::test]
async fn unknown_tool_names_are_refused() {
    let (server, home, rpc) = with_extension(TOOLS).await;
    rpc.close().await;
    server.push(Answer::text("Fine."));
    let words = [
        "--tools",
        "read,reed,one,mcp__*",
        "--use-theme",
        "lihgt",
        "-p",
        "hi",
    ];
    let output = home.run(&words, "").await;
    for refused in [
        r#"--tools: there is no tool "reed", "mcp__*". There are: read, bash, "#,
        r#"--use-theme: there is no theme "lihgt". There are: dark, light"#,
    ] {
        assert!(output.stderr.contains(refused), "{}", output.stderr);
    }
    output.ok();
    for (words, refused) in [
        (["--tools", "read,+ls"], "cannot be mixed"),
        (["--tools", "-mcp__*"], "not patterns: -mcp__*"),
        (
            ["--tui-mode", "wide"],
            "[possible values: regular, fullscreen]",
        ),
        (["--use-theme", "-p"], "needs the name of a theme"),
    ] {
        let error = home.run(&words, "").await.failed(1);
        assert!(error.contains(refused), "{error}");
    }
}

/// Scripts for the newest original pass these options.
#[tokio::test]
async fn options_of_the_newest_original_are_accepted() {
    let (server, home, rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("theme", {
          handler: (_args, ctx) => ctx.ui.notify(`it is ${ctx.ui.theme.name}`),
        });"#,
    )
    .await;
    rpc.close().await;
    server.push(Answer::text("Fine."));
    let options = ["--no-mcp", "--use-theme", "light", "--tui-mode", "regular"];
    let output = home.run(&[&options[..], &["-p", "hi"]].concat(), "").await;
    assert_eq!(output.stderr, "");
    assert_eq!(output.ok(), "Fine.\n");
    let mut rpc = home.rpc(&options);
    rpc.ok(prompt("/theme")).await;
    rpc.notified("it is light").await;
}
