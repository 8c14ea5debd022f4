//! `pi ext` lists extensions and checks one.

use std::fs;

use serde_json::{Value, json};

use crate::support::Home;

const GATE: &str = "export default function (pi) {\n\
    \x20 pi.on(\"tool_call\", () => {});\n\
    \x20 pi.registerTool({ name: \"weigh\", label: \"Weigh\", description: \"weighs\",\n\
    \x20   parameters: { type: \"object\", properties: {} },\n\
    \x20   async execute() { return { content: [], details: {} }; } });\n\
    \x20 pi.registerCommand(\"weigh\", { description: \"weighs\", handler: async () => {} });\n\
    \x20 pi.registerFlag(\"scale\", { type: \"string\" });\n\
    \x20 pi.registerShortcut(\"Ctrl+Shift+W\", { description: \"weighs\", handler: () => {} });\n\
    \x20 pi.registerMessageRenderer(\"weight\", () => undefined);\n\
    \x20 globalThis.process.stderr.write(\"it ran\\n\");\n\
    }\n";

#[tokio::test]
async fn the_list_shows_extensions_and_what_they_register() {
    let home = Home::bare();
    let nothing = home.run(&["ext", "list"], "").await.ok();
    assert!(nothing.starts_with("There are no extensions."), "{nothing}");

    home.extension("gate.ts", GATE);
    home.extension(
        "torn.ts",
        "export default function (pi) {\n  const x = ;\n}\n",
    );
    let listed = home.run(&["ext", "list"], "").await;
    assert_eq!(listed.status.code(), Some(1), "torn.ts does not load");
    let gate = format!(
        "gate  (auto, user)\n  {}/extensions/gate.ts\n  tools     weigh\n  commands  /weigh\n  \
         flags     --scale\n  shortcuts ctrl+shift+w\n  draws     messages weight\n  \
         events    tool_call\n",
        home.agent_dir().display()
    );
    let (times, others): (Vec<&str>, Vec<&str>) = (listed.stdout.split_inclusive('\n'))
        .partition(|line| line.starts_with("  loaded in ") && line.ends_with(" ms\n"));
    assert_eq!(times.len(), 1, "one has loaded: {}", listed.stdout);
    assert!(others.concat().starts_with(&gate), "{}", listed.stdout);
    assert!(
        listed.stdout.contains("torn  (auto, user)"),
        "{}",
        listed.stdout
    );
    assert!(listed.stderr.contains("it ran"));

    let still = home.run(&["ext", "list", "--static", "--json"], "").await;
    assert_eq!(still.status.code(), Some(1));
    assert!(!still.stderr.contains("it ran"), "{}", still.stderr);
    let list: Value = serde_json::from_str(&still.stdout).unwrap();
    let reported = home.run(&["ext", "list", "--json"], "").await;
    let reported: Value = serde_json::from_str(&reported.stdout).unwrap();
    let shortcut = json!([{"key": "ctrl+shift+w", "description": "weighs"}]);
    assert_eq!(reported["extensions"][0]["shortcuts"], shortcut);
    assert!(reported["extensions"][0]["loadMs"].as_f64() > Some(0.0));
    let renderer = json!([{"kind": "message", "customType": "weight"}]);
    assert_eq!(reported["extensions"][0]["renderers"], renderer);
    let [gate, torn] = &list["extensions"].as_array().unwrap()[..] else {
        panic!("{list}");
    };
    assert_eq!(
        (&gate["name"], &gate["error"]),
        (&json!("gate"), &Value::Null)
    );
    let error = torn["error"].as_str().unwrap();
    assert!(error.contains("line 2, column 13"), "{error}");
}

#[tokio::test]
async fn a_check_finds_all_mistakes() {
    let home = Home::bare();
    home.file("good.ts", GATE);
    let good = home.run(&["ext", "check", "good.ts"], "").await.ok();
    let expected = format!(
        "ok      {}\n  registers 1 tool, 1 command, 1 flag, 1 shortcut, 1 renderer, handlers of 1 event\n",
        home.cwd().join("good.ts").display()
    );
    assert_eq!(good, expected);

    home.file("torn.ts", "export default (pi) => {\n  const x = ;\n};\n");
    home.file(
        "throws.ts",
        "export default () => {\n  nothing.here();\n};\n",
    );
    home.file("idle.ts", "export default () => {};\n");
    home.file(
        "late.ts",
        "export default (pi) => {\n  pi.on(\"input\", () => {});\n  \
         setTimeout(() => { throw new Error(\"later\"); }, 0);\n};\n",
    );
    home.file(
        "names.ts",
        "export default (pi) => {\n\
         \x20 const execute = async () => ({ content: [], details: {} });\n\
         \x20 const parameters = { type: \"object\", properties: {} };\n\
         \x20 pi.registerTool({ name: \"my tool\", description: \"d\", parameters, execute });\n\
         \x20 pi.registerTool({ name: \"mute\", parameters, execute });\n\
         \x20 pi.registerTool({ name: \"text\", description: \"d\", parameters: { type: \"string\" }, execute });\n\
         \x20 pi.registerTool({ name: \"odd\", description: \"d\",\n\
         \x20   parameters: { type: \"object\", properties: { a: { type: \"nonsense\" } } }, execute });\n\
         \x20 pi.registerTool({ name: \"read\", description: \"d\", parameters, execute });\n\
         \x20 pi.registerCommand(\"model\", { handler: async () => {} });\n\
         \x20 pi.registerCommand(\"two words\", { handler: async () => {} });\n\
         \x20 pi.registerFlag(\"print\", { type: \"boolean\" });\n\
         \x20 pi.on(\"session_switch\", () => {});\n\
         };\n",
    );
    fs::create_dir_all(home.cwd().join("empty")).unwrap();
    let names = [
        "torn.ts",
        "throws.ts",
        "idle.ts",
        "late.ts",
        "names.ts",
        "empty",
        "gone.ts",
    ];
    let words: Vec<&str> = ["ext", "check", "--json"]
        .into_iter()
        .chain(names)
        .collect();
    let checked = home.run(&words, "").await;
    assert_eq!(checked.status.code(), Some(1), "{}", checked.stderr);
    let report: Value = serde_json::from_str(&checked.stdout).unwrap();
    let findings = |index: usize| -> Vec<String> {
        let findings = report["extensions"][index]["findings"].as_array().unwrap();
        let text = |one: &Value| {
            let level = one["level"].as_str().unwrap();
            format!("{level}: {}", one["message"].as_str().unwrap())
        };
        findings.iter().map(text).collect()
    };
    let expected: [&[&str]; 7] = [
        &[
            "error: line 2, column 13: Expression expected\n  1 | export default (pi) => {\n> 2 |   const x = ;",
        ],
        &["> 2 |   nothing.here();"],
        &["warning: It registers nothing"],
        &["error: later ("],
        &[
            "error: The tool \"my tool\" cannot be sent to models",
            "warning: The tool mute has no description",
            "error: The parameters of the tool odd are no valid JSON schema",
            "note: Tool \"read\" replaces the built-in one",
            "warning: Command \"/model\" conflicts with pi's own command",
            "error: The command \"two words\" cannot be typed",
            "error: Flag \"--print\" conflicts with pi's own option",
            "warning: The event \"session_switch\" is no more: use session_start",
            "error: pi.registerTool: parameters of \"text\" are of the type \"string\"",
        ],
        &["error: It is no module"],
        &["error: There is no such file"],
    ];
    for (index, expected) in expected.iter().enumerate() {
        let found = findings(index);
        assert_eq!(found.len(), expected.len(), "{}: {found:#?}", names[index]);
        for (found, part) in found.iter().zip(*expected) {
            assert!(found.contains(part), "{found} for {part}");
        }
    }
}

#[tokio::test]
async fn wrong_arguments_are_refused() {
    let home = Home::bare();
    for words in [
        &["ext"][..],
        &["ext", "tidy"],
        &["ext", "check"],
        &["ext", "list", "x"],
    ] {
        let output = home.run(words, "").await.failed(1);
        assert!(output.contains("Usage: pi ext list"), "{words:?}: {output}");
    }
    let help = home.run(&["ext", "--help"], "").await.ok();
    assert!(help.starts_with("Usage: pi ext list"), "{help}");
}

#[tokio::test]
async fn a_check_covers_packages_providers_and_conflicts() {
    let home = Home::bare();
    let provider = "export default (pi) => pi.registerProvider(\"mine\", {\n\
        \x20 baseUrl: \"http://localhost:1\", apiKey: \"k\", api: \"openai-completions\",\n\
        \x20 models: [{ id: \"m\", name: \"M\", reasoning: false, input: [\"text\"],\n\
        \x20   cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },\n\
        \x20   contextWindow: 1000, maxTokens: 100 }] });\n";
    fs::create_dir_all(home.cwd().join("pack/src")).unwrap();
    home.file(
        "pack/package.json",
        r#"{"name": "pack", "pi": {"extensions": ["./src/gate.ts", "./src/provider.ts"]}}"#,
    );
    home.file("pack/src/gate.ts", GATE);
    home.file("pack/src/provider.ts", provider);
    let checked = home.run(&["ext", "check", "pack"], "").await.ok();
    let source = home.cwd().join("pack/src");
    let expected = format!(
        "ok      {0}/gate.ts\n  registers 1 tool, 1 command, 1 flag, 1 shortcut, 1 renderer, handlers \
         of 1 event\n\
         ok      {0}/provider.ts\n  registers 0 tools, 0 commands, 0 flags, 1 provider, handlers of 0 \
         events\n",
        source.display()
    );
    assert_eq!(checked, expected);

    home.extension("a.ts", GATE);
    home.extension("b.ts", GATE);
    home.extension("c.ts", provider);
    let listed = home.run(&["ext", "list"], "").await;
    assert_eq!(listed.status.code(), Some(1), "{}", listed.stdout);
    assert!(
        listed.stdout.contains("\n  providers mine\n"),
        "{}",
        listed.stdout
    );
    let second = listed.stdout.split("b  (auto, user)").nth(1).unwrap();
    assert!(
        second.contains("  error: Tool \"weigh\" conflicts with"),
        "{second}"
    );
    let reported = home.run(&["ext", "list", "--json"], "").await;
    let reported: Value = serde_json::from_str(&reported.stdout).unwrap();
    assert_eq!(reported["extensions"][0]["problems"], Value::Null);
    assert!(
        reported["extensions"][1]["problems"][0].is_string(),
        "{reported}"
    );
    assert_eq!(reported["extensions"][2]["providers"], json!(["mine"]));
}

#[tokio::test]
async fn an_extension_that_hangs_while_loading_is_reported() {
    let home = Home::bare();
    home.settings(json!({"extensionTimeouts": {"load": 1000, "spin": 300}}));
    let file = home.file("spin.ts", "for (;;);\nexport default () => {};\n");
    let checked = home
        .run(&["ext", "check", file.to_str().unwrap()], "")
        .await;
    let text = format!("{}{}", checked.stdout, checked.stderr);
    assert_eq!(checked.status.code(), Some(1), "{text}");
    assert!(text.contains("while it was loading"), "{text}");
    assert!(!text.contains("/reload"), "{text}");
}

/// A session loads the file with a replacement character for each invalid byte.
#[tokio::test]
async fn a_file_that_is_not_utf8_is_checked_as_it_is_loaded() {
    let home = Home::bare();
    let file = home.cwd().join("latin.ts");
    let source =
        b"export default (pi) => pi.registerCommand('caf\xe9', { handler: async () => {} });";
    std::fs::write(&file, source).unwrap();
    let path = file.to_str().unwrap();
    let output = home.run(&["ext", "check", path], "").await.ok();
    assert!(output.contains("1 command"), "{output}");
}

#[tokio::test]
async fn a_folder_of_extensions_is_checked_one_by_one() {
    let home = Home::bare();
    let folder = home.agent_dir().join("extensions");
    home.extension("good.ts", "export default () => {};");
    home.extension("broken.ts", "export default () => {");
    let output = home
        .run(&["ext", "check", folder.to_str().unwrap()], "")
        .await;
    assert!(!output.status.success());
    let lines: Vec<&str> = output.stdout.lines().collect();
    let of = |name: &str| lines.iter().find(|line| line.ends_with(name)).copied();
    assert!(
        of("good.ts").is_some_and(|line| line.starts_with("ok")),
        "{lines:#?}"
    );
    assert!(
        of("broken.ts").is_some_and(|line| line.starts_with("FAILED")),
        "{lines:#?}"
    );
}

/// Files named together were loaded together, and the second was refused the names that the first
/// had registered.
#[tokio::test]
async fn files_named_together_are_checked_one_by_one() {
    let home = Home::bare();
    home.settings(json!({"extensionTimeouts": {"load": 1000, "spin": 300}}));
    home.file("loose/spins.ts", "for (;;);\nexport default () => {};\n");
    let spoils = "globalThis.spoilt = true; export default (pi) => pi.on(\"input\", () => {});";
    home.file("loose/spoils.ts", spoils);
    let looks = "export default (pi) => {\n\
        if (globalThis.spoilt) throw new Error(\"not alone\");\n\
        pi.on(\"input\", () => {});\n};";
    home.file("loose/looks.ts", looks);
    for name in ["loose/a.ts", "loose/b.ts", "both/a.ts", "both/b.ts"] {
        home.file(name, GATE);
    }
    let names = ["a", "spins", "b", "spoils", "looks"].map(|name| format!("loose/{name}.ts"));
    let mut words = vec!["ext", "check"];
    words.extend(names.iter().map(String::as_str));
    let checked = home.run(&words, "").await;
    assert_eq!(checked.status.code(), Some(1), "{}", checked.stdout);
    let lines = checked.stdout.lines();
    let heads = lines.filter(|line| !line.starts_with(' ')).map(|line| {
        let (word, path) = line.split_once(' ').unwrap();
        (word, path.trim().rsplit('/').next().unwrap())
    });
    // Results come in the order of the arguments.
    assert_eq!(
        heads.collect::<Vec<_>>(),
        [
            ("ok", "a.ts"),
            ("FAILED", "spins.ts"),
            ("ok", "b.ts"),
            ("ok", "spoils.ts"),
            ("ok", "looks.ts"),
        ],
        "{}",
        checked.stdout
    );

    // A session also loads the extensions of one folder together.
    let checked = home.run(&["ext", "check", "both"], "").await;
    assert_eq!(checked.status.code(), Some(1), "{}", checked.stdout);
    assert!(
        checked
            .stdout
            .contains("error: Tool \"weigh\" conflicts with"),
        "{}",
        checked.stdout
    );
}

/// The list said only that the file could not be parsed or loaded.
#[tokio::test]
async fn the_list_shows_the_source_lines_of_errors() {
    let home = Home::bare();
    home.extension("broken.ts", "let a = 1;\nexport default (\n  => {};\n");
    home.extension("throws.ts", "let a = 1;\n  throw new Error(\"no\");\n");
    home.extension(
        "listens.ts",
        "export default (pi) => {\n  pi.on(\"session_started\", () => {});\n};\n",
    );
    let listed = home.run(&["ext", "list"], "").await;
    assert_eq!(listed.status.code(), Some(1), "{}", listed.stdout);
    let listens = home.agent_dir().join("extensions/listens.ts");
    for text in [
        "    > 2 |   throw new Error(\"no\");\n        |         ^\n",
        "error: There is no event \"session_started\". Is \"session_start\" meant? The events are: ",
        &format!(" ({}:2:6)\n", listens.canonicalize().unwrap().display()),
        "    > 2 |   pi.on(\"session_started\", () => {});\n        |      ^\n",
    ] {
        assert!(listed.stdout.contains(text), "{text}: {}", listed.stdout);
    }
    let listed = home.run(&["ext", "list", "--static"], "").await;
    let frame = "error: line 3, column 3: Expression expected\n      1 | let a = 1;\n      2 | export \
                 default (\n    > 3 |   => {};\n        |   ^\n";
    assert!(listed.stdout.contains(frame), "{}", listed.stdout);
}

#[tokio::test]
async fn a_folder_with_an_index_is_checked_as_one_extension() {
    let home = Home::bare();
    for (folder, beside, text) in [
        ("a", "prompts/p.md", "hi"),
        ("b", "skills/s/SKILL.md", "---\ndescription: d\n---\n"),
        ("c", "themes/.keep", ""),
        ("d", "extensions/.keep", ""),
    ] {
        for (name, text) in [("index.ts", GATE), (beside, text)] {
            let path = home.cwd().join(folder).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let output = home.run(&["ext", "check", folder], "").await.ok();
        let start = format!("ok      {}\n  note: -e ", home.cwd().join(folder).display());
        assert!(output.starts_with(&start), "{output}");
        assert!(output.contains("  registers 1 tool, 1 command"), "{output}");
    }
    home.file(
        "a/index.ts",
        "export default (pi) => {\n  const x = ;\n};\n",
    );
    let torn = home.run(&["ext", "check", "a"], "").await;
    assert_eq!(torn.status.code(), Some(1), "{}", torn.stdout);
    fs::remove_file(home.cwd().join("a/index.ts")).unwrap();
    let none = home.run(&["ext", "check", "a"], "").await;
    assert!(
        none.stdout.contains("It is a package without extensions"),
        "{}",
        none.stdout
    );
}
