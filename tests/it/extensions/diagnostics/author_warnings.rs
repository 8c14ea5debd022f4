//! Mistakes of authors that have no effect, or fail much later, in the original. pi continues as
//! the original does, and warns: what, where, and what was probably meant.

use std::fs;
use std::path::Path;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, TIMEOUT, command, pause, prompt};

fn is_report(line: &Value) -> bool {
    line["type"] == "extension_error" || line["type"] == "extension_warning"
}

/// The errors and warnings among the lines.
fn reports(lines: &[Value]) -> Vec<Value> {
    lines
        .iter()
        .filter(|line| is_report(line))
        .cloned()
        .collect()
}

fn warnings(lines: &[Value]) -> Vec<Value> {
    let reports = reports(lines);
    let types: Vec<&Value> = reports.iter().map(|report| &report["type"]).collect();
    assert!(
        types.iter().all(|kind| *kind == "extension_warning"),
        "{reports:#?}"
    );
    reports
}

async fn next_error(rpc: &mut Rpc) -> Value {
    rpc.event("extension_error").await
}

fn text_of(report: &Value) -> &str {
    let texts = ["message", "error"].map(|name| report[name].as_str());
    texts.into_iter().flatten().next().unwrap_or_default()
}

/// Text, line and column of each report.
fn positions(errors: &[Value]) -> Vec<(String, u64, u64)> {
    let reported = errors.iter().map(|error| {
        let place = &error["location"];
        (
            text_of(error).to_owned(),
            place["line"].as_u64().unwrap_or_default(),
            place["column"].as_u64().unwrap_or_default(),
        )
    });
    reported.collect()
}

/// A gate that lets everything pass, because `block` is misspelt.
#[tokio::test]
async fn ignored_members_of_results_are_reported_once() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "ext.ts",
        include_str!("fixtures/author-warnings/ignored-members-of-results-are-reported-once.ts"),
    );
    let mut rpc = home.rpc(&[]);
    for _ in 0..2 {
        server.push(Answer::tool("bash", json!({"command": "echo one"})));
        server.push(Answer::text("Done."));
    }
    let events = rpc.run("go").await;
    let results = events
        .iter()
        .filter(|one| one["type"] == "tool_execution_end");
    let results: Vec<String> = results
        .map(|one| one["result"]["content"].to_string())
        .collect();
    assert_eq!(results.len(), 1);
    assert!(
        results[0].contains("one") && results[0].contains("more"),
        "{results:?}"
    );
    let mut found = positions(&warnings(&events));
    found.sort_by_key(|(_, line, _)| *line);
    let expected = [
        (
            "The handler answered with `blocked`, which means nothing for tool_call. Is `block` \
             meant? An answer may have `block`, `reason`, `terminate`",
            3,
            22,
        ),
        (
            "`input` of an answer to tool_call is not taken: change event.input itself",
            4,
            22,
        ),
        (
            "The handler answered with a text, which pi ignores: an answer to input is an \
             object that may have `action`, `text`, `images`",
            5,
            18,
        ),
        (
            "The handler answered with `messsage`, which means nothing for message_end. Is \
             `message` meant? An answer may have `message`",
            7,
            24,
        ),
        (
            "The handler answered with `entires`, which means nothing for turn_end. Is `entries` \
             meant? An answer may have `entries`, `continue`",
            9,
            21,
        ),
        (
            "The handler answered with `block`, but answers to tool_execution_start do not count: \
             tool_call can be blocked",
            10,
            33,
        ),
    ];
    let expected = expected.map(|(text, line, column)| (text.to_owned(), line, column));
    assert_eq!(found, expected);
    let again = rpc.run("again").await;
    assert_eq!(reports(&again), Vec::<Value>::new());
}

/// Waits until there is a file with this extension in the folder or below.
async fn until_written(folder: &Path, extension: &str) {
    let is_written = || {
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.extension().is_some_and(|found| found == extension) {
                    return true;
                }
                folders.extend(path.is_dir().then_some(path));
            }
        }
        false
    };
    let waiting = async {
        while !is_written() {
            pause(50).await;
        }
    };
    let written = tokio::time::timeout(TIMEOUT, waiting).await;
    written.unwrap_or_else(|_| panic!("no .{extension} in {}", folder.display()));
}

/// The name was `undefined` until a user came to where it is called.
#[tokio::test]
async fn missing_exports_are_reported_at_the_import() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let ext = home.extension(
        "ext.ts",
        include_str!("fixtures/author-warnings/missing-exports-are-reported-at-the-import.ts"),
    );
    let parts = ext.with_file_name("parts");
    fs::create_dir_all(&parts).unwrap();
    fs::write(
        parts.join("words.ts"),
        "export interface Shape { a: 1 }\nexport const wordCount = (text: string) => text.length;\n",
    )
    .unwrap();
    fs::write(
        parts.join("late.ts"),
        "import { nothing } from \"./words\";\nexport const late = () => nothing;\n",
    )
    .unwrap();
    let expected = [
        (
            "\"Contaner\" is imported from \"@mariozechner/pi-tui\", which has no such export: it \
             throws when it is used. Is \"Container\" meant?"
                .to_owned(),
            1,
            10,
        ),
        (
            "\"wordCont\" is imported from \"./parts/words\", which has no such export: it is \
             undefined there. Is \"wordCount\" meant?"
                .to_owned(),
            4,
            3,
        ),
    ];
    // The module is compiled, then read from the cache, then prepared on another thread.
    for _ in 0..3 {
        let mut rpc = home.rpc(&[]);
        rpc.ok(command("get_state")).await;
        rpc.ok(prompt("/late")).await;
        let late = |line: &Value| text_of(line).contains("\"nothing\"");
        if !rpc.lines().iter().any(late) {
            rpc.wait("what is imported later", late).await;
        }
        let found = positions(&warnings(&rpc.lines()));
        assert_eq!(found[..2], expected);
        assert_eq!(
            (found.len(), found[2].1, found[2].2),
            (3, 1, 10),
            "{found:?}"
        );
        // pi writes the code caches of what ran while it is idle, and then the list of them.
        until_written(&home.agent_dir().join("cache"), "trail").await;
        rpc.close().await;
    }
    let checked = home.run(&["ext", "check", ext.to_str().unwrap()], "").await;
    assert_eq!(checked.status.code(), Some(1));
    let checked = checked.stdout;
    assert!(checked.contains("Is \"wordCount\" meant?"), "{checked}");
    assert!(checked.contains("> 4 |   wordCont,"), "{checked}");
}

#[tokio::test]
async fn parameters_that_are_no_schema_are_a_warning() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let ext = home.extension(
        "ext.ts",
        r#"const execute = async () => ({ content: [], details: {} });
export default (pi: any) => {
  pi.registerTool({ name: "one", description: "one", parameters: { name: "string" }, execute });
  pi.registerTool({ name: "two", description: "two", parameters: {}, execute });
};
"#,
    );
    let mut rpc = home.rpc(&[]);
    let error = rpc.event("extension_warning").await;
    let text = error["message"].as_str().unwrap();
    assert!(
        text.starts_with(
            "pi.registerTool: parameters of \"one\" are no JSON schema: no word of one is in it, \
             but name. Write { type: \"object\", "
        ),
        "{text}"
    );
    assert_eq!(
        (&error["event"], &error["location"]["line"]),
        (&json!("load"), &json!(3))
    );
    server.push(Answer::text("Fine."));
    rpc.run("go").await;
    let tools = server.requests()[0].body["tools"].to_string();
    assert!(
        tools.contains("\"one\"") && tools.contains("\"two\""),
        "{tools}"
    );
    assert_eq!(warnings(&rpc.lines()).len(), 1);
    let checked = home
        .run(&["ext", "check", ext.to_str().unwrap()], "")
        .await
        .stdout;
    assert_eq!(
        checked.matches("parameters of \"one\"").count(),
        1,
        "{checked}"
    );
    assert!(
        checked.contains("The parameters of the tool two are no object"),
        "{checked}"
    );
}

#[tokio::test]
async fn models_without_an_id_are_dropped_with_a_warning() {
    let home = Home::bare();
    home.extension(
        "ext.ts",
        r#"const model = { name: "M", reasoning: false, input: ["text"], contextWindow: 1000, maxTokens: 100,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
export default (pi: any) => {
  const models = [{ ...model, id: "a" }, { ...model, ID: "b" }, { ...model, id: "c" }, { ...model, id: "" }];
  pi.registerProvider("mine", { baseUrl: "http://127.0.0.1:1", apiKey: "k", api: "openai-completions", models });
};
"#,
    );
    let mut rpc = home.rpc(&[]);
    let error = next_error(&mut rpc).await;
    assert_eq!(
        error["error"],
        "Provider mine: models[1], models[3] have no \"id\", by which a model is chosen, and are left out."
    );
    assert_eq!(
        (&error["event"], &error["location"]["line"]),
        (&json!("register_provider"), &json!(5))
    );
    let models = rpc.ok(command("get_available_models")).await;
    let mine = models["models"].as_array().unwrap().iter();
    let ids: Vec<&str> = mine
        .filter(|model| model["provider"] == "mine")
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["a", "c"]);
}

#[tokio::test]
async fn an_export_that_is_no_factory_is_reported_with_its_type() {
    let home = Home::bare();
    for (name, source, words) in [
        (
            "class.ts",
            "type No = never;\n\nexport default class Mine {\n  constructor(pi: any) {}\n}\n",
            "The extension exports the class Mine, and pi calls what is exported without new: ",
        ),
        (
            "named.ts",
            "export function activate(pi: any) {}\nexport const a = 1;\n",
            "does not export a valid factory function (it exports a, activate, no default): ",
        ),
        ("nothing.ts", "const a = 1;\n", "(it exports nothing)"),
        (
            "object.ts",
            "export default { name: \"x\", setup() {} };\n",
            "(its default export is an object with name, setup)",
        ),
        (
            "number.ts",
            "export default 5;\n",
            "(its default export is a number)",
        ),
    ] {
        let file = home.file(name, source);
        let output = home
            .run(&["ext", "check", file.to_str().unwrap()], "")
            .await;
        assert_eq!(output.status.code(), Some(1));
        let output = output.stdout;
        assert!(output.contains(words), "{name}: {output}");
        if name == "class.ts" {
            assert!(
                output.contains("class.ts:4:3)\n") && output.contains("> 4 |   constructor"),
                "{output}"
            );
        }
    }
}

/// The error came at the first prompt, as an error of the model.
#[tokio::test]
async fn models_of_an_unknown_api_are_reported_at_registration() {
    let home = Home::bare();
    let provider = |name: &str, api: &str| {
        format!(
            "pi.registerProvider(\"{name}\", {{ baseUrl: \"http://127.0.0.1:1\", apiKey: \"k\", api: \"{api}\", \
             models: [{{ id: \"m\", name: \"M\", reasoning: false, input: [\"text\"], contextWindow: 1000, \
             maxTokens: 100, cost: {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }} }}] }});"
        )
    };
    let ext = home.extension(
        "a.ts",
        &format!(
            "export default (pi: any) => {{\n  {}\n  {}\n  {}\n  pi.registerCommand(\"late\", {{ \
             handler: () => {{ {} }} }});\n}};\n",
            provider("one", "openai-completion"),
            provider("two", "openai-responses"),
            provider("three", "of-another"),
            provider("four", "nowhere"),
        ),
    );
    home.extension(
        "b.ts",
        "export default (pi: any) => pi.registerProvider(\"five\", { api: \"of-another\", streamSimple() {} });",
    );
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    let error = next_error(&mut rpc).await;
    let text = error["error"].as_str().unwrap();
    assert!(
        text.starts_with(
            "Provider one, model m: there is no API \"openai-completion\", and the provider has no \
             streamSimple: every request to the model fails. Is \"openai-completions\" meant? The APIs are "
        ),
        "{text}"
    );
    assert_eq!(
        (&error["event"], &error["location"]["line"]),
        (&json!("register_provider"), &json!(2))
    );
    rpc.ok(prompt("/late")).await;
    let late = |line: &Value| {
        line["error"]
            .as_str()
            .is_some_and(|it| it.contains("\"nowhere\""))
    };
    if !rpc.lines().iter().any(late) {
        rpc.wait("the late one", late).await;
    }
    assert_eq!(reports(&rpc.lines()).len(), 2);
    let models = rpc.ok(command("get_available_models")).await.to_string();
    assert!(models.contains("\"one\""), "it is registered: {models}");
    let checked = home.run(&["ext", "check", ext.to_str().unwrap()], "").await;
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        checked
            .stdout
            .contains("there is no API \"openai-completion\""),
        "{}",
        checked.stdout
    );
}

#[tokio::test]
async fn an_unknown_thinking_level_names_call_and_argument() {
    let home = Home::bare();
    home.extension(
        "ext.ts",
        r#"export default (pi: any) => {
  pi.registerCommand("go", { handler: (_: string, ctx: any) => {
    const said = ["silly", 5, undefined].map((level) => {
      try { pi.setThinkingLevel(level); } catch (error: any) { return `${error.name}: ${error.message}`; }
    });
    ctx.ui.notify(said.join("\n"));
  } });
};
"#,
    );
    let mut rpc = home.rpc(&["--provider", "demo", "--model", "demo"]);
    rpc.ok(prompt("/go")).await;
    let output = rpc.ui("notify").await["message"].clone();
    assert_eq!(
        output,
        "TypeError: pi.setThinkingLevel: level: There is no thinking level \"silly\". The levels are: \
         off, minimal, low, medium, high, xhigh, max\nTypeError: pi.setThinkingLevel: level must be a \
         string, not 5\nTypeError: pi.setThinkingLevel: level must be a string, not undefined"
    );
}

/// "npm install fs" would install an unrelated package.
#[tokio::test]
async fn a_misspelt_node_module_is_not_offered_for_install() {
    let home = Home::bare();
    home.file(
        "ext.ts",
        "import { readFile } from \"fs/promise\";\nexport default () => readFile;\n",
    );
    let output = home.run(&["ext", "check", "ext.ts"], "").await.stdout;
    assert!(output.contains("is 'fs/promises' meant?"), "{output}");
    assert!(!output.contains("npm install"), "{output}");
}

#[tokio::test]
async fn a_second_default_export_is_reported_as_such() {
    let home = Home::bare();
    home.extension(
        "ext.ts",
        "export default () => {};\nexport default () => {};\n",
    );
    let mut rpc = home.rpc(&[]);
    let error = next_error(&mut rpc).await;
    let text = error["error"].as_str().unwrap();
    let expected = "SyntaxError: A module has one default export, and this is a second";
    assert!(text.starts_with(expected), "{error}");
    assert_eq!(error["location"]["line"], 2);
}
