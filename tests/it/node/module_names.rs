//! Resolution of names by `import` and `require`: names that the original finds are found here.

use std::fs;

use model_server::ModelServer;
use serde_json::json;

use crate::support::{Home, prompt};

/// The notification of an extension with this `index.ts` and these other files.
async fn notification(index: &str, files: &[(&str, &str)]) -> String {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext/index.ts", index);
    for (name, text) in files {
        home.extension(&format!("ext/{name}"), text);
    }
    fs::create_dir_all(home.agent_dir().join("extensions/ext/node_modules/hidden")).unwrap();
    home.extension("node_modules/hidden/index.js", "module.exports = 'above';");
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/say")).await;
    let lines = rpc.lines();
    let output = lines.iter().find(|line| line["method"] == "notify");
    let output = output.unwrap_or_else(|| panic!("{:?}", rpc.raw_lines()));
    output["message"].as_str().unwrap().to_owned()
}

fn saying(imports: &str, value: &str) -> String {
    format!(
        r#"{imports}
        const code = async (work: any) => {{
            try {{ return Object.keys(await work()); }} catch (e: any) {{ return [e.name, e.code]; }}
        }};
        export default (pi: any) => pi.registerCommand("say", {{ handler: async (_: any, ctx: any) =>
            ctx.ui.notify(JSON.stringify({value})) }});"#
    )
}

#[tokio::test]
async fn specifiers_are_paths_and_folders_not_urls() {
    let index = saying(
        r#"import { a } from "./c#d";
        import { b } from "./e%20f";
        import { c } from "./g?h.ts";
        import { d } from "./lib/";
        import hidden from "hidden";
        import { up } from "./lib/up.ts";
        import { e } from "./q.ts?v=1";"#,
        "[a, b, c, d, hidden, up, e, require('./own.cjs')]",
    );
    let one = |name| format!("export const {name} = '{name}';");
    let texts = ["a", "b", "c", "d", "e"].map(one);
    let files = [
        ("c#d.ts", texts[0].as_str()),
        ("c.ts", ""),
        ("e%20f.ts", &texts[1]),
        ("e f.ts", ""),
        ("g?h.ts", &texts[2]),
        ("lib/index.ts", &texts[3]),
        ("lib.ts", ""),
        ("lib/up.ts", "export { d as up } from '.';"),
        ("q.ts", &texts[4]),
        (
            "own.cjs",
            "module.exports = Object.keys(require('./lib/'));",
        ),
    ];
    let expected = json!(["a", "b", "c", "d", "above", "d", "e", ["d"]]);
    assert_eq!(notification(&index, &files).await, expected.to_string());
}

/// Such files ran as JavaScript, whatever they contained.
#[tokio::test]
async fn files_with_unknown_suffixes_are_not_imported() {
    let imports = r#"import text from "./a.md" with { type: "text" };"#;
    let value = r##"[text, await code(() => import("./a.txt")), await code(() => import("./later")),
        await code(() => import("./a.txt", { with: { type: "text" } } as any)),
        await code(() => import("./plain")), await code(() => require("./b.v1"))]"##;
    let index = saying(imports, value);
    let files = [
        ("a.md", "# Title"),
        ("a.txt", "globalThis.ran = true"),
        ("later.ts", r#"import "./a.css"; export const never = 1;"#),
        ("a.css", "a {}"),
        ("plain", "export const plain = 1;"),
        ("b.v1", "export const v1 = 1;"),
    ];
    let unknown = json!(["TypeError", "ERR_UNKNOWN_FILE_EXTENSION"]);
    let expected = json!(["# Title", unknown, unknown, ["default"], ["plain"], ["v1"]]);
    assert_eq!(notification(&index, &files).await, expected.to_string());

    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("a.css", "a {}");
    home.extension("x.ts", "import \"./a.css\";\nexport default () => {};");
    let mut rpc = home.rpc(&[]);
    let error = rpc.event("extension_error").await;
    let error = error["error"].as_str().unwrap();
    assert!(
        error.contains("Unknown file extension \".css\" for "),
        "{error}"
    );
    assert!(error.contains("x.ts:1:8)"), "{error}");
}

#[tokio::test]
async fn modules_of_pi_are_resolved_like_modules_of_node() {
    let names = r#"["@mariozechner/pi-coding-agent", "@sinclair/typebox", "fs"]"#;
    let value = format!(
        r#"[...{names}.map((name) => require.resolve(name) === name), require("./own.cjs"),
        Object.keys(await import(import.meta.resolve("@mariozechner/pi-tui"))).includes("Text")]"#
    );
    let own = format!("module.exports = {names}.every((name) => require.resolve(name) === name);");
    let output = notification(&saying("", &value), &[("own.cjs", &own)]).await;
    assert_eq!(output, "[true,true,true,true,true]");
}

#[tokio::test]
async fn a_decorator_without_a_class_is_refused() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "x.ts",
        "export default (pi: any) => {\n  @ pi.registerCommand(\"go\", {});\n};",
    );
    let mut rpc = home.rpc(&[]);
    let error = rpc.event("extension_error").await;
    let expected = "SyntaxError: A decorator must be before a class or a member of one";
    assert_eq!(
        error["error"].as_str().unwrap().lines().next(),
        Some(expected)
    );
    assert_eq!(error["location"]["line"], 2, "{error}");
}

#[tokio::test]
async fn exporting_nothing_from_a_module_runs_it() {
    let own = "globalThis.ran = [...(globalThis.ran ?? []), 'NAME'];";
    let text = |name: &str| own.replace("NAME", name);
    let exports = |from: &str| {
        format!(
            "export {{}} from \"{from}\"; export {{\n}} from \"dep-{from}\"; export const v = 1;"
        )
    };
    let (ts, mjs) = (
        exports("one.ts"),
        exports("two.mjs").replace("two", "./two"),
    );
    let ts = ts.replace("\"one", "\"./one");
    let mjs = mjs.replace("dep-./", "dep-");
    let index = saying(
        "import { v } from './ts'; import { v as w } from './m.mjs';",
        "[v, w, (globalThis as any).ran]",
    );
    let [one, two, three, four] = ["one", "two", "three", "four"].map(text);
    let files = [
        ("ts.ts", ts.as_str()),
        ("m.mjs", &mjs),
        ("one.ts", &one.replace("globalThis", "(globalThis as any)")),
        ("two.mjs", &two),
        ("node_modules/dep-one.ts/index.js", &three),
        ("node_modules/dep-two.mjs/index.js", &four),
    ];
    let output = notification(&index, &files).await;
    assert_eq!(output, r#"[1,1,["one","three","two","four"]]"#);
}
