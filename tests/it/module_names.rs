//! What `import` and `require` make of names: where the original finds something, so do we.

use std::fs;

use model_server::ModelServer;
use serde_json::json;

use crate::support::{Home, prompt};

/// What an extension says whose `index.ts` this is, with its other files.
async fn said(index: &str, files: &[(&str, &str)]) -> String {
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
    let said = lines.iter().find(|line| line["method"] == "notify");
    let said = said.unwrap_or_else(|| panic!("{:?}", rpc.raw_lines()));
    said["message"].as_str().unwrap().to_owned()
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
async fn names_are_paths_and_folders_and_not_addresses() {
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
    assert_eq!(said(&index, &files).await, expected.to_string());
}
