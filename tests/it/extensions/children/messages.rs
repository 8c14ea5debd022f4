//! The messages of a child session are a list that its owner can change.

use model_server::{Answer, ModelServer, Received};
use serde_json::json;

use crate::support::{Home, command_result, text_of};

/// Side agents change the returned list itself.
const LIVE: &str = r#"
import { createAgentSession, SessionManager } from "@mariozechner/pi-coding-agent";

export default (pi) => pi.registerCommand("live", { handler: async (_args, ctx) => {
  const { session } = await createAgentSession({ model: ctx.model, sessionManager: SessionManager.inMemory(), tools: [] });
  const mine = { role: "user", content: "mine", timestamp: 2 };
  session.agent.state.messages.push(mine);
  const kept = [session.messages.includes(mine)];
  session.agent.state.messages = session.agent.state.messages.filter((message) => message !== mine);
  kept.push(session.messages.length);
  const { messages } = session.agent.state;
  const lengths = [messages.push({ role: "user", content: "I am Bob.", timestamp: 1 })];
  await session.prompt("one");
  lengths.push(messages.length);
  messages.splice(1, 1);
  messages[0].content = "I am Eve.";
  const run = session.prompt("two");
  await run;
  lengths.push(messages.length);
  messages.length = 0;
  await session.prompt("three");
  const same = [session.agent.state.messages, session.messages].map((list) => list === messages);
  const inRun = [];
  const { state } = session.agent;
  const during = async (change, type) => {
    const identical = [];
    const off = session.subscribe((event) => {
      if (event.message?.role !== "assistant") return;
      if (event.type === type) change();
      if (event.type === "message_end") identical.push(state.messages.at(-1) === event.message);
    });
    await session.prompt("in a run");
    off();
    inRun.push([...identical, ...state.messages.map(({ role, content }) => role === "user" ? content[0].text ?? content : role)]);
  };
  const noted = { role: "user", content: "noted", timestamp: 3 };
  state.messages = [];
  await during(() => state.messages.push(noted), "message_start");
  await during(() => (state.messages.length = 0), "message_start");
  await during(() => (state.messages = [noted]), "message_start");
  ctx.ui.notify(JSON.stringify({
    lengths, kept, inRun, same,
    roles: session.messages.map(({ role }) => role),
  }));
  session.dispose();
} });
"#;

#[tokio::test]
async fn changes_of_the_message_list_reach_the_model() {
    for original in [true, false] {
        let server = ModelServer::start().await;
        server.repeat(Answer::text("Fine."));
        let home = Home::new(&server);
        home.extension("live.ts", LIVE);
        let mut rpc = match original {
            true => home.original_rpc(&[]),
            false => home.rpc(&[]),
        };
        let expected = json!({
            "lengths": [1, 3, 4],
            "kept": [true, 0],
            "same": [true, true],
            "roles": ["user", "assistant"],
            "inRun": [
                [true, "in a run", "noted", "assistant"],
                [true, "assistant"],
                [true, "noted", "assistant"],
            ],
        });
        assert_eq!(
            command_result(&mut rpc, "live").await,
            expected,
            "{original}"
        );
        let told: Vec<_> = server.requests().iter().map(texts).collect();
        let expected = [
            vec!["I am Bob.", "one"],
            vec!["I am Eve.", "Fine.", "two"],
            vec!["three"],
        ];
        assert_eq!(told[..3], expected, "{original}");
    }
}

fn texts(request: &Received) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    messages.iter().map(text_of).collect()
}
