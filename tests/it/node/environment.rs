//! The runtime environment that extensions expect.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Reference, Rpc, prompt};

/// Starts pi with one extension, which is a folder with these files.
async fn with_files(files: &[(&str, &str)]) -> (Home, Rpc) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    for (name, source) in files {
        home.extension(&format!("ext/{name}"), source);
    }
    let rpc = home.rpc(&[]);
    (home, rpc)
}

/// An extension with the slash command `/go`, which notifies the result of its body.
fn go(head: &str, body: &str) -> String {
    format!(
        r#"{head}
        export default (pi) => pi.registerCommand("go", {{ handler: async (args, ctx) => {{
            const answer = await (async () => {{ {body} }})();
            ctx.ui.notify(String(answer));
        }} }});"#
    )
}

/// Waits for an `extension_error` that contains a text.
async fn complains(rpc: &mut Rpc, text: &str) -> Value {
    let what = format!("an extension_error with {text:?}");
    let matches = |line: &Value| {
        line["type"] == "extension_error"
            && line["error"].as_str().is_some_and(|e| e.contains(text))
    };
    rpc.wait(&what, matches).await
}

#[tokio::test]
async fn module_specifiers_are_resolved_leniently() {
    let index = go(
        r#"import { greet, Mood } from "./helper";
        import { whole } from "./folder";
        import { renamed } from "./other.js";
        import { own } from '#own/deep';
        import data from "./data.json";
        import { readFileSync } from "fs";
        import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";"#,
        r#"const legacy = require("./legacy.cjs");
        const read = readFileSync(__dirname + "/data.json", "utf8").length > 0;
        return [greet("a"), Mood.Good, whole, renamed, own, data.name, legacy.old, read].join(" ");"#,
    );
    let (_home, mut rpc) = with_files(&[
        ("index.ts", &index),
        (
            "helper.ts",
            "export enum Mood { Bad, Good }\nexport const greet = (who: string) => `hi ${who}`;",
        ),
        (
            "folder/index.ts",
            "import { part } from './part';\nexport const whole: string = `whole ${part}`;",
        ),
        ("folder/part.ts", "export const part = 'part';"),
        ("other.ts", "export const renamed = 'other';"),
        ("data.json", r#"{"name": "json"}"#),
        ("legacy.cjs", "exports.old = 'cjs';"),
        ("package.json", r##"{"imports": {"#own/*": "./source/*"}}"##),
        ("source/deep/index.ts", "export const own = 'own';"),
    ])
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("hi a 1 whole part other own json cjs true")
        .await;
}

#[tokio::test]
async fn modules_may_import_each_other() {
    let index = go(r#"import { name } from "./left";"#, "return name();");
    let (_home, mut rpc) = with_files(&[
        ("index.ts", &index),
        ("left.ts", "import { end } from './right';\nexport const mine = 'left';\nexport const name = () => end();"),
        ("right.ts", "import { mine } from './left';\nexport const end = () => `${mine} and right`;"),
    ])
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("left and right").await;
}

#[tokio::test]
async fn packages_are_found_beside_the_extension_or_above() {
    let index = go(
        "import esm from 'esm-package';\nimport { named } from 'cjs-package/sub';",
        "return `${esm} ${named}`;",
    );
    let (_home, mut rpc) = with_files(&[
        ("index.ts", &index),
        (
            "node_modules/esm-package/package.json",
            r#"{"type": "module", "exports": "./main.js"}"#,
        ),
        ("node_modules/esm-package/main.js", "export default 'esm';"),
        (
            "../node_modules/cjs-package/package.json",
            r#"{"name": "cjs-package"}"#,
        ),
        (
            "../node_modules/cjs-package/sub.js",
            "module.exports = { named: 'cjs' };",
        ),
    ])
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("esm cjs").await;
}

/// Node may not be installed: for extensions pi takes its place.
#[tokio::test]
async fn pi_runs_scripts_and_forks_modules() {
    let index = go(
        r#"import { execFileSync, fork } from "node:child_process";
        import { fileURLToPath } from "node:url";
        const beside = (name) => fileURLToPath(new URL(name, import.meta.url));
        const ended = (child) => new Promise((end) => child.on("exit", (code) => end(code)));"#,
        r#"if (args === "version") return execFileSync(process.execPath, ["--version"], { encoding: "utf8" }).trim();
        if (args === "script") {
            return execFileSync(process.execPath, [beside("./script.mjs"), "a b", "-p"], { encoding: "utf8" }).trim();
        }
        if (args.startsWith("eval")) {
            const module = 'import { basename } from "node:path"; import { value } from "./value.ts";\n' +
                'const told: string[] = process.argv.slice(1); console.log(basename("/a/b"), value, ...told)';
            const script = 'const os = require("os"); var x = 2; console.log(typeof os.cpus, path.basename("/c/d"), x, process.argv.length);';
            const words = args === "eval module"
                ? ["--experimental-strip-types", "--input-type=module", "-e", module, "one", "--two"]
                : ["-e", script];
            return execFileSync(process.execPath, words, { encoding: "utf8", cwd: fileURLToPath(new URL(".", import.meta.url)) }).trim();
        }
        if (args === "exit") {
            const child = fork(beside("./child.cjs"), ["7"]);
            child.send({ exit: true });
            return "exit " + await ended(child);
        }
        const child = fork(beside("./child.cjs"), ["1", "2"], { serialization: args });
        const answered = new Promise((answer) => child.on("message", answer));
        child.send({ question: 20 });
        const { answer, main, nested } = await answered;
        const code = await ended(child);
        return `${args} ${answer} ${main} ${nested} ${code}`;"#,
    );
    let script = r#"import { argv } from "node:process"; console.log(argv.slice(2).join("|"));"#;
    let child = r#"
        const { execFileSync } = require("node:child_process");
        process.on("message", (message) => {
            if (message.exit) process.exit(Number(process.argv[2]));
            const nested = execFileSync(process.execPath, [__dirname + "/script.mjs", "nested"], { encoding: "utf8" });
            const answer = message.question + process.argv.slice(2).length * 11;
            process.send({ answer, main: require.main === module, nested: nested.trim() }, () => process.disconnect());
        });"#;
    let files = [
        ("index.ts", index.as_str()),
        ("script.mjs", script),
        (
            "value.ts",
            "export const value: number = 2 + process.argv.indexOf(\"one\");",
        ),
        ("child.cjs", child),
    ];
    let (_home, mut rpc) = with_files(&files).await;
    for (way, result) in [
        ("version", "0.87.1"),
        ("script", "a b|-p"),
        ("json", "json 42 true nested 0"),
        ("advanced", "advanced 42 true nested 0"),
        ("exit", "exit 7"),
        ("eval module", "b 3 one --two"),
        ("eval script", "function d 2 1"),
    ] {
        rpc.ok(prompt(&format!("/go {way}"))).await;
        rpc.notified(result).await;
    }
}

#[tokio::test]
async fn workers_take_data_and_send_messages() {
    let index = go(
        r#"import { Worker as Thread } from "node:worker_threads";
        const said = (worker) => new Promise((say, fail) => { worker.on("message", say); worker.on("error", fail); });"#,
        r#"if (args === "web") {
            const worker = new Worker(new URL("./web.ts", import.meta.url), { type: "module" });
            const answer = new Promise((say) => { worker.onmessage = (event) => say(event.data); });
            worker.postMessage([1, 2, 3]);
            try { return "web " + await answer; } finally { worker.terminate(); }
        }
        if (args === "eval") {
            const worker = new Thread("require('node:worker_threads').parentPort.postMessage(typeof require('node:os').cpus)", { eval: true });
            return "eval " + await said(worker);
        }
        if (args === "broken") {
            return said(new Thread(new URL("./broken.mjs", import.meta.url))).catch((error) => "broken: " + error.message);
        }
        if (args === "spin") {
            const worker = new Thread(new URL("./spin.mjs", import.meta.url));
            await said(worker);
            return "ended " + await worker.terminate();
        }
        const worker = new Thread(new URL("./thread.mjs", import.meta.url), { workerData: { half: 21 } });
        try { return args + " " + await said(worker); } finally { await worker.terminate(); }"#,
    );
    let files = [
        ("index.ts", index.as_str()),
        (
            "thread.mjs",
            r#"import { parentPort, workerData } from "node:worker_threads";
            import { twice } from "./twice.ts";
            parentPort.postMessage(twice(workerData.half));"#,
        ),
        (
            "twice.ts",
            "export const twice = (half: number) => half * 2;",
        ),
        (
            "web.ts",
            "self.onmessage = (event: MessageEvent<number[]>) => self.postMessage(event.data.reduce((a, b) => a + b));",
        ),
        ("broken.mjs", r#"throw new Error("not today");"#),
        (
            "spin.mjs",
            r#"import { parentPort } from "node:worker_threads";
            parentPort.postMessage("spinning");
            for (;;) {}"#,
        ),
    ];
    let (_home, mut rpc) = with_files(&files).await;
    for (way, result) in [
        ("node", "node 42"),
        ("web", "web 6"),
        ("eval", "eval function"),
        ("broken", "broken: not today"),
        ("spin", "ended 1"),
        ("again", "again 42"),
    ] {
        rpc.ok(prompt(&format!("/go {way}"))).await;
        rpc.notified(result).await;
    }
}

/// The addon of a package that the original depends on, built with napi-rs.
#[tokio::test]
async fn native_addons_load() {
    let addon = Reference::install().addon();
    let index = go(
        r#"import { createRequire } from "node:module";"#,
        &format!(
            "const addon = createRequire(import.meta.url)({addon:?});
            return typeof addon.getText;"
        ),
    );
    let (_home, mut rpc) = with_files(&[("index.ts", &index)]).await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("function").await;
}

#[tokio::test]
async fn commands_are_run_without_a_shell() {
    let exec = r#"JSON.stringify(await pi.exec("sh", ["-c", "echo out; echo err >&2; exit 3"]))"#;
    let index = go("", &format!("return {exec};"));
    let (_home, mut rpc) = with_files(&[("index.ts", &index)]).await;
    rpc.ok(prompt("/go")).await;
    rpc.notified(r#"{"stdout":"out\n","stderr":"err\n","code":3,"killed":false}"#)
        .await;
}

#[tokio::test]
async fn errors_name_file_line_and_column() {
    let index = "interface Gone {\n  nothing: string;\n}\nexport default (pi: any) => pi.registerCommand('go', {\n  handler: async () => { throw new Error('over here'); },\n});";
    let (_home, mut rpc) = with_files(&[("index.ts", index)]).await;
    rpc.ok(prompt("/go")).await;
    let error = complains(&mut rpc, "over here").await;
    let text = error.to_string();
    assert!(text.contains("ext/index.ts:5:"), "{text}");
}

#[tokio::test]
async fn modules_are_also_found_by_their_new_names() {
    let index = go(
        r#"import { Type } from "typebox";
        import { Type as OldType } from "@sinclair/typebox";
        import { StringEnum } from "@earendil-works/pi-ai";
        import { defineTool } from "@earendil-works/pi-coding-agent";"#,
        r#"return [Type.String().type, OldType.Number().type, StringEnum(["a"]).enum, typeof defineTool].join(" ");"#,
    );
    let (_home, mut rpc) = with_files(&[("index.ts", &index)]).await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("string number a function").await;
}

#[tokio::test]
async fn an_unsupported_name_throws_when_it_is_used() {
    let index = go(
        r#"import { noSuchThing } from "@mariozechner/pi-coding-agent";"#,
        "return noSuchThing();",
    );
    let (_home, mut rpc) = with_files(&[("index.ts", &index)]).await;
    rpc.ok(prompt("/go")).await;
    complains(&mut rpc, "noSuchThing").await;
}

#[tokio::test]
async fn an_unsupported_event_is_named() {
    let index = "export default (pi) => pi.on('no_such_event', () => {});";
    let (_home, mut rpc) = with_files(&[("index.ts", index)]).await;
    let warns = |line: &Value| {
        let message = line["message"].as_str().unwrap_or_default();
        line["type"] == "extension_warning" && message.contains("no_such_event")
    };
    rpc.wait("a warning that names the event", warns).await;
}

#[tokio::test]
async fn extensions_share_an_event_bus() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let listens = r#"export default (pi) => { let ui;
        pi.on("session_start", (event, ctx) => { ui = ctx.ui; });
        pi.events.on("news", (text) => ui.notify(`heard ${text}`)); };"#;
    home.extension("listens.ts", listens);
    home.extension(
        "speaks.ts",
        &go("", "pi.events.emit('news', args); return 'said';"),
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go it works")).await;
    rpc.notified("heard it works").await;
}

#[tokio::test]
async fn flags_come_from_the_command_line() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let source = r#"export default (pi) => {
        pi.registerFlag("plan", { type: "boolean", default: false });
        pi.registerFlag("tone", { type: "string", default: "calm" });
        pi.on("session_start", (event, ctx) => ctx.ui.notify(`${pi.getFlag("plan")} ${pi.getFlag("tone")}`));
    };"#;
    home.extension("flags.ts", source);
    for (arguments, notice) in [
        (&[][..], "false calm"),
        (&["--tone=loud", "--plan"], "true loud"),
    ] {
        let mut rpc = home.rpc(arguments);
        rpc.notified(notice).await;
        rpc.close().await;
    }
}

#[tokio::test]
async fn a_failed_reload_keeps_the_old_extensions() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("changing.ts", &go("", "return 'old';"));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified("old").await;
    home.extension("changing.ts", "export default (pi) => {\n  const x = ;\n};");
    rpc.request(json!({"type": "reload"})).await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("old").await;
    let lines = rpc.raw_lines();
    let shown = lines.iter().any(|line| line.contains("changing.ts:2"));
    assert!(shown, "the reason is shown: {lines:?}");
    home.extension("changing.ts", &go("", "return 'new';"));
    rpc.ok(json!({"type": "reload"})).await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("new").await;
}

#[tokio::test]
async fn a_tools_context_has_the_tools_own_signal() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "tool.ts",
        r#"export default (pi) => pi.registerTool({ name: "probe", label: "p", description: "d",
            parameters: { type: "object", properties: {} },
            execute: async (id, params, signal, update, ctx) => ({
                content: [{ type: "text", text: "same: " + (ctx.signal === signal) }],
            }) });"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::tool("probe", json!({})));
    server.push(Answer::text("Done."));
    rpc.ok(prompt("go")).await;
    let end = rpc.event("tool_execution_end").await;
    assert_eq!(end["result"]["content"][0]["text"], "same: true");
}

#[tokio::test]
async fn a_signal_first_seen_after_the_abort_is_aborted() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "late.ts",
        r#"export default (pi) => pi.on("agent_end", (event, ctx) =>
            ctx.ui.notify("aborted " + ctx.signal?.aborted));"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::tool("bash", json!({"command": "sleep 20"})));
    rpc.ok(prompt("go")).await;
    rpc.event("tool_execution_start").await;
    rpc.ok(json!({"type": "abort"})).await;
    rpc.notified("aborted true").await;
}

#[tokio::test]
async fn a_session_in_memory_has_no_file() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "memory.ts",
        &go(
            "",
            "const s = ctx.sessionManager; return `${s.getSessionFile()} ${s.isPersisted()}`;",
        ),
    );
    let mut rpc = home.rpc(&["--no-session"]);
    rpc.ok(prompt("/go")).await;
    rpc.notified("undefined false").await;
}

#[tokio::test]
async fn a_notification_is_converted_to_text() {
    let index = go("", "ctx.ui.notify(123); return 'sent';");
    let (_home, mut rpc) = with_files(&[("index.ts", &index)]).await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("123").await;
}

#[tokio::test]
async fn events_of_two_runs_keep_their_own_signals() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "signals.ts",
        r#"export default (pi) => {
            pi.on("agent_end", (event, ctx) => ctx.ui.notify("aborted " + ctx.signal?.aborted));
        };"#,
    );
    let mut rpc = home.rpc(&[]);
    server.push(Answer::text("One."));
    rpc.send(&prompt("go").to_string()).await;
    rpc.notified("aborted false").await;
    rpc.event("agent_end").await;
    server.push(Answer::tool("bash", json!({"command": "sleep 20"})));
    rpc.ok(prompt("go")).await;
    rpc.event("tool_execution_start").await;
    rpc.ok(json!({"type": "abort"})).await;
    rpc.notified("aborted true").await;
}

#[tokio::test]
async fn a_file_beyond_the_size_limit_is_an_error() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("writes.ts", include_str!("fixtures/environment.ts"));
    for host in ["thread", "process"] {
        home.settings(json!({"extensionHost": host}));
        let mut command = home.command("sh");
        let limited = "ulimit -f 128; exec \"$0\" --mode rpc";
        command.args(["-c", limited, env!("CARGO_BIN_EXE_pi")]);
        let mut rpc = Rpc::start(command);
        rpc.ok(prompt("/write")).await;
        rpc.notified("EFBIG SIGXFSZ 0").await;
    }
}

/// "Am I the script?" at the top of a module failed with `ENOENT: ... /$bunfs/root/pi`.
#[tokio::test]
async fn the_script_path_of_pi_exists() {
    let index = go(
        r#"import { existsSync, lstatSync, promises, realpath, realpathSync, statSync } from "node:fs";
        import { fileURLToPath } from "node:url";
        const script = process.argv[1];
        const isScript = realpathSync(script) === fileURLToPath(import.meta.url);"#,
        r#"const called = await new Promise((resolve) => realpath(script, (_error, path) => resolve(path)));
        const stats = [statSync(script), lstatSync(script), await promises.stat(script), await promises.lstat(script)];
        return [
            isScript, script, called, await promises.realpath(script), realpathSync.native(script), existsSync(script),
            ...stats.map((one) => one.isFile() && one.ino === statSync(process.execPath).ino),
        ].join(" ");"#,
    );
    let (_home, mut rpc) = with_files(&[("index.ts", &index)]).await;
    rpc.ok(prompt("/go")).await;
    let script = "/$bunfs/root/pi";
    let reported = format!("false {script} {script} {script} {script} false true true true true");
    rpc.notified(&reported).await;
}

/// Extensions start pi again in these three ways.
#[tokio::test]
async fn the_script_path_is_not_taken_for_a_prompt() {
    let index = go(
        r#"import { execFileSync } from "node:child_process";
        import { existsSync } from "node:fs";
        const script = process.argv[1];
        const run = (...words) => execFileSync(process.execPath, [...words, "--version"], { encoding: "utf8", stdio: "pipe" });"#,
        r#"return [
            run(script), run(...process.execArgv, script), run(...(existsSync(script) ? [script] : [])),
        ].map((said) => said.trim()).join(" ");"#,
    );
    let (_home, mut rpc) = with_files(&[("index.ts", &index)]).await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("0.87.1 0.87.1 0.87.1").await;
}

/// Extensions that need a newer version compare it by hand or with `semver`.
#[tokio::test]
async fn the_version_compares_like_the_originals() {
    let index = go(
        r#"import { VERSION } from "@mariozechner/pi-coding-agent";
        import { VERSION as NEWER } from "@earendil-works/pi-coding-agent";
        const numbers = (version) => version.split(".").slice(0, 3).map((part) => parseInt(part, 10));
        const isAtLeast = (wanted) => {
            const [have, want] = [numbers(VERSION), numbers(wanted)];
            for (let i = 0; i < 3; i++) if (have[i] !== want[i]) return have[i] > want[i];
            return true;
        };"#,
        r#"const [, ...matched] = /^v?(\d+)\.(\d+)\.(\d+)/.exec(VERSION);
        return [VERSION, NEWER === VERSION, matched.join("."), isAtLeast("0.84.2"), isAtLeast("0.87.1"), isAtLeast("0.88.0")].join(" ");"#,
    );
    let (_home, mut rpc) = with_files(&[("index.ts", &index)]).await;
    let version = concat!("0.87.1+rs.", env!("CARGO_PKG_VERSION"));
    rpc.ok(prompt("/go")).await;
    rpc.notified(&format!("{version} true 0.87.1 true true false"))
        .await;
    let state = rpc.ok(json!({"type": "get_state"})).await;
    assert_eq!(state["version"], version);
    let hello = rpc.ok(json!({"type": "hello", "protocolVersion": 1})).await;
    assert_eq!(
        hello["server"],
        json!({"name": "pi", "version": version, "compatibleWith": "0.87.1"})
    );
}
