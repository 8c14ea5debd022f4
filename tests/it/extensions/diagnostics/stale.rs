//! API objects of a replaced extension report that they are stale wherever a call would have no
//! effect.

use model_server::Answer;
use serde_json::json;

use crate::support::{prompt, text_of, with_extension};

#[tokio::test]
async fn stale_calls_throw_and_aborted_calls_have_a_result() {
    let (server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            const parameters = { type: "object", properties: {} };
            pi.registerTool({ name: "slow", label: "slow", description: "slow", parameters,
                execute: (_id, _params, signal, onUpdate) => new Promise((_, reject) => {
                    signal.addEventListener("abort", () => reject(new Error("it saw the abort")));
                    onUpdate({ content: [{ type: "text", text: "on its way" }] });
                }) });
            pi.on("tool_result", async (event, ctx) => {
                await new Promise((resolve) => setTimeout(resolve, 20));
                return { content: [...event.content, { type: "text", text: ", noted" }] };
            });
            pi.registerCommand("replace", { handler: async (_, ctx) => {
                await ctx.newSession();
                ctx.ui.notify("never seen");
            } });
        }"#,
    )
    .await;
    server.push(Answer::tool("slow", json!({})));
    rpc.ok(prompt("go")).await;
    rpc.event("tool_execution_update").await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.event("tool_execution_end").await;
    assert_eq!(text_of(&end["result"]), "it saw the abort, noted");
    rpc.event("agent_end").await;

    rpc.send(&prompt("/replace").to_string()).await;
    let error = rpc.event("extension_error").await;
    let text = error["error"].as_str().unwrap();
    assert!(text.contains("This extension instance is stale"), "{error}");
    rpc.close().await;
}

/// Registrations and events of a replaced extension were lost without an error.
#[tokio::test]
async fn registrations_of_a_replaced_extension_are_stale() {
    let (_server, _home, mut rpc) = with_extension(
        r#"export default (pi) => {
            const off = pi.on("input", () => {});
            const provider = { baseUrl: "http://localhost", apiKey: "k", api: "openai-completions", models: [] };
            pi.registerCommand("replace", { handler: async (how, ctx) => {
                const told = [];
                const tries = {
                    tool: () => pi.registerTool({ name: "late", label: "l", description: "d",
                        parameters: { type: "object", properties: {} }, execute() {} }),
                    command: () => pi.registerCommand("late", { handler() {} }),
                    flag: () => pi.registerFlag("late", { type: "boolean" }),
                    shortcut: () => pi.registerShortcut("ctrl+l", { handler() {} }),
                    renderer: () => pi.registerMessageRenderer("late", () => {}),
                    provider: () => pi.registerProvider("late", provider),
                    unregister: () => pi.unregisterProvider("late"),
                    on: () => pi.on("input", () => {}),
                    getFlag: () => pi.getFlag("late"),
                    emit: () => pi.events.emit("late", 1),
                    listen: () => pi.events.on("late", () => {}),
                    signal: () => ctx.signal,
                    compact: () => ctx.compact(),
                };
                await (how === "reload" ? ctx.reload() : ctx.newSession());
                for (const name in tries) {
                    try { tries[name](); } catch (error) {
                        if (error.message.includes("is stale")) continue;
                        told.push(name + " failed: " + error.message);
                        continue;
                    }
                    told.push(name);
                }
                off();
                throw new Error(`${how} silent: ${told.join()}.`);
            } });
        }"#,
    )
    .await;
    for how in ["new", "reload"] {
        rpc.send(&prompt(&format!("/replace {how}")).to_string())
            .await;
        let error = rpc.event("extension_error").await;
        let text = error["error"].as_str().unwrap();
        assert_eq!(text, format!("{how} silent: ."), "{error}");
    }
    rpc.close().await;
}
