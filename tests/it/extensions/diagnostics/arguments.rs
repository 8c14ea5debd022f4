//! Arguments that cannot be meant: the error names the call, the argument and a valid value.
//! Arguments whose meaning is clear are accepted.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt, with_extension};

/// Runs each line of JavaScript by itself, with `pi` and `ctx`; returns what each threw.
async fn thrown(lines: &[&str]) -> Vec<String> {
    let calls: Vec<String> = lines
        .iter()
        .map(|line| format!("async () => {{ await ({line}); }}"))
        .collect();
    let source = format!(
        "export default (pi) => pi.registerCommand(\"try\", {{ handler: async (_, ctx) => {{\n\
         const words = [];\n\
         for (const call of [{}]) {{\n\
         try {{ await call(); words.push(\"nothing\"); }}\n\
         catch (error) {{ words.push(`${{error.name}}: ${{error.message}}`); }}\n\
         }}\n\
         ctx.ui.notify(JSON.stringify(words));\n\
         }} }});",
        calls.join(",\n")
    );
    let (_server, _home, mut rpc) = with_extension(&source).await;
    rpc.ok(prompt("/try")).await;
    let is_it = |line: &Value| {
        line["method"] == "notify"
            && line["message"]
                .as_str()
                .is_some_and(|text| text.starts_with('['))
    };
    let output = rpc.wait("what was thrown", is_it).await;
    serde_json::from_str(output["message"].as_str().unwrap()).unwrap()
}

async fn check(cases: &[(&str, &str)]) {
    let lines: Vec<&str> = cases.iter().map(|(line, _)| *line).collect();
    let found = thrown(&lines).await;
    for ((line, expected), found) in cases.iter().zip(found) {
        assert_eq!(found, *expected, "{line}");
    }
}

#[tokio::test]
async fn wrong_arguments_of_registrations_are_named() {
    let tool = r#"name: "t", label: "T", description: "d", parameters: { type: "object" }"#;
    let with = |more: &str| format!("pi.registerTool({{ {tool}, {more} }})");
    let guidelines = with(r#"execute() {}, promptGuidelines: "x""#);
    let prepares = with("execute() {}, prepareArguments: 5");
    let handler = with("handler() {}");
    let mode = with(r#"execute() {}, executionMode: "seq""#);
    check(&[
        ("pi.on()", "TypeError: pi.on: event must be a string, not undefined"),
        (
            "pi.on([\"input\"], () => {})",
            "TypeError: pi.on: event must be a string, not an array",
        ),
        (
            "pi.on(\"input\")",
            "TypeError: pi.on: the handler of \"input\" must be a function, not undefined",
        ),
        (
            "pi.registerCommand({ name: \"x\", handler() {} })",
            "TypeError: pi.registerCommand: name must be a string, not an object",
        ),
        (
            "pi.registerCommand(\"x\", () => {})",
            "TypeError: pi.registerCommand: options of \"x\" must be an object with a handler, not a \
             function",
        ),
        (
            "pi.registerCommand(\"x\", { execute() {} })",
            "TypeError: pi.registerCommand: handler of \"x\" must be a function, not undefined (it has \
             execute)",
        ),
        (
            "pi.registerTool(\"t\", { execute() {} })",
            "TypeError: pi.registerTool: tool must be an object with name, description, parameters \
             and execute, not \"t\"",
        ),
        (
            "pi.registerTool({ execute() {} })",
            "TypeError: pi.registerTool: name must be a string, not undefined",
        ),
        (
            &handler,
            "TypeError: pi.registerTool: execute of \"t\" must be a function, not undefined (it has \
             name, label, description, parameters, handler)",
        ),
        (
            &prepares,
            "TypeError: pi.registerTool: prepareArguments of \"t\" must be a function, not 5",
        ),
        (
            &guidelines,
            "TypeError: pi.registerTool: promptGuidelines: invalid type: string \"x\", expected an \
             array",
        ),
        (
            &mode,
            "TypeError: pi.registerTool: executionMode: unknown value `seq`, expected `parallel` or \
             `sequential`",
        ),
        (
            "pi.registerShortcut(\"ctrl+x\", () => {})",
            "TypeError: pi.registerShortcut: options of \"ctrl+x\" must be an object with a handler, \
             not a function",
        ),
        (
            "pi.registerMessageRenderer(\"x\", {})",
            "TypeError: pi.registerMessageRenderer: the renderer of \"x\" must be a function, not an \
             object",
        ),
        (
            "pi.events.on(\"x\")",
            "TypeError: pi.events.on: the listener of \"x\" must be a function, not undefined",
        ),
    ])
    .await;
}

#[tokio::test]
async fn wrong_arguments_of_actions_are_named() {
    check(&[
        (
            "pi.exec(\"ls\", \"-l\")",
            "TypeError: pi.exec: args must be an array of strings, not \"-l\" (write [\"-l\"])",
        ),
        (
            "pi.exec()",
            "TypeError: pi.exec: command must be the name of a program, not undefined",
        ),
        (
            "pi.exec(\"ls\", [{}])",
            "TypeError: pi.exec: args[0] must be a string, not an object",
        ),
        (
            "pi.exec(\"ls\", [], { timeout: \"soon\" })",
            "TypeError: pi.exec: options.timeout must be a number of milliseconds, not \"soon\"",
        ),
        (
            "pi.exec(\"ls\", [], { signal: new AbortController() })",
            "TypeError: pi.exec: options.signal must be an AbortSignal, not an object (pass the \
             controller's .signal)",
        ),
        (
            "pi.setModel(ctx.modelRegistry.find(\"no\", \"such\"))",
            "TypeError: pi.setModel: model must be a model, not undefined \
             (ctx.modelRegistry.find(provider, id) gives one, or undefined if there is none)",
        ),
        (
            "pi.setActiveTools(\"read\")",
            "TypeError: pi.setActiveTools: names must be an array of strings, not \"read\"",
        ),
        (
            "pi.appendEntry({ customType: \"x\" })",
            "TypeError: pi.appendEntry: customType must be a string, not an object",
        ),
        (
            "pi.appendEntry(\"x\", 5n)",
            "TypeError: pi.appendEntry: the arguments cannot be written as JSON: Do not know how \
             to serialize a BigInt",
        ),
        // Usable values are accepted.
        ("pi.exec(\"echo\", [1, true], null)", "nothing"),
        ("pi.exec(\"echo\", [], { timeout: \"5000\" })", "nothing"),
        ("pi.setActiveTools(new Set([\"read\"]))", "nothing"),
        ("pi.setSessionName(7)", "nothing"),
    ])
    .await;
}

/// The user read "[object Object]".
#[tokio::test]
async fn an_object_instead_of_a_text_is_refused() {
    check(&[
        (
            "ctx.ui.editor({ title: \"t\" })",
            "TypeError: ctx.ui.editor: title must be a string, not an object",
        ),
        (
            "ctx.ui.editor(\"t\", [\"x\"])",
            "TypeError: ctx.ui.editor: prefill must be a string, not an array",
        ),
        (
            "ctx.ui.select({ title: \"t\", options: [] })",
            "TypeError: ctx.ui.select: title must be a string, not an object",
        ),
        (
            "ctx.ui.select(\"t\", [{ label: \"a\" }])",
            "TypeError: ctx.ui.select: options[0] must be a string, not an object",
        ),
        (
            "ctx.ui.select(\"t\")",
            "TypeError: ctx.ui.select: options must be an array of strings, not undefined",
        ),
        (
            "ctx.ui.select(\"t\", [\"a\"], { timeout: \"soon\" })",
            "TypeError: ctx.ui.select: options.timeout must be a number of milliseconds, not \"soon\"",
        ),
        (
            "ctx.ui.confirm(\"t\", { timeout: 50 })",
            "TypeError: ctx.ui.confirm: message must be a string, not an object (the options of a dialog \
             are the third argument)",
        ),
        (
            "ctx.ui.input(\"t\", { placeholder: \"x\" })",
            "TypeError: ctx.ui.input: placeholder must be a string, not an object (the options of a dialog \
             are the third argument)",
        ),
        (
            "ctx.ui.notify({ message: \"x\" })",
            "TypeError: ctx.ui.notify: message must be a string, not an object",
        ),
        (
            "ctx.ui.setStatus(\"k\", {})",
            "TypeError: ctx.ui.setStatus: text must be a string, not an object",
        ),
        (
            "ctx.ui.setWidget(\"k\", {})",
            "TypeError: ctx.ui.setWidget: content must be an array of strings, not an object",
        ),
        (
            "ctx.ui.setEditorText({})",
            "TypeError: ctx.ui.setEditorText: text must be a string, not an object",
        ),
        // Objects with a meaningful text are accepted.
        ("ctx.ui.notify(new Error(\"x\"))", "nothing"),
        ("ctx.ui.notify(new URL(\"http://x\"))", "nothing"),
        ("ctx.ui.setStatus(\"k\", 5)", "nothing"),
        ("ctx.ui.input(\"t\", null, { timeout: \"1\" })", "nothing"),
    ])
    .await;
}

/// Published extensions pass the initial text of `input` there: the original has no use for it
/// either, and opens the dialog.
#[tokio::test]
async fn a_text_as_dialog_options_is_a_warning() {
    let home = Home::bare();
    home.extension(
        "asks.ts",
        r#"export default (pi) => pi.registerCommand("asks", { handler: async (_args, ctx) => {
          ctx.ui.notify(await ctx.ui.input("Who?", "a name", "me"));
          ctx.ui.setEditorText(undefined);
        } });"#,
    );
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    rpc.send(&prompt("/asks").to_string()).await;
    let question = rpc.ui("input").await;
    rpc.reply(&question, json!({"value": "you"})).await;
    rpc.notified("you").await;
    assert_eq!(rpc.ui("set_editor_text").await["text"], "");
    // The warning may come before or after the dialog.
    let reported = |line: &Value| line["type"] == "extension_warning";
    let warning = match rpc.lines().into_iter().find(reported) {
        Some(warning) => warning,
        None => rpc.event("extension_warning").await,
    };
    assert_eq!(warning["event"], "ctx.ui.input");
    assert_eq!(
        warning["message"],
        "ctx.ui.input: options must be an object such as { timeout: 5000 }, not \"me\""
    );
}

/// Two published extensions pass a function as the label of their tool: they did not load, although
/// everything else in them works.
#[tokio::test]
async fn a_wrong_label_is_a_warning_and_the_tool_works() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "odd.ts",
        r#"export default (pi) => {
          pi.registerTool({ name: "t", label: () => "T", description: "d", parameters: { type: "object", properties: {} },
            execute: async () => ({ content: [{ type: "text", text: "ran" }], details: {} }) });
          pi.registerFlag("f", { type: "string", default: 5, description: [] });
          pi.registerCommand("c", { description: {}, handler: async (_args, ctx) => ctx.ui.notify(`flag ${pi.getFlag("f")}`) });
          pi.registerShortcut("ctrl+shift+x", { description: {}, handler() {} });
        };"#,
    );
    server.push(Answer::tool("t", json!({})));
    server.push(Answer::text("Fine."));
    let mut rpc = home.rpc(&[]);
    let events = rpc.run("go").await;
    let end = events
        .iter()
        .find(|event| event["type"] == "tool_execution_end");
    assert_eq!(end.unwrap()["result"]["content"][0]["text"], "ran");
    rpc.ok(prompt("/c")).await;
    rpc.notified("flag 5").await;
    // The calls are reported in their order, whatever else is displayed meanwhile.
    let is_last = |line: &Value| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("pi.registerShortcut")
    };
    rpc.find(0, "the last warning", is_last).await;
    let lines = rpc.lines().into_iter();
    let reports = lines.filter(|line| line["event"] == "load");
    let mut warnings: Vec<String> = reports
        .map(|line| {
            assert_eq!(line["type"], "extension_warning", "{line}");
            line["message"].as_str().unwrap().to_owned()
        })
        .collect();
    warnings.sort();
    assert_eq!(
        warnings,
        [
            "pi.registerCommand: description of \"c\" must be a string, not an object",
            "pi.registerFlag: default of \"f\" must be a string, as its type says, not 5",
            "pi.registerFlag: description of \"f\" must be a string, not an array",
            "pi.registerShortcut: description of \"ctrl+shift+x\" must be a string, not an object",
            "pi.registerTool: label of \"t\" must be a string, not a function",
        ]
    );
}

/// The error points to the call, not into pi.
#[tokio::test]
async fn a_wrong_argument_during_the_load_shows_the_line() {
    let home = Home::bare();
    let source = "export default (pi) => {\n  pi.registerFlag(\"f\", { type: \"boolean\", default: 1 });\n};";
    let path = home.extension("f.ts", source);
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    let error = rpc.event("extension_warning").await;
    assert_eq!(error["event"], "load");
    assert_eq!(error["location"]["line"], 2, "{error}");
    assert_eq!(error["location"]["file"], path.to_str().unwrap(), "{error}");
    rpc.close().await;
}

/// Only users of a terminal were told.
#[tokio::test]
async fn a_clash_with_a_built_in_name_is_reported_over_rpc() {
    let home = Home::bare();
    let path = home.extension(
        "clash.ts",
        "export default (pi) => {\n\
         pi.registerFlag(\"model\", { type: \"string\" });\n\
         pi.registerFlag(\"mine\", { type: \"string\" });\n\
         pi.registerShortcut(\"escape\", { handler() {} });\n\
         pi.registerShortcut(\"ctrl+shift+y\", { handler() {} });\n\
         };",
    );
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    rpc.ok(json!({"type": "get_state"})).await;
    let reported = |rpc: &crate::support::Rpc| -> Vec<String> {
        let lines = rpc.lines().into_iter();
        let warnings = lines.filter(|line| line["type"] == "extension_warning");
        let warnings = warnings.inspect(|warning| {
            assert_eq!(warning["event"], "load");
            assert_eq!(warning["extensionPath"], path.to_str().unwrap());
        });
        warnings
            .map(|warning| warning["message"].as_str().unwrap().to_owned())
            .collect()
    };
    let expected = [
        "Flag \"--model\" conflicts with pi's own option, which gets what the user gives"
            .to_owned(),
        format!(
            "Extension shortcut 'escape' from {} conflicts with built-in shortcut. Skipping.",
            path.display()
        ),
    ];
    assert_eq!(reported(&rpc), expected);
    rpc.ok(json!({"type": "reload"})).await;
    assert_eq!(reported(&rpc).len(), 4, "a reload tells again");
    rpc.close().await;
}

/// The warning named only the file, and for a misspelt event listed all events before the likely
/// one.
#[tokio::test]
async fn a_warning_shows_the_line() {
    let home = Home::bare();
    home.extension(
        "a.ts",
        "export default (pi) => { pi.registerFlag(\"own\", { type: \"string\" }); };",
    );
    let path = home.extension(
        "b.ts",
        "export default (pi) => {\n\
         \x20 pi.registerFlag(\"own\", { type: \"string\" });\n\
         \x20 pi.on(\"session_started\", () => {});\n\
         };\n",
    );
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    for (line, start) in [
        (2, "Flag \"--own\" conflicts with "),
        (
            3,
            "There is no event \"session_started\". Is \"session_start\" meant? The events are: ",
        ),
    ] {
        let error = rpc.event("extension_warning").await;
        assert!(
            error["message"].as_str().unwrap().starts_with(start),
            "{error}"
        );
        assert_eq!(error["extensionPath"], path.to_str().unwrap());
        assert_eq!(error["location"]["line"], line, "{error}");
        let marked = format!("> {line} | ");
        assert!(
            error["codeFrame"].as_str().unwrap().contains(&marked),
            "{error}"
        );
    }
    rpc.close().await;
}

/// Only the model was told, and partly in Rust's terms.
#[tokio::test]
async fn a_tool_without_a_result_is_reported_to_its_author() {
    let (server, _home, mut rpc) = with_extension(
        "const results = ['text', { content: [{ type: 'txt' }] }, { content: [{ type: 'text' }] }];\n\
         export default (pi) => results.forEach((result, index) => pi.registerTool({\n\
         name: `t${index}`, label: 'T', description: 'd',\n\
         parameters: { type: 'object', properties: {} }, execute: async () => result }));",
    )
    .await;
    let no_result = "returned something that is no tool result: content[0]";
    let expected = [
        "The tool \"t0\" must return { content: [...] }, an array of text and image blocks, not \"text\""
            .to_owned(),
        format!(
            "The tool \"t1\" {no_result}.type: unknown value `txt`, is `text` meant?"
        ),
        format!("The tool \"t2\" {no_result}.text is missing"),
    ];
    for (index, expected) in expected.iter().enumerate() {
        let name = format!("t{index}");
        server.push(Answer::tools([(name.as_str(), json!({}))]));
        server.push(Answer::text("Done."));
        let events = rpc.run("go").await;
        let result = events
            .iter()
            .find(|event| event["type"] == "tool_execution_end");
        let result = &result.unwrap()["result"];
        assert_eq!(result["content"][0]["text"], *expected);
        let error = rpc
            .find(0, "the error", |line| {
                line["type"] == "extension_error" && line["event"] == format!("tool:t{index}")
            })
            .await
            .1;
        assert_eq!(error["error"], *expected);
    }
}
