//! Changes in packages that extensions load: a quarantined extension returns, and packages linked
//! into `node_modules` are watched.

use std::fs;
use std::os::unix::fs::symlink;

use model_server::ModelServer;
use serde_json::{Value, json};

use crate::support::{Home, Rpc, pause, prompt};

async fn is_quarantined(rpc: &mut Rpc, command: &Value) {
    rpc.send(&command.to_string()).await;
    rpc.wait("the report", |line| {
        let error = line["error"].as_str().unwrap_or_default();
        error.contains("quarantined") && error.contains("that of its packages")
    })
    .await;
}

#[tokio::test]
async fn quarantine_ends_when_the_package_changes_or_on_request() {
    for place in ["thread", "process"] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        let timeouts = json!({"spin": 700});
        home.settings(json!({ "extensionHost": place, "extensionTimeouts": timeouts }));
        let manifest = r#"{"name":"@me/p","pi":{"extensions":["./a.ts"]}}"#;
        home.extension("p/package.json", manifest);
        home.extension(
            "p/a.ts",
            r#"import { esm } from "esm";
            import { cjs } from "cjs";
            const spins = { esm, cjs };
            export default (pi) => pi.registerCommand("go", { handler: async (name, ctx) => {
                spins[name]();
                ctx.ui.notify(name + " goes");
            } });"#,
        );
        let esm = r#"{"name":"esm","type":"module","exports":"./i.js"}"#;
        home.extension("p/node_modules/esm/package.json", esm);
        home.extension(
            "p/node_modules/cjs/index.js",
            "exports.cjs = require('./spin').cjs;",
        );
        let spins = ["esm/i.js", "cjs/spin.js"].map(|file| format!("p/node_modules/{file}"));
        home.extension(&spins[0], "export const esm = () => { for (;;); };");
        home.extension(&spins[1], "exports.cjs = () => { for (;;); };");
        let mended = ["export const esm = () => {};", "exports.cjs = () => {};"];
        let mut rpc = home.rpc(&[]);
        rpc.ok(json!({"type": "get_state"})).await;
        for (name, (spin, mended)) in ["esm", "cjs"].iter().zip(spins.iter().zip(mended)) {
            let go = prompt(&format!("/go {name}"));
            is_quarantined(&mut rpc, &go).await;
            let report = rpc
                .ok(json!({"type": "reload", "extension": "@me/p"}))
                .await;
            assert_eq!(report["failed"], json!([]), "{place} {name}");
            is_quarantined(&mut rpc, &go).await;
            let report = rpc.ok(json!({"type": "reload"})).await;
            assert_eq!(report["loaded"], json!([]), "{place} {name}");
            home.extension(spin, mended);
            let report = rpc.ok(json!({"type": "reload"})).await;
            assert_eq!(report["failed"], json!([]), "{place} {name}");
            rpc.ok(go).await;
            rpc.notified(&format!("{name} goes")).await;
        }
    }
}

/// The linked package was not watched, like installed ones.
#[tokio::test]
async fn a_linked_workspace_package_is_watched() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    let packages = home.agent_dir().join("extensions/node_modules/@w");
    fs::create_dir_all(&packages).unwrap();
    home.file(
        "packages/b/package.json",
        r#"{"name":"@w/b","exports":"./i.ts"}"#,
    );
    home.file(
        "packages/b/i.ts",
        r#"export { value, count } from "./deep";"#,
    );
    let deep = |value: u8| {
        let text = format!(
            "export const value = {value}; let counted = 0; export const count = () => ++counted;"
        );
        home.file("packages/b/deep.ts", &text);
    };
    deep(1);
    symlink(home.cwd().join("packages/b"), packages.join("b")).unwrap();
    for name in ["one", "two"] {
        let source = format!(
            r#"import {{ value, count }} from "@w/b";
            export default (pi) => pi.on("session_start", (event, ctx) =>
                ctx.ui.notify(`{name} ${{value}} ${{count()}}`));"#
        );
        home.extension(&format!("{name}.ts"), &source);
    }
    let mut rpc = home.rpc(&[]);
    for value in [1, 2] {
        deep(value);
        for name in ["one", "two"] {
            rpc.notified(&format!("{name} {value} 1")).await;
        }
        // The watch has begun.
        pause(300).await;
    }
    rpc.notified("Reloaded: deep.ts").await;
    let failed = rpc
        .lines()
        .into_iter()
        .find(|line: &Value| line["type"] == "extension_error");
    assert_eq!(failed, None);
}
