//! `pi ext check` and the load itself suggest what an author meant, or what to do.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt};

/// The output of `pi ext check` for a file or folder with a mistake.
async fn checked(home: &Home, name: &str) -> String {
    let output = home.run(&["ext", "check", name], "").await;
    assert_eq!(output.status.code(), Some(1), "{name}: {}", output.stdout);
    let folder = home.cwd().canonicalize().unwrap();
    output.stdout.replace(&format!("{}/", folder.display()), "")
}

#[tokio::test]
async fn mistakes_of_modules_get_a_suggestion() {
    let home = Home::bare();
    for (name, source) in [
        ("helper.ts", "export const x = 1;\n"),
        ("bad.json", "{\n  \"a\": 1,\n}\n"),
        (
            "json.ts",
            "import data from \"./bad.json\";\nexport default (pi) => { data; };\n",
        ),
        (
            "file.ts",
            "import { x } from \"./helpr\";\nexport default (pi) => { x; };\n",
        ),
        (
            "scope.ts",
            "import { x } from \"@mariozechner/pi-coding-agnt\";\nexport default (pi) => { x; };\n",
        ),
        (
            "other.ts",
            "import { Type } from \"@mariozechner/pi-coding-agent\";\n\
             export default (pi) => { pi.on(\"input\", () => { Type.Object({}); }); };\n",
        ),
        ("text.ts", "export default (pi) => { throw \"a text\"; };\n"),
        (
            "cycle.ts",
            "import b from \"./cycle.cjs\";\nexport const a = 1;\nexport default () => { b; };\n",
        ),
        (
            "cycle.cjs",
            "// one\nconst { a } = require(\"./cycle.ts\");\nmodule.exports = a;\n",
        ),
        (
            "requires.ts",
            "type No = never;\nconst b = require(\"./throws.mjs\");\nexport default () => { b; };\n",
        ),
        (
            "throws.mjs",
            "// one\n// two\nthrow new TypeError(\"in the module\");\n",
        ),
        (
            "given.ts",
            "export default () => { pi.on(\"input\", () => {}); };\n",
        ),
        (
            "member.ts",
            "export default (pi) => { pi.registerComand(\"x\", { handler() {} }); };\n",
        ),
        (
            "bom.ts",
            "\u{feff}export default (pi) => {\r\n  nothing.here;\r\n};\r\n",
        ),
    ] {
        home.file(name, source);
    }
    fs::create_dir_all(home.cwd().join("package")).unwrap();
    home.file(
        "package/package.json",
        r#"{"dependencies": {"left-pad": "1"}, "pi": {"extensions": ["./a.ts"]}}"#,
    );
    home.file(
        "package/a.ts",
        "import pad from \"left-pad\";\nexport default (pi) => { pad; };\n",
    );
    for (name, words) in [
        (
            "json.ts",
            "This is not JSON: a name in quotes is wanted, also after a comma (bad.json:3:1)\n",
        ),
        (
            "file.ts",
            "is './helper.ts' meant? (imported at file.ts:1:19)\n",
        ),
        ("scope.ts", ": is '@mariozechner/pi-coding-agent' meant? ("),
        (
            "package",
            "Cannot find package 'left-pad' in any node_modules: package.json has it; run `npm install` in ",
        ),
        (
            "other.ts",
            "It is in \"@mariozechner/pi-ai\" and \"@sinclair/typebox\" (other.ts:1:10)\n",
        ),
        (
            "text.ts",
            "\"a text\" was thrown, which is no error and has no line: write `throw new Error(",
        ),
        (
            "cycle.ts",
            "in a cycle. It is still being loaded: require it inside a function, or import it \
             (cycle.cjs:2:15)\n",
        ),
        (
            "requires.ts",
            "error: TypeError: in the module (throws.mjs:3:7)\n",
        ),
        (
            "given.ts",
            "pi is not defined: it is the argument of the exported function: `export default (pi) => { … }` \
             (given.ts:1:24)\n",
        ),
        (
            "member.ts",
            "pi.registerComand is not a function: is `pi.registerCommand` meant? (member.ts:1:29)\n",
        ),
        ("bom.ts", "nothing is not defined (bom.ts:2:3)\n"),
    ] {
        let output = checked(&home, name).await;
        assert!(output.contains(words), "{name}: {output}");
    }
}

#[tokio::test]
async fn mistakes_of_manifests_are_reported() {
    let home = Home::bare();
    for (name, manifest, words) in [
        (
            "misspelt",
            r#"{"pi": {"extension": ["./a.ts"]}}"#,
            "package.json: \"pi.extension\" means nothing: is \"pi.extensions\" meant?\n",
        ),
        (
            "text",
            r#"{"pi": {"extensions": "./a.ts"}}"#,
            "\"pi.extensions\" must be a list of paths, such as [\"./extensions\"]\n",
        ),
        (
            "number",
            r#"{"pi": {"extensions": [5]}}"#,
            "\"pi.extensions[0]\" must be a path\n",
        ),
        (
            "list",
            r#"{"pi": ["./a.ts"]}"#,
            "\"pi\" must be an object, such as { \"extensions\": [\"./index.ts\"] }\n",
        ),
        (
            "torn",
            r#"{"pi": {"extensions": ["./a.ts" }}"#,
            "package.json is ignored: expected `,` or `]` at line 1 column 33\n",
        ),
    ] {
        fs::create_dir_all(home.cwd().join(name)).unwrap();
        home.file(&format!("{name}/package.json"), manifest);
        home.file(
            &format!("{name}/a.ts"),
            "export default (pi) => pi.on(\"input\", () => {});\n",
        );
        let output = home.run(&["ext", "check", name], "").await.stdout;
        assert_eq!(output.matches(words).count(), 1, "{name}: {output}");
    }
    // Other programs may have members of their own in a manifest.
    fs::create_dir_all(home.cwd().join("good")).unwrap();
    home.file(
        "good/package.json",
        r#"{"pi": {"extensions": ["./a.ts"], "image": "x.png", "extension": 1}}"#,
    );
    home.file(
        "good/a.ts",
        "export default (pi) => pi.on(\"input\", () => {});\n",
    );
    let output = home.run(&["ext", "check", "good"], "").await.ok();
    assert!(output.starts_with("ok "), "{output}");
}

#[tokio::test]
async fn misspelt_members_are_reported_at_registration() {
    let home = Home::bare();
    home.file(
        "a.ts",
        include_str!("fixtures/check-hints/misspelt-members-are-reported-at-registration.ts"),
    );
    home.file(
        "handler.ts",
        "export default (pi) => { pi.registerCommand(\"c\", { description: \"d\", run() {} }); };\n",
    );
    home.file(
        "list.ts",
        "export default (pi) => { pi.registerTool([{ name: \"t\" }]); };\n",
    );
    let output = checked(&home, "a.ts").await;
    let misses = |what: &str, has: &str, intended: &str, place: &str| {
        format!(
            "{what} has \"{has}\", which pi does not know. Is \"{intended}\" meant? (a.ts:{place})"
        )
    };
    let expected = [
        misses("pi.registerTool: \"t\"", "descripton", "description", "4:6"),
        misses("pi.registerCommand: \"c\"", "describtion", "description", "5:6"),
        misses("pi.registerFlag: \"x\"", "defualt", "default", "6:6"),
        "pi.registerFlag: type of \"x\" is \"boolean\" or \"string\", not \"bool\"; it takes a value (a.ts:6:6)"
            .to_owned(),
        "The flag \"--y\" is typed as ----y: call it \"y\"".to_owned(),
        "pi.registerShortcut: there is no key \"control-x\". Write \"ctrl+x\", ".to_owned(),
        misses("pi.registerProvider: \"p\"", "baseURL", "baseUrl", "9:6"),
        misses(
            "pi.registerProvider: models[0] of \"p\"",
            "context_window",
            "contextWindow",
            "9:6",
        ),
        "Provider p: \"baseUrl\" is required when defining models. (a.ts:9:6)".to_owned(),
    ];
    for words in &expected {
        assert_eq!(
            output.matches(words.as_str()).count(),
            1,
            "{words}: {output}"
        );
    }
    let errors = output.matches("\n  error: ").count() + output.matches("\n  warning: ").count();
    // One more tool has no description.
    assert_eq!(errors, expected.len() + 1, "{output}");
    for (name, words) in [
        (
            "handler.ts",
            "handler of \"c\" must be a function, not undefined (it has description, run)",
        ),
        (
            "list.ts",
            "tool must be an object with name, description, parameters and execute, not an array",
        ),
    ] {
        let output = checked(&home, name).await;
        assert!(output.contains(words), "{output}");
    }
}

/// The position of the tool was missing, because nothing had thrown.
#[tokio::test]
async fn a_tool_with_a_wrong_result_is_reported_with_its_line() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "ext.ts",
        include_str!(
            "fixtures/check-hints/a-tool-with-a-wrong-result-is-reported-with-its-line.ts"
        ),
    );
    let mut rpc = home.rpc(&[]);
    for (index, end) in [
        ", an array of text and image blocks, not \"text\"",
        ", an array of text and image blocks, and its content is \"text\"",
        "content[0].type is missing",
        "content[0].text is a promise, as if an `await` were missing",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("t{index}");
        server.push(Answer::tool(&name, json!({})));
        server.push(Answer::text("Done."));
        let end = end.to_owned();
        let ends = |line: &Value| {
            line["error"]
                .as_str()
                .is_some_and(|text| text.ends_with(&end))
        };
        rpc.run("go").await;
        let error = match rpc.lines().into_iter().find(&ends) {
            Some(error) => error,
            None => rpc.wait(&end, ends).await,
        };
        assert_eq!(error["location"]["line"], 6, "{error}");
        assert_eq!(error["event"], format!("tool:{name}"));
    }
    rpc.send(&prompt("/go").to_string()).await;
    let output = "ctx.ui.notfy is not a function: is `ctx.ui.notify` meant?";
    let is_it = |line: &Value| line["error"] == output;
    let error = rpc.wait("an extension_error", is_it).await;
    let stack = error["stack"].as_str().unwrap();
    assert!(
        stack.starts_with(&format!("TypeError: {output}\n")),
        "{stack}"
    );

    rpc.send(&prompt("/late").to_string()).await;
    for output in [
        "ctx.ui.notify: message says [object Promise], as if an `await` were missing",
        "ctx.ui.notify: message must be a string, not a promise, as if an `await` were missing",
    ] {
        let is_it = |line: &Value| line["error"] == output || line["message"] == output;
        let report = match rpc.lines().into_iter().find(is_it) {
            Some(report) => report,
            None => rpc.wait(output, is_it).await,
        };
        let (kind, line) = match output.contains("says") {
            true => ("extension_warning", 13),
            false => ("extension_error", 14),
        };
        assert_eq!(report["type"], kind, "{report}");
        assert_eq!(report["location"]["line"], line, "{report}");
    }
    let reported =
        |line: &&Value| line["type"] == "extension_error" || line["type"] == "extension_warning";
    // Each is reported once: four results and three commands.
    assert_eq!(
        rpc.lines().iter().filter(reported).count(),
        7,
        "{:?}",
        rpc.lines()
    );
}
