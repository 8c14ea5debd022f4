//! An extension whose files do not load goes on with its last good version, and all others get
//! their changes.

use model_server::ModelServer;
use serde_json::{Value, json};

use crate::support::{Home, Rpc, pause, prompt, watches};

/// An extension with a command of its name, which notifies the user of `value`.
fn sayer(name: &str, value: &str) -> String {
    format!(
        r#"export default (pi) => pi.registerCommand("{name}", {{
            handler: async (_, ctx) => ctx.ui.notify("{name} {value}") }});"#
    )
}

fn reload() -> Value {
    json!({"type": "reload"})
}

async fn says(rpc: &mut Rpc, name: &str, value: &str) {
    rpc.ok(prompt(&format!("/{name}"))).await;
    rpc.notified(&format!("{name} {value}")).await;
}

fn names(report: &Value, member: &str) -> Vec<String> {
    let all = report[member].as_array().unwrap().iter();
    let path = |one: &Value| {
        let path = one.as_str().or(one["path"].as_str()).unwrap();
        path.rsplit('/').next().unwrap().to_owned()
    };
    all.map(path).collect()
}

/// One broken file kept the changes of all other extensions from being loaded.
#[tokio::test]
async fn a_broken_file_stops_no_other_extension() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("a.ts", &sayer("a", "1"));
    home.extension("b.ts", &sayer("b", "1"));
    let mut rpc = home.rpc(&[]);
    says(&mut rpc, "a", "1").await;
    for (number, broken, reason) in [
        (2, "export default (pi) => {\n  pi.on(;", "/a.ts:2:"),
        (
            3,
            "import './missing';\nexport default () => {};",
            "missing",
        ),
        (4, "\nthrow new Error('thrown');", "thrown"),
        (
            5,
            "export default () => { throw new Error('thrown in it'); };",
            "thrown in it",
        ),
        (
            6,
            "import { x } from 'nowhere';\nexport default () => x;",
            "nowhere",
        ),
        (7, "export const nothing = 1;", "function"),
    ] {
        let value = number.to_string();
        home.extension("a.ts", broken);
        home.extension("b.ts", &sayer("b", &value));
        let report = rpc.ok(reload()).await;
        assert_eq!(names(&report, "loaded"), ["b.ts"], "{report}");
        assert_eq!(names(&report, "kept"), ["a.ts"], "{report}");
        let error = report["kept"][0]["error"].as_str().unwrap();
        assert!(error.contains(reason), "{report}");
        let reported = rpc.event("extension_error").await;
        let reported = reported["error"].as_str().unwrap();
        assert!(
            reported.contains(reason) && reported.contains("last good version"),
            "{reported}"
        );
        says(&mut rpc, "a", "1").await;
        says(&mut rpc, "b", &value).await;
    }
    home.extension("a.ts", &sayer("a", "8"));
    let report = rpc.ok(reload()).await;
    assert_eq!(names(&report, "loaded"), ["a.ts", "b.ts"]);
    says(&mut rpc, "a", "8").await;
}

/// Files that the extension imports are gone or different: the last good version needs none of them.
#[tokio::test]
async fn the_last_good_version_does_not_need_its_files() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "a/index.ts",
        r#"import { value } from "./lib/deep";
        import data from "./data.json";
        import text from "./text.md" with { type: "text" };
        import { shared } from "../shared.ts";
        const required = require("./required.cjs");
        export default (pi) => pi.registerCommand("a", { handler: async (_, ctx) =>
            ctx.ui.notify("a " + [value, data.value, text.trim(), shared, required].join(" ")) });"#,
    );
    home.extension("a/lib/deep/index.ts", "export const value: number = 1;");
    home.extension("a/data.json", r#"{ "value": 1 }"#);
    home.extension("a/text.md", "1");
    home.extension("a/required.cjs", "module.exports = 1;");
    home.extension(
        "shared.ts",
        "export const shared = 1; export default () => {};",
    );
    home.extension(
        "b.ts",
        r#"import { shared } from "./shared.ts";
        export default (pi) => pi.registerCommand("b", {
            handler: async (_, ctx) => ctx.ui.notify("b " + shared) });"#,
    );
    let mut rpc = home.rpc(&[]);
    says(&mut rpc, "a", "1 1 1 1 1").await;
    let folder = home.agent_dir().join("extensions/a");
    std::fs::remove_dir_all(folder.join("lib")).unwrap();
    std::fs::remove_file(folder.join("data.json")).unwrap();
    home.extension("a/index.ts", "broken(");
    home.extension("a/text.md", "2");
    home.extension("a/required.cjs", "module.exports = 2;");
    home.extension(
        "shared.ts",
        "export const shared = 2; export default () => {};",
    );
    for _ in 0..3 {
        let report = rpc.ok(reload()).await;
        assert_eq!(names(&report, "kept"), ["index.ts"], "{report}");
        says(&mut rpc, "a", "1 1 1 1 1").await;
        says(&mut rpc, "b", "2").await;
    }
    rpc.ok(json!({"type": "new_session"})).await;
    says(&mut rpc, "a", "1 1 1 1 1").await;
}

#[tokio::test]
async fn a_gone_extension_is_reported_and_unloaded() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let gone = home.extension("a.ts", &sayer("a", "1"));
    home.extension("b.ts", &sayer("b", "1"));
    let mut rpc = home.rpc(&[]);
    says(&mut rpc, "a", "1").await;
    std::fs::remove_file(gone).unwrap();
    home.extension("b.ts", &sayer("b", "2"));
    let report = rpc.ok(reload()).await;
    assert_eq!(names(&report, "gone"), ["a.ts"], "{report}");
    assert_eq!(names(&report, "loaded"), ["b.ts"], "{report}");
    says(&mut rpc, "b", "2").await;
    let report = rpc.ok(reload()).await;
    assert_eq!(names(&report, "gone"), [""; 0], "{report}");
}

/// The last good version fails, too, because a file that it reads is gone.
#[tokio::test]
async fn an_extension_without_a_working_version_is_left_out() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let needed = home.file("needed", "");
    home.extension(
        "a.ts",
        &format!(
            "import fs from 'node:fs';\nfs.readFileSync('needed');\n{}",
            sayer("a", "1")
        ),
    );
    home.extension("b.ts", &sayer("b", "1"));
    let mut rpc = home.rpc(&[]);
    says(&mut rpc, "a", "1").await;
    std::fs::remove_file(needed).unwrap();
    home.extension("a.ts", "broken(");
    home.extension("b.ts", &sayer("b", "2"));
    let report = rpc.ok(reload()).await;
    assert_eq!(names(&report, "failed"), ["a.ts"], "{report}");
    assert_eq!(names(&report, "kept"), [""; 0], "{report}");
    says(&mut rpc, "b", "2").await;
}

/// Each reload waited for the whole limit.
#[tokio::test]
async fn a_version_that_hangs_is_not_tried_again_before_it_changes() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionTimeouts": { "load": 1000 } }));
    home.extension("a.ts", &sayer("a", "1"));
    home.extension("b.ts", &sayer("b", "1"));
    let mut rpc = home.rpc(&[]);
    says(&mut rpc, "a", "1").await;
    for hang in [
        "await new Promise(() => setInterval(() => {}, 10));",
        "for (;;);",
    ] {
        let started =
            format!("import fs from 'node:fs';\nfs.appendFileSync('tries', 'x');\n{hang}");
        home.extension("a.ts", &format!("{started}\n{}", sayer("a", "2")));
        _ = std::fs::remove_file(home.cwd().join("tries"));
        for value in ["2", "3"] {
            home.extension("b.ts", &sayer("b", value));
            let report = rpc.ok(reload()).await;
            assert_eq!(names(&report, "kept"), ["a.ts"], "{report}");
            assert_eq!(names(&report, "loaded"), ["b.ts"], "{report}");
            says(&mut rpc, "a", "1").await;
            says(&mut rpc, "b", value).await;
        }
        let tries = std::fs::read_to_string(home.cwd().join("tries")).unwrap();
        assert_eq!(tries, "x", "{hang}");
    }
    home.extension("a.ts", &sayer("a", "4"));
    let report = rpc.ok(reload()).await;
    assert_eq!(names(&report, "loaded"), ["a.ts", "b.ts"], "{report}");
    says(&mut rpc, "a", "4").await;
}

/// A generation whose isolate stops comes back, with the last good version of a broken extension.
#[tokio::test]
async fn a_recovery_keeps_the_last_good_version() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionTimeouts": { "spin": 1000 } }));
    home.extension("a.ts", &sayer("a", "1"));
    home.extension(
        "b.ts",
        r#"export default (pi) => pi.registerCommand("spin", { handler: async () => { for (;;); } });"#,
    );
    let mut rpc = home.rpc(&[]);
    says(&mut rpc, "a", "1").await;
    home.extension("a.ts", "broken(");
    rpc.ok(reload()).await;
    says(&mut rpc, "a", "1").await;
    rpc.request(prompt("/spin")).await;
    rpc.wait("the quarantine", |line| {
        let error = line["error"].as_str().unwrap_or_default();
        error.contains("quarantined")
    })
    .await;
    pause(10).await;
    says(&mut rpc, "a", "1").await;
}

/// An extension whose provider has one model.
fn provider(model: &str) -> String {
    format!(
        r#"export default (pi) => pi.registerProvider("own", {{
            baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "openai-completions",
            models: [{{ id: "{model}", name: "m", reasoning: false, input: ["text"], contextWindow: 1000,
                maxTokens: 100, cost: {{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }} }}] }});"#
    )
}

/// The state named a model that no provider had, and a prompt failed.
#[tokio::test]
async fn a_model_that_is_gone_after_a_reload_is_left() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("p.ts", &provider("one"));
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "set_model", "provider": "own", "modelId": "one"}))
        .await;
    home.extension("p.ts", &provider("two"));
    rpc.ok(reload()).await;
    rpc.wait("that the model is gone", |line| {
        let text = line.to_string();
        text.contains("own/one is gone") && text.contains("/model")
    })
    .await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["model"], Value::Null, "{state}");
    home.extension("p.ts", &provider("one"));
    rpc.ok(reload()).await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["model"]["id"], "one", "{state}");
}

/// The watch knew the files of the last good version only.
#[tokio::test]
async fn an_import_of_a_broken_version_is_watched() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    home.extension("a/index.ts", &sayer("a", "1"));
    let mut rpc = home.rpc(&[]);
    says(&mut rpc, "a", "1").await;
    let folder = home.agent_dir().join("extensions/a");
    watches(rpc.process_id(), &folder, true).await;
    home.extension(
        "a/index.ts",
        &format!("import './new';\n{}", sayer("a", "2")),
    );
    rpc.event("extension_error").await;
    says(&mut rpc, "a", "1").await;
    home.extension("a/new.ts", "export {};");
    rpc.notified("Reloaded: new.ts").await;
    says(&mut rpc, "a", "2").await;
}
