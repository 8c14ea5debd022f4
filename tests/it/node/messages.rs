//! Messages of workers and of forked scripts, none of which is lost.

use crate::support::{Home, Rpc, command_result};

/// An extension whose command `/go` notifies the JSON of what `body` returns. Each test starts
/// another pi: what the first use of a module of Node's API loads is part of the scenario.
fn home(body: &str) -> Home {
    let home = Home::bare();
    home.extension(
        "ext/index.ts",
        &format!(
            r#"import {{ fork, spawn }} from "node:child_process";
            import {{ once }} from "node:events";
            import {{ fileURLToPath }} from "node:url";
            import {{ Worker }} from "node:worker_threads";
            const beside = (name) => fileURLToPath(new URL(name, import.meta.url));
            const messagesOf = async (child) => {{
                const messages = [];
                child.on("message", (message) => messages.push(message));
                child.on("error", (error) => messages.push(error.message));
                child.on("disconnect", () => messages.push("disconnect"));
                await once(child, "close");
                return messages;
            }};
            export default (pi) => pi.registerCommand("go", {{ handler: async (args, ctx) => {{
                const answer = await (async () => {{ {body} }})();
                ctx.ui.notify(JSON.stringify(answer));
            }} }});"#
        ),
    );
    home
}

/// `fork` loads modules when it is called first, and messages came before there were listeners.
#[tokio::test]
async fn workers_and_a_fork_of_one_tick_are_all_heard() {
    let home = home(
        r#"const code = `require("node:worker_threads").parentPort.postMessage("worker")`;
        const all = [
            new Worker(code, { eval: true }),
            new Worker(code, { eval: true }),
            fork(beside("./child.cjs")),
        ];
        const messages = await Promise.all(all.map((one) => once(one, "message")));
        return messages.map(([message]) => message);"#,
    );
    home.extension(
        "ext/child.cjs",
        "process.send('child', () => process.disconnect());",
    );
    let mut rpc: Rpc = home.rpc(&[]);
    let heard = command_result(&mut rpc, "go").await;
    assert_eq!(heard, serde_json::json!(["worker", "worker", "child"]));
}

#[tokio::test]
async fn messages_before_a_disconnect_or_an_exit_arrive() {
    let home = home(
        r#"const ways = ["disconnect", "exit", "large"];
        return Promise.all(ways.map((way) => messagesOf(fork(beside("./child.cjs"), [way]))));"#,
    );
    home.extension(
        "ext/child.cjs",
        r#"const [way] = process.argv.slice(2);
        process.send("one");
        process.send(way === "large" ? "x".repeat(3e5) : "two");
        way === "exit" ? process.exit(0) : process.disconnect();"#,
    );
    let mut rpc: Rpc = home.rpc(&[]);
    let heard = command_result(&mut rpc, "go").await;
    let large = "x".repeat(300_000);
    assert_eq!(heard[0], serde_json::json!(["one", "two", "disconnect"]));
    assert_eq!(heard[1], serde_json::json!(["one", "two", "disconnect"]));
    assert_eq!(heard[2], serde_json::json!(["one", large, "disconnect"]));
}

/// The error had no listener, and ended the program.
#[tokio::test]
async fn a_half_message_closes_the_channel() {
    let home = home(
        r#"const child = spawn("sh", ["-c", "printf '{\"half' >&$NODE_CHANNEL_FD"], {
            stdio: ["ignore", "ignore", "inherit", "ipc"],
        });
        return messagesOf(child);"#,
    );
    let mut rpc: Rpc = home.rpc(&[]);
    let heard = command_result(&mut rpc, "go").await;
    assert_eq!(heard, serde_json::json!(["disconnect"]));
}
