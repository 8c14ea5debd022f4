//! Reloads: resources of the old extensions are released, changes are loaded, and quarantined
//! extensions stay out.

use std::net::TcpStream;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, is_running, pause, prompt, until_exists, watches, with_extension};

#[tokio::test]
async fn a_quarantined_extension_returns_when_changed_or_requested() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionTimeouts": { "spin": 1500 } }));
    let source = r#"import { spin } from "./lib/spin.js";
        export default (pi) => pi.registerCommand("go", { handler: async (args, ctx) => {
            ctx.ui.notify("goes");
            if (args === "spin") setTimeout(spin, 10);
        }});"#;
    home.extension("todo/index.ts", source);
    let endless = "export const spin = () => { for (;;); };";
    home.extension("todo/lib/spin.ts", endless);
    let mut rpc = home.rpc(&[]);
    let reload = || json!({"type": "reload"});
    let spin = async |rpc: &mut Rpc| {
        rpc.ok(prompt("/go spin")).await;
        rpc.notified("goes").await;
        rpc.wait("the report", |line| {
            let error = line["error"].as_str().unwrap_or_default();
            error.contains("quarantined") && error.contains("/reload todo")
        })
        .await;
    };

    spin(&mut rpc).await;
    let report = rpc.ok(reload()).await;
    assert_eq!(report["loaded"], json!([]), "nothing has changed: {report}");
    let reason = report["failed"][0]["error"].as_str().unwrap();
    assert!(reason.contains("/reload todo"), "{reason}");
    let refused = rpc
        .refused(json!({"type": "reload", "extension": "other"}))
        .await;
    let expected = "\"other\" is not quarantined; these are: todo. \
                    A reload without a name loads all extensions";
    assert_eq!(refused, expected);

    let report = rpc.ok(json!({"type": "reload", "extension": "todo"})).await;
    assert_eq!(report["failed"], json!([]));
    spin(&mut rpc).await;

    home.extension("todo/lib/spin.ts", "export const spin = () => {};");
    let report = rpc.ok(reload()).await;
    assert_eq!(report["failed"], json!([]), "its helper has changed");
    rpc.ok(prompt("/go spin")).await;
    rpc.notified("goes").await;
}

#[tokio::test]
async fn a_replaced_extension_releases_its_resources() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let source = r#"
        import { spawn } from "node:child_process";
        import fs from "node:fs";
        import net from "node:net";
        import { Worker } from "node:worker_threads";

        export default (pi) => {
        pi.registerCommand("tick", { handler: async (args, ctx) => {
            for (let ticks = 0; ticks < 40; ticks += 1) {
                await new Promise((resolve) => setTimeout(resolve, 5));
            }
            ctx.ui.notify("ticked");
        }});
        pi.registerCommand("hold", { handler: async (args, ctx) => {
            setInterval(() => console.log("TICK timer"), 5);
            const watched = process.cwd() + "/watched";
            fs.writeFileSync(watched, "");
            fs.watch(watched, () => console.log("TICK watcher"));
            setInterval(() => fs.appendFileSync(watched, "x"), 5);
            new Worker("setInterval(() => console.log('TICK worker'), 5)", { eval: true });
            const server = net.createServer(() => {});
            await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
            const child = spawn("sleep", ["1000"]);
            const pidFile = process.cwd() + "/exec-pid";
            pi.exec("sh", ["-c", `echo $$ > ${pidFile}; exec sleep 1000`]);
            while (!fs.existsSync(pidFile) || fs.readFileSync(pidFile, "utf8") === "") {
                await new Promise((resolve) => setTimeout(resolve, 10));
            }
            const executed = Number(fs.readFileSync(pidFile, "utf8"));
            ctx.ui.notify(JSON.stringify({
                port: server.address().port, pids: [child.pid, executed] }));
        }});
        };"#;
    home.extension("ext.ts", source);
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/hold")).await;
    let held = rpc.ui("notify").await["message"]
        .as_str()
        .unwrap()
        .to_string();
    let held: Value = serde_json::from_str(&held).unwrap();
    let port = u16::try_from(held["port"].as_u64().unwrap()).unwrap();
    let pids: Vec<u64> = held["pids"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .collect();
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| is_running(*pid)));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    for kind in ["timer", "watcher", "worker"] {
        while !rpc.stderr().contains(&format!("TICK {kind}")) {
            pause(10).await;
        }
    }

    rpc.ok(json!({"type": "reload"})).await;
    while pids.iter().any(|pid| is_running(*pid)) || TcpStream::connect(("127.0.0.1", port)).is_ok()
    {
        pause(10).await;
    }
    // Output that was on its way arrives; then there is none while a timer of the new extension,
    // which is as fast as those of the old one, fires forty times.
    let mut heard = 0;
    while heard != rpc.stderr().len() {
        heard = rpc.stderr().len();
        rpc.ok(prompt("/tick")).await;
        rpc.notified("ticked").await;
    }
}

#[tokio::test]
async fn a_missing_import_is_watched() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    home.extension(
        "m.ts",
        r#"import { value } from "./lib/later";
        export default (pi) => pi.on("session_start", (_, ctx) => ctx.ui.notify("m " + value));"#,
    );
    home.extension("lib/other.ts", "");
    let mut rpc = home.rpc(&[]);
    rpc.event("extension_error").await;
    watches(
        rpc.process_id(),
        &home.agent_dir().join("extensions/lib"),
        true,
    )
    .await;
    home.extension("lib/later.ts", "export const value: number = 1;");
    rpc.notified("m 1").await;
    rpc.notified("Reloaded: later.ts").await;
}

/// The setting was read once, when pi started.
#[tokio::test]
async fn the_watch_setting_is_read_at_each_reload() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let path = home.extension("m.ts", "export default (pi) => {};");
    // A rename changes the file in one step. The watch would load a half-written file, too.
    let save = |word: &str| {
        let source = format!("export default (pi) => {{}}; // {word}");
        let new = home.file("new.ts", &source);
        std::fs::rename(new, &path)
    };
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    home.settings(json!({ "extensionWatch": true }));
    rpc.ok(json!({"type": "reload"})).await;
    save("one").unwrap();
    rpc.notified("Reloaded: m.ts").await;
    home.settings(json!({}));
    rpc.ok(json!({"type": "new_session"})).await;
    watches(rpc.process_id(), path.parent().unwrap(), false).await;
    save("two").unwrap();
    home.settings(json!({ "extensionWatch": true }));
    rpc.ok(json!({"type": "new_session"})).await;
    save("three").unwrap();
    rpc.notified("Reloaded: m.ts").await;
    let lines = rpc.lines();
    let reported = lines.iter().filter(|line| line["method"] == "notify");
    let reported: Vec<&Value> = reported.map(|line| &line["message"]).collect();
    assert_eq!(reported, ["Reloaded: m.ts"; 2]);
}

#[tokio::test]
async fn saving_a_file_reloads_when_the_agent_is_idle() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    let file = |name: &str, text: &str| home.extension(name, text);
    // Compiled extensions of each kind, with a helper in a sub-folder.
    file(
        "a.ts",
        r#"import { value } from "./lib/deep/a.ts";
        export default (pi) => {
            pi.registerCommand("a", { handler: async (args, ctx) => ctx.ui.notify("a " + value) });
            pi.on("session_start", (event, ctx) => ctx.ui.notify("started " + event.reason));
        };"#,
    );
    file("lib/deep/a.ts", "export const value = 1;");
    file(
        "b.js",
        r#"const { value } = require("./lib/b.cjs");
        module.exports = (pi) => pi.registerCommand("b", {
            handler: async (args, ctx) => ctx.ui.notify("b " + value) });"#,
    );
    file("lib/b.cjs", "exports.value = 1;");
    file(
        "c/index.js",
        r#"import { value } from "./lib/c.mjs";
        export default (pi) => pi.registerCommand("c", {
            handler: async (args, ctx) => ctx.ui.notify("c " + value) });"#,
    );
    file("c/lib/c.mjs", "export const value = 1;");
    let mut rpc = home.rpc(&[]);
    rpc.notified("started startup").await;
    let values = async |rpc: &mut Rpc, wanted: [u32; 3]| {
        for (name, value) in ["a", "b", "c"].into_iter().zip(wanted) {
            rpc.ok(prompt(&format!("/{name}"))).await;
            rpc.notified(&format!("{name} {value}")).await;
        }
    };
    values(&mut rpc, [1, 1, 1]).await;

    file("lib/b.cjs", "exports.value = 2;");
    rpc.notified("started reload").await;
    rpc.notified("Reloaded: b.cjs").await;
    values(&mut rpc, [1, 2, 1]).await;

    // Editors save by replacing the file.
    let new = file("c/lib/new", "export const value = 3;");
    std::fs::rename(&new, new.with_file_name("c.mjs")).unwrap();
    rpc.notified("Reloaded: c.mjs").await;
    values(&mut rpc, [1, 2, 3]).await;

    // The extension that is broken now stays in its old version.
    file("lib/deep/a.ts", "export const value = ;");
    rpc.wait("that the old one stays", |line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("Last good version kept: ")
    })
    .await;
    values(&mut rpc, [1, 2, 3]).await;

    // The reload waits while the agent works.
    server.push(Answer::tool(
        "bash",
        json!({"command": "while [ ! -e go ]; do sleep 0.05; done"}),
    ));
    server.push(Answer::text("Done."));
    rpc.ok(prompt("wait for it")).await;
    rpc.event("tool_execution_start").await;
    file("lib/deep/a.ts", "export const value = 4;");
    pause(300).await;
    home.file("go", "");
    rpc.event("agent_end").await;
    rpc.notified("Reloaded: a.ts").await;
    values(&mut rpc, [4, 2, 3]).await;
}

/// An extension that reports `value` at its start and on request.
fn sayer(value: &str, before: &str) -> String {
    format!(
        r#"{before}
        export default (pi) => {{
            pi.registerCommand("v", {{ handler: async (_, ctx) => ctx.ui.notify("v {value}") }});
            pi.on("session_start", (_, ctx) => ctx.ui.notify("started {value}"));
        }};"#
    )
}

#[tokio::test]
async fn a_save_during_a_reload_causes_another() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    let slow = r#"import { existsSync, writeFileSync } from "node:fs";
        writeFileSync("loading", "");
        while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 5));"#;
    home.extension("a.ts", &sayer("0", slow));
    home.file("go", "");
    let mut rpc = home.rpc(&[]);
    rpc.notified("started 0").await;
    let loading = home.cwd().join("loading");
    std::fs::remove_file(&loading).unwrap();
    std::fs::remove_file(home.cwd().join("go")).unwrap();
    home.extension("a.ts", &sayer("1", slow));
    until_exists(&loading).await;
    home.extension("a.ts", &sayer("2", slow));
    home.file("go", "");
    rpc.notified("started 1").await;
    rpc.notified("started 2").await;
    rpc.notified("Reloaded: a.ts").await;
}

#[tokio::test]
async fn an_extension_survives_its_rebuild() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let dist = home.cwd().join("pkg/dist");
    let index = dist.join("index.js");
    let build = |value: &str| {
        std::fs::create_dir_all(&dist).unwrap();
        std::fs::write(&index, sayer(value, "")).unwrap();
    };
    build("0");
    std::fs::write(
        home.cwd().join("pkg/package.json"),
        r#"{"name": "pkg", "type": "module", "pi": {"extensions": ["dist/index.js"]}}"#,
    )
    .unwrap();
    home.settings(json!({ "extensionWatch": true, "packages": [home.cwd().join("pkg")] }));
    let mut rpc = home.rpc(&[]);
    rpc.notified("started 0").await;
    // The rebuild is immediate, with a new folder each time.
    for value in ["1", "2", "3"] {
        watches(rpc.process_id(), &dist, true).await;
        std::fs::remove_dir_all(&dist).unwrap();
        build(value);
        rpc.notified(&format!("started {value}")).await;
        rpc.notified("Reloaded: dist/index.js").await;
    }
    // The rebuild is slow.
    std::fs::remove_dir_all(&dist).unwrap();
    rpc.wait("that it is gone", |line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("Missing: dist/index.js.")
    })
    .await;
    rpc.ok(prompt("/v")).await;
    rpc.notified("v 3").await;
    build("4");
    rpc.notified("started 4").await;
    rpc.notified("Reloaded: dist/index.js").await;
}

/// The folder was not watched: a new extension in it waited for `/reload`.
#[tokio::test]
async fn a_new_extension_is_loaded_when_it_is_saved() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({ "type": "get_state" })).await;
    home.extension("a.ts", &sayer("1", ""));
    rpc.notified("Reloaded: a.ts").await;
    home.extension(
        "b.ts",
        r#"import { start } from "./lib/b"; export default start;"#,
    );
    rpc.notified("Failed: b.ts").await;
    rpc.ok(prompt("/v")).await;
    rpc.notified("v 1").await;
    // The file that it imports comes later, and so does the folder of that file.
    home.extension(
        "lib/b.ts",
        r#"export const start = (pi) => pi.on("session_start", (_, ctx) => ctx.ui.notify("b"));"#,
    );
    rpc.notified("b").await;
    home.extension(
        "folder/index.ts",
        r#"export default (pi) => pi.on("session_start", (_, ctx) => ctx.ui.notify("in a folder"));"#,
    );
    rpc.notified("in a folder").await;
    // A renamed extension is not a second one.
    let folder = home.agent_dir().join("extensions");
    std::fs::rename(folder.join("a.ts"), folder.join("c.ts")).unwrap();
    rpc.notified("Reloaded: c.ts. Gone: a.ts").await;
    rpc.ok(prompt("/v")).await;
    rpc.notified("v 1").await;
}

/// The watch of all others ended until the next reload.
#[tokio::test]
async fn a_removed_extension_goes_after_five_seconds() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    let gone = home.extension("a.ts", "export default () => {};");
    home.extension("b.ts", &sayer("1", ""));
    let mut rpc = home.rpc(&[]);
    rpc.notified("started 1").await;
    watches(rpc.process_id(), gone.parent().unwrap(), true).await;
    std::fs::remove_file(gone).unwrap();
    rpc.wait("that it is gone", |line| {
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("Missing: a.ts.")
    })
    .await;
    home.extension("b.ts", &sayer("2", ""));
    rpc.notified("started 2").await;
    rpc.notified("Reloaded: b.ts. Gone: a.ts").await;
    home.extension("b.ts", &sayer("3", ""));
    rpc.notified("Reloaded: b.ts").await;
}

#[tokio::test]
async fn a_file_that_is_imported_later_is_watched() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionWatch": true }));
    home.extension(
        "a.ts",
        r#"export default (pi) => pi.registerCommand("v", { handler: async (args, ctx) => {
            const { value } = await import("./lib/late.ts");
            ctx.ui.notify("v " + value);
            if (args) ctx.ui.notify("answer " + await ctx.ui.input("Say"));
        } });"#,
    );
    home.extension("lib/late.ts", "export const value = 1;");
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/v")).await;
    rpc.notified("v 1").await;
    pause(300).await;
    home.extension("lib/late.ts", "export const value = 2;");
    rpc.notified("Reloaded: late.ts").await;
    // The answer to a dialog is not lost.
    rpc.send(r#"{"type":"prompt","message":"/v ask"}"#).await;
    rpc.notified("v 2").await;
    let question = rpc.ui("input").await;
    // The watch learns of a new import a moment later.
    pause(300).await;
    home.extension("lib/late.ts", "export const value = 3;");
    pause(300).await;
    rpc.reply(&question, json!({"value": "yes"})).await;
    rpc.notified("answer yes").await;
    rpc.notified("Reloaded: late.ts").await;
}

/// Memory in kilobytes, without pages shared with other processes.
fn memory(rpc: &Rpc) -> u64 {
    let path = format!("/proc/{}/smaps_rollup", rpc.process_id());
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with("Pss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Run by hand: `cargo nextest run -p pi --test it thousand_reloads --run-ignored all --no-capture`
#[tokio::test]
#[ignore = "takes minutes"]
async fn memory_is_flat_after_a_thousand_reloads() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    for name in ["a", "b", "c"] {
        let source = format!(
            r#"import {{ Type }} from "@sinclair/typebox";
            import fs from "node:fs";
            const kept = new Array(10000).fill("{name}");
            export default (pi) => {{
                setInterval(() => kept.length, 1000);
                pi.on("session_start", () => fs.existsSync("/"));
                pi.registerTool({{ name: "{name}", label: "{name}", description: "d",
                    parameters: Type.Object({{}}), execute: async () => ({{ content: [] }}) }});
            }};"#
        );
        home.extension(&format!("{name}.ts"), &source);
    }
    let mut rpc = home.rpc(&[]);
    let mut after = Vec::new();
    for number in 1..=1000_u32 {
        let report = rpc.ok(json!({"type": "reload"})).await;
        assert_eq!(report["loaded"].as_array().map(Vec::len), Some(3));
        if number % 100 == 0 {
            after.push(memory(&rpc));
            println!("{number} reloads: {} KB", memory(&rpc));
        }
    }
    let (early, late) = (after[1], after[after.len() - 1]);
    assert!(late < early + early / 5, "{after:?}");
}

/// Two kinds of hang: a reload that waits is given up after five seconds, because the abort may
/// have been meant for something else; a reload that spins is given up sooner.
#[tokio::test]
async fn an_abort_ends_a_hanging_load_and_the_last_version_stays() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionTimeouts": { "load": 600_000, "spin": 600_000 } }));
    let calm = r#"export default (pi) => pi.registerCommand("go", {
        handler: async (args, ctx) => ctx.ui.notify("goes " + args),
    });"#;
    for (hang, delay) in [
        ("await new Promise(() => setInterval(() => {}, 10));", 0),
        ("for (;;);", 1500),
    ] {
        home.extension("ext.ts", calm);
        home.extension("zz.ts", "export default () => {};");
        let mut rpc = home.rpc(&[]);
        rpc.ok(json!({"type": "get_state"})).await;
        let source = format!(
            "import {{ writeFileSync }} from 'node:fs';\n{calm}\n\
            writeFileSync('loading', '');\n{hang}"
        );
        home.extension("ext.ts", &source);
        let loading = home.cwd().join("loading");
        rpc.send(&json!({"type": "reload", "id": "hangs"}).to_string())
            .await;
        until_exists(&loading).await;
        std::fs::remove_file(&loading).unwrap();
        pause(delay).await;
        rpc.ok(json!({"type": "abort"})).await;
        let response = rpc.wait("the reload", |line| line["id"] == "hangs").await;
        let report = &response["data"];
        assert_eq!(report["kept"].as_array().unwrap().len(), 1, "{response}");
        let kept = report["kept"][0]["path"].as_str().unwrap();
        assert!(kept.ends_with("/ext.ts"), "{response}");
        let error = report["kept"][0]["error"].as_str().unwrap();
        assert!(error.starts_with("the user aborted the load"), "{response}");
        rpc.ok(prompt("/go on")).await;
        rpc.notified("goes on").await;
        assert_eq!(rpc.close().await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_reload_reads_the_limits_of_the_settings() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({ "extensionTimeouts": { "handler": 600_000 } }));
    home.extension(
        "ext.ts",
        r#"export default (pi) => pi.on("before_agent_start", () => new Promise(() => {}));"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(json!({"type": "get_state"})).await;
    home.settings(json!({ "extensionTimeouts": { "handler": 1000 }, "extensionHeapMb": 200 }));
    rpc.ok(json!({"type": "reload"})).await;
    server.push(Answer::text("Anyway."));
    assert_eq!(rpc.answer_to("go").await, "Anyway.");
    let stats = rpc.ok(json!({"type": "get_extension_stats"})).await;
    let limit = stats["heap"]["limit"].as_u64().unwrap();
    assert!(limit < 300 << 20, "{stats}");
}

/// An abort together with a new session unloaded extensions, and quarantined some.
#[tokio::test]
async fn an_abort_at_a_new_session_unloads_no_extension() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => pi.registerCommand("here", { handler: async (_, ctx) => ctx.ui.notify("yes") });"#,
    )
    .await;
    rpc.ok(json!({"type": "get_state"})).await;
    for delay in 0..25 {
        rpc.send(r#"{"type":"new_session"}"#).await;
        pause(delay).await;
        rpc.send(r#"{"type":"abort"}"#).await;
        rpc.ok(prompt("/here")).await;
        rpc.notified("yes").await;
    }
    let is_error = |line: &Value| line["type"] == "extension_error";
    assert!(!rpc.lines().iter().any(is_error));
}
