//! What is corrected in Deno's Node layer (`js-runtime/snapshot/corrections.rs`).

use std::path::Path;
use std::process::Command;

use model_server::ModelServer;
use serde_json::json;

use crate::support::{Home, Rpc, prompt, with_extension};

const SOURCE: &str = r#"
    import { fork } from "node:child_process";
    import { watch, writeFileSync } from "node:fs";
    import { resolve } from "node:path";
    import { Worker } from "node:worker_threads";

    const missing = () => {
        try {
            watch("/nowhere/at/all");
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

    // Not past it.
    class ProxyAgent {}
    const proxied = () =>
        fetch("http://127.0.0.1:9/", { dispatcher: new ProxyAgent() }).catch(({ message }) => message);

    export default (pi) => pi.registerCommand("go", { handler: async (args, ctx) => {
        const answers = [missing(), await printed(), await told(), await proxied()];
        ctx.ui.notify(JSON.stringify(answers));
    }});
"#;

#[tokio::test]
async fn it_does_what_node_does() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ext.ts", SOURCE);
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/go")).await;
    let path = "/nowhere/at/all";
    let expected = json!([
        ["ENOENT", "watch", path, path],
        { "stdout": "out\n", "stderr": "err\n" },
        ["one", "two", "last", "exit"],
        "The global fetch of pi cannot use the ProxyAgent of undici: call the fetch that undici \
            exports, or set HTTP_PROXY",
    ]);
    rpc.notified(&expected.to_string()).await;
}

/// Node is asked the same; what it answers is right.
#[tokio::test]
async fn files_children_and_connections_are_those_of_node() {
    let questions = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/node_layer/questions.mjs");
    let ask = |program: &str| {
        let folder = tempfile::tempdir().unwrap();
        let asked = Command::new(program)
            .arg(&questions)
            .current_dir(folder.path())
            .env("PI_CODING_AGENT", "true")
            .env("PI_CODING_AGENT_DIR", folder.path().join("agent"))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&asked.stderr);
        assert!(asked.status.success(), "{program}: {told}");
        String::from_utf8(asked.stdout).unwrap()
    };
    assert_eq!(ask(env!("CARGO_BIN_EXE_pi")), ask("node"));
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

/// Packages follow what a script awaits (`nicobailon/pi-subagents`).
#[tokio::test]
async fn promise_hooks_hear_of_contexts_of_vm() {
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
          // What this function awaits itself is one init, and settled.
          seen.push(counts.every((number, index) => number - at[index] >= 3));
        }
        stop();
        return seen.join();"#,
    )
    .await;
    rpc.ok(prompt("/go")).await;
    rpc.notified("true,true").await;
}

#[tokio::test]
async fn a_worker_that_is_ended_says_so_afterwards() {
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
