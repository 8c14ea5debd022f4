//! Corrections of Deno's Node layer (`js-runtime/snapshot/corrections.rs`).

use model_server::ModelServer;
use serde_json::json;

use crate::node::parity::answers_of_node;
use crate::support::{Home, Rpc, prompt, with_extension};

const SOURCE: &str = r#"
    import { fork } from "node:child_process";
    import { watch, writeFileSync } from "node:fs";
    import { resolve } from "node:path";
    import { Worker } from "node:worker_threads";

    const missing = () => {
        try {
            watch(resolve("nowhere/at/all"));
        } catch ({ code, syscall, path, filename }) {
            return [code, syscall, path, filename];
        }
    };

    const printed = async () => {
        const worker = new Worker("console.log('out'); console.error('err')", {
            eval: true,
            stdout: true,
            stderr: true,
        });
        const text = { stdout: "", stderr: "" };
        const ended = Object.keys(text).map((name) => new Promise((resolve) => {
            worker[name].on("data", (data) => text[name] += data);
            worker[name].on("end", resolve);
        }));
        await Promise.all(ended);
        return text;
    };

    const told = async () => {
        writeFileSync("child.cjs", "for (const word of ['one', 'two', 'last']) process.send(word);");
        const child = fork(resolve("child.cjs"));
        const heard = [];
        child.on("message", (word) => heard.push(word));
        child.on("exit", () => heard.push("exit"));
        await new Promise((resolve) => child.on("close", resolve));
        return heard;
    };

    // Do not connect past the proxy.
    class ProxyAgent {}
    const proxied = () =>
        fetch("http://127.0.0.1:9/", { dispatcher: new ProxyAgent() }).catch(({ message }) => message);

    export default (pi) => pi.registerCommand("go", { handler: async (args, ctx) => {
        const answers = [missing(), await printed(), await told(), await proxied()];
        ctx.ui.notify(JSON.stringify(answers));
    }});
"#;

#[tokio::test]
async fn corrected_functions_behave_as_in_node() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext.ts", SOURCE);
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    let path = home.cwd().join("nowhere/at/all");
    let expected = json!([
        ["ENOENT", "watch", path, path],
        { "stdout": "out\n", "stderr": "err\n" },
        ["one", "two", "last", "exit"],
        "fetch: the dispatcher, a ProxyAgent, has no function \"dispatch\": give it one of undici's",
    ]);
    rpc.notified(&expected.to_string()).await;
}

async fn with_command(body: &str) -> (Home, Rpc) {
    let (_, home, rpc) = with_extension(&format!(
        "export default (pi) => pi.registerCommand(\"go\", {{ handler: async (_args, ctx) => {{
           const answer = await (async () => {{ {body} }})();
           ctx.ui.notify(String(answer));
         }} }});"
    ))
    .await;
    (home, rpc)
}

/// Packages track what a script awaits (`nicobailon/pi-subagents`).
#[tokio::test]
async fn promise_hooks_see_promises_of_vm_contexts() {
    let (_home, mut rpc) = with_command(
        r#"const { promiseHooks } = (await import("node:v8")).default;
        const vm = await import("node:vm");
        const before = vm.createContext({});
        const counts = [0, 0, 0, 0];
        const count = (index) => () => { counts[index] += 1; };
        const stop = promiseHooks.createHook({ init: count(0), before: count(1), after: count(2), settled: count(3) });
        const code = "(async () => { await null; await null; return 1; })()";
        const seen = [];
        for (const context of [before, vm.createContext({})]) {
          const at = [...counts];
          await vm.runInContext(code, context);
          // One await of this function itself counts as one init, and has settled.
          seen.push(counts.every((number, index) => number - at[index] >= 3));
        }
        stop();
        return seen.join();"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("true,true").await;
}

/// Node warns about them only with `--pending-deprecation`.
#[tokio::test]
async fn environment_variables_are_converted_silently() {
    let (_home, mut rpc) = with_command(
        r#"process.env.NOTHING = undefined;
        process.env.OBJECT = {};
        await new Promise((resolve) => setTimeout(resolve, 20));
        return [process.env.NOTHING, process.env.OBJECT].join();"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("undefined,[object Object]").await;
    let output = rpc.stderr();
    assert!(!output.contains("DEP0104"), "{output}");
}

#[tokio::test]
async fn a_terminated_worker_emits_exit_afterwards() {
    let (_home, mut rpc) = with_command(
        r#"const { Worker } = await import("node:worker_threads");
        const worker = new Worker("setInterval(() => {}, 1000)", { eval: true });
        await new Promise((resolve) => worker.once("online", resolve));
        const told = [];
        const over = new Promise((resolve) => worker.once("exit", (code) => { told.push(`exit ${code}`); resolve(); }));
        const ended = worker.terminate().then((code) => told.push(`ended ${code}`));
        told.push("told to");
        queueMicrotask(() => told.push("microtask"));
        setImmediate(() => told.push("immediate"));
        await Promise.all([over, ended]);
        return told.join();"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("told to,microtask,immediate,exit 1,ended 1")
        .await;
}

/// jsdom and `@google/genai` pass such dispatchers; pi's `fetch` refused them.
#[tokio::test]
async fn a_dispatcher_without_effect_is_ignored() {
    let (_home, mut rpc) = with_command(
        r#"const { createServer } = await import("node:http");
        const server = createServer((_, response) => response.end("hi"));
        await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
        const url = `http://127.0.0.1:${server.address().port}/`;
        // If it were used, requests would never be answered.
        class Agent {
            constructor(options = {}) { this[Symbol("options")] = options; }
            dispatch() {}
        }
        class Dispatcher1Wrapper { dispatch() {} }
        const [one, two] = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));
        const ask = (init) => fetch(url, init).then((response) => response.text());
        globalThis[one] = new Dispatcher1Wrapper();
        globalThis[two] = new Agent();
        const told = [await ask(), await ask({ dispatcher: { dispatch() {} } }), await ask({ dispatcher: globalThis[one] })];
        const limits = { connect: { timeout: 1, rejectUnauthorized: true }, headersTimeout: 0 };
        told.push(await ask({ dispatcher: new Agent(limits) }));
        delete globalThis[one];
        delete globalThis[two];
        server.close();
        return told.join("|");"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("hi|hi|hi|hi").await;
}

/// The agent has the interface of undici 7. Requests bypassed its interceptors, and servers with
/// the extension's own certificates were contacted without them.
#[tokio::test]
async fn a_custom_agent_dispatches_the_requests_itself() {
    let (_home, mut rpc) = with_command(
        r#"class Dispatcher {
            dispatch({ path }, handler) {
                handler.onRequestStart({ resume() {} }, {});
                handler.onResponseStart({ resume() {} }, 200, {}, "OK");
                handler.onResponseData({ pause() {} }, Buffer.from(`sent ${path}`));
                handler.onResponseEnd({}, {});
            }
        }
        class Agent extends Dispatcher {
            constructor(options) { super(); this[Symbol("options")] = options; }
        }
        const composed = new Proxy(new Agent({}), { get: (it, key) => key === "dispatch" ? it[key].bind(it) : it[key] });
        const told = [];
        const [two] = [2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));
        for (const dispatcher of [
            new Agent({ connect: { rejectUnauthorized: false } }),
            new Agent({ connect: { timeout: 1, socketPath: "/run/socket" } }),
            new Agent({ connect() {} }),
            composed,
        ]) told.push(await (await fetch(`http://127.0.0.1:9999/${told.length}`, { dispatcher })).text());
        class ProxyAgent extends Dispatcher {}
        globalThis[two] = new ProxyAgent();
        told.push(await (await fetch("http://127.0.0.1:9999/last", { dispatcher: { dispatch() {} } })).text());
        delete globalThis[two];
        return told.join();"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("sent /0,sent /1,sent /2,sent /3,sent /last")
        .await;
}

/// Closing the watch of a folder closed the watches of all folders below it.
#[tokio::test]
async fn a_watch_outlives_the_watch_of_the_parent_folder() {
    let (_home, mut rpc) = with_command(
        r#"const { mkdirSync, symlinkSync, watch, writeFileSync } = await import("node:fs");
        mkdirSync("tree/below/deep", { recursive: true });
        symlinkSync("tree/below", "link");
        const above = watch("tree", { recursive: true });
        const [below, flat] = [true, false].map((recursive) => watch("tree/below", { recursive }));
        const linked = watch("link", { recursive: true });
        const heard = (watcher) => new Promise((resolve) => watcher.once("change", (_kind, name) => resolve(name)));
        above.close();
        const names = Promise.all([heard(below), heard(linked), heard(flat)]);
        writeFileSync("tree/below/deep/a.txt", "a");
        writeFileSync("tree/below/b.txt", "b");
        const told = (await names).join();
        for (const watcher of [below, flat, linked]) watcher.close();
        return told;"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("deep/a.txt,deep/a.txt,b.txt").await;
}

/// Extensions with a memory compare vectors with these functions.
#[tokio::test]
async fn sqlite_has_the_functions_of_nodes_build() {
    let (_home, mut rpc) = with_command(
        r#"const { DatabaseSync } = await import("node:sqlite");
        const database = new DatabaseSync(":memory:");
        const { root, middle } = database.prepare(
            "SELECT sqrt(pow(3, 2) + 16) AS root, median(value) AS middle FROM json_each('[1, 2, 9]')",
        ).get();
        return [root, middle].join();"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("5,2").await;
}

/// undici's `fetch` and tinypool rely on both.
#[tokio::test]
async fn web_streams_expose_their_state_and_ports_can_be_read() {
    let (_home, mut rpc) = with_command(
        r#"const { isReadable, isErrored, isWritable, isDisturbed } = await import("node:stream");
        const { MessageChannel, receiveMessageOnPort } = await import("node:worker_threads");
        const readable = new ReadableStream({ start: (controller) => controller.enqueue(1) });
        const errored = new ReadableStream({ start: (controller) => controller.error(new Error("no")) });
        const seen = [isReadable(readable), isErrored(readable), isDisturbed(readable)];
        await readable.getReader().read();
        seen.push(isDisturbed(readable), isReadable(errored), isErrored(errored), isWritable(new WritableStream()));
        const { port1, port2 } = new MessageChannel();
        port1.postMessage(7);
        port2.start();
        seen.push(receiveMessageOnPort(port2)?.message);
        port1.postMessage(8);
        seen.push(await new Promise((resolve) => port2.on("message", resolve)));
        port1.close();
        return seen.join();"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("true,false,false,true,false,true,true,7,8")
        .await;
}

/// ts-morph exports `Symbol`; the wrapper around CommonJS used the global `Symbol`.
#[tokio::test]
async fn a_commonjs_module_may_export_any_name() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file(
        "node_modules/names/index.js",
        "class Symbol {}; exports.Symbol = Symbol; exports.globalThis = 1; exports.__pi_Module = 2;",
    );
    home.file(
        "node_modules/names/package.json",
        r#"{"name": "names", "main": "index.js"}"#,
    );
    let extension = home.file(
        "ext.ts",
        r#"import { Symbol as Own, globalThis as one, __pi_Module as two } from "names";
        import { createRequire } from "node:module";
        const { Type } = createRequire(import.meta.url)("typebox");
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) =>
            ctx.ui.notify([new Own().constructor.name, one, two, Type.String().type].join()) });"#,
    );
    let mut rpc = home.rpc(&["-e", extension.to_str().unwrap()]);
    rpc.ok(prompt("/go")).await;
    rpc.notified("Symbol,1,2,string").await;
}

/// A package that imports a name of a newer Node did not load at all.
#[tokio::test]
async fn names_of_newer_node_versions_can_be_imported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file(
        "node_modules/newer/package.json",
        r#"{"name": "newer", "type": "module", "exports": "./index.js"}"#,
    );
    home.file(
        "node_modules/newer/index.js",
        include_str!("fixtures/corrections.js"),
    );
    let extension = home.file(
        "ext.ts",
        r#"import names from "newer";
        export default (pi) => pi.registerCommand("go", { handler: async (_args, ctx) => ctx.ui.notify(names) });"#,
    );
    let mut rpc = home.rpc(&["-e", extension.to_str().unwrap()]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(
        "undefined,true,true,true,true,undefined,true,object,node,string,true,undefined,function,\
         function,object",
    )
    .await;
}

/// Descriptors of the program are refused (`attacks/others-descriptors.ts`).
#[tokio::test]
async fn an_extension_may_use_its_own_descriptors_as_in_node() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "lib/descriptors.mjs",
        include_str!("fixtures/descriptors.mjs"),
    );
    home.extension(
        "ext.ts",
        r#"import { answers } from "./lib/descriptors.mjs";
        export default (pi) => pi.registerCommand("go", {
            handler: async (args, ctx) => ctx.ui.notify(await answers()) });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(answers_of_node("descriptors.mjs").trim_end())
        .await;
}

/// Code that talks to a server over a child process or a socket lost the context of its request.
#[tokio::test]
async fn events_of_children_and_sockets_keep_their_async_context() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("lib/contexts.mjs", include_str!("fixtures/contexts.mjs"));
    home.extension(
        "ext.ts",
        r#"import { answers } from "./lib/contexts.mjs";
        export default (pi) => pi.registerCommand("go", {
            handler: async (args, ctx) => ctx.ui.notify(await answers()) });"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    rpc.notified(answers_of_node("contexts.mjs").trim_end())
        .await;
}

/// No test ran, and the script exited with zero; in an extension such tests passed.
#[tokio::test]
async fn node_tests_run_in_scripts_only() {
    let (_home, mut rpc) = with_command(
        r#"const { spawnSync } = await import("node:child_process");
        const { writeFileSync } = await import("node:fs");
        const { describe, it, test } = await import("node:test");
        const script = (second) => `import test, { describe, it } from "node:test";
            import assert from "node:assert";
            test("well", () => { console.log("ran well"); });
            describe("group", () => { it("inner", async () => { console.log("ran inner"); }); });
            test("second", () => { console.log("ran second"); assert.equal(1, ${second}); });`;
        const run = (name, second) => {
            writeFileSync(name, script(second));
            const { status, stdout } = spawnSync(process.execPath, [name], { encoding: "utf8" });
            const lines = stdout.split("\n").map((line) => line.trim());
            return [status, lines[0], ...lines.filter((line) => /^(ran|ok|not ok|# fail) /.test(line))];
        };
        const refused = [describe, it, test].map((call) => {
            try {
                call("never", () => { throw new Error("it ran"); });
            } catch ({ message }) {
                return message.split(": ")[0];
            }
        });
        return JSON.stringify([run("well.test.mjs", 1), run("bad.test.mjs", 2), refused]);"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    let output = |status: u8, outcome: &str, failed: &str| {
        let last = format!("{outcome} 3 - second");
        json!([
            status,
            "TAP version 13",
            "ran well",
            "ok 1 - well",
            "ran inner",
            "ok 1 - inner",
            "ok 2 - group",
            "ran second",
            last,
            failed
        ])
    };
    let refused = vec!["node:test does not run tests in an extension"; 3];
    let expected = json!([
        output(0, "ok", "# fail 0"),
        output(1, "not ok", "# fail 1"),
        refused
    ]);
    let notified = rpc.ui("notify").await;
    assert_eq!(notified["message"], expected.to_string());
}

/// tr46, which jsdom and node-fetch use, requires it.
#[tokio::test]
async fn requiring_punycode_emits_no_warning() {
    let server = ModelServer::start().await;
    for (folder, warns) in [("node_modules/tr", false), ("tr", true)] {
        let home = Home::new(&server);
        let source = "exports.ascii = require('punycode').toASCII('\u{e4}.de');";
        home.extension(&format!("ext/{folder}/index.js"), source);
        home.extension(
            "ext/index.ts",
            &format!(
                r#"import {{ ascii }} from "./{folder}/index.js";
                export default (pi) => pi.registerCommand("go", {{
                    handler: async (_args, ctx) => ctx.ui.notify(ascii),
                }});"#
            ),
        );
        let mut rpc = home.rpc(&[]);
        rpc.ok(prompt("/go")).await;
        rpc.notified("xn--4ca.de").await;
        rpc.close_stdin();
        rpc.end().await;
        let stderr = rpc.stderr();
        assert_eq!(stderr.contains("DEP0040"), warns, "{stderr}");
    }
}
