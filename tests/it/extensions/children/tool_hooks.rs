//! `beforeToolCall` and `afterToolCall` on the agent of a child session: sub-agents control with
//! them which tools run and what the agent is told.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, command_result};

const HOOKED: &str = r#"
import { createAgentSession, SessionManager } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

export default (pi) => pi.registerCommand("hooked", { handler: async (_args, ctx) => {
  const ran = [];
  const tool = (name) => ({
    name, label: name, description: "Says it.", parameters: Type.Object({ text: Type.String() }),
    execute: async (_id, { text }) => {
      ran.push(`${name} ${text}`);
      return { content: [{ type: "text", text: `${name}: ${text}` }], details: { kept: true } };
    },
  });
  const customTools = [tool("open"), tool("closed"), tool("broken"), tool("late")];
  const { session } = await createAgentSession({
    model: ctx.model, sessionManager: SessionManager.inMemory(), customTools, tools: customTools.map(({ name }) => name),
  });
  const { agent } = session;
  const asked = [];
  const { beforeToolCall, afterToolCall } = agent;
  agent.beforeToolCall = async ({ toolCall, args, assistantMessage, context }, signal) => {
    asked.push([
      toolCall.name, assistantMessage.content.includes(toolCall), context.messages.length > 0, signal?.aborted,
    ]);
    if (toolCall.name === "closed") return { block: true, reason: "It is closed." };
    if (toolCall.name === "broken") throw new Error("no idea");
    args.text += "!";
    return beforeToolCall({ toolCall, args, assistantMessage, context }, signal);
  };
  agent.afterToolCall = async ({ toolCall, args, result, isError }) => {
    asked.push([toolCall.name, args.text, result.content[0].text, isError]);
    if (toolCall.name === "late") throw new Error("too late");
    return { content: [{ type: "text", text: "nothing" }], isError: true };
  };
  await session.prompt("one");
  agent.beforeToolCall = undefined;
  agent.afterToolCall = undefined;
  await session.prompt("two");
  agent.afterToolCall = ({ result }) => {
    result.content[0].text = "in its place";
    result.details.more = 1;
    return 1;
  };
  await session.prompt("three");
  const results = session.messages.filter(({ role }) => role === "toolResult");
  ctx.ui.notify(JSON.stringify({
    ran, asked, own: typeof afterToolCall, results: results.map(({ content, details, isError }) => [content[0].text, details, isError]),
  }));
  session.dispose();
} });
"#;

#[tokio::test]
async fn hooks_run_before_and_after_the_tools_of_a_child() {
    for original in [true, false] {
        let server = ModelServer::start().await;
        let home = Home::new(&server);
        home.extension("hooked.ts", HOOKED);
        let say = |name: &str| Answer::tool(name, json!({"text": "it"}));
        for name in ["open", "closed", "broken", "late"] {
            server.push(say(name));
        }
        server.push(Answer::text("Fine."));
        for _ in 0..2 {
            server.push(say("closed"));
            server.push(Answer::text("Fine."));
        }
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        let before = |name: &str| json!([name, true, true, false]);
        let none = Value::Object(Default::default());
        let expected = json!({
            "ran": ["open it!", "late it!", "closed it", "closed it"],
            "own": "function",
            "asked": [
                before("open"), ["open", "it!", "open: it!", false],
                before("closed"), before("broken"),
                before("late"), ["late", "it!", "late: it!", false],
            ],
            "results": [
                ["nothing", {"kept": true}, true],
                ["It is closed.", none, true],
                ["no idea", none, true],
                ["too late", none, true],
                ["closed: it", {"kept": true}, false],
                ["in its place", {"kept": true, "more": 1}, false],
            ],
        });
        assert_eq!(
            command_result(&mut rpc, "hooked").await,
            expected,
            "{original}"
        );
    }
}
