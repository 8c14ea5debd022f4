//! The whole session tree: forks, clones, sessions that extensions make and open.

use std::fs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, prompt, text_of};

async fn said(rpc: &mut Rpc) -> Vec<String> {
    let data = rpc.ok(json!({"type": "get_messages"})).await;
    let messages = data["messages"].as_array().unwrap();
    messages.iter().map(text_of).collect()
}

/// Tells what happens to sessions.
const WATCH: &str = r#"
const names = ["session_start", "session_shutdown", "session_before_switch", "session_before_fork"];
export default function (pi) {
  for (const name of names) {
    pi.on(name, (event, ctx) => {
      const { type, ...rest } = event;
      for (const [key, value] of Object.entries(rest)) {
        if (key.endsWith("File")) rest[key] = value.split("/").at(-1);
      }
      ctx.ui.notify(`${type} ${JSON.stringify(rest)}`);
    });
  }
}
"#;

async fn told(rpc: &mut Rpc, event: &str) -> Value {
    let start = format!("{event} ");
    let line = rpc
        .wait(event, |line| {
            let text = line["message"].as_str().unwrap_or_default();
            line["method"] == "notify" && text.starts_with(&start)
        })
        .await;
    let text = line["message"].as_str().unwrap();
    serde_json::from_str(&text[start.len()..]).unwrap()
}

#[tokio::test]
async fn setup_writes_to_the_session_that_a_command_makes() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("watch.js", WATCH);
    home.extension(
        "begin.js",
        r#"
        import { SessionManager } from "@mariozechner/pi-coding-agent";
        export default function (pi) {
          pi.registerCommand("begin", {
            handler: async (_args, ctx) => {
              const parent = ctx.sessionManager.getSessionFile();
              const result = await ctx.newSession({
                parentSession: parent,
                setup: async (sm) => {
                  await new Promise((resolve) => setTimeout(resolve, 1));
                  const own = sm instanceof SessionManager;
                  const id = sm.appendMessage({
                    role: "user", content: [{ type: "text", text: `from before ${own}` }],
                    timestamp: 7, extra: [1.5],
                  });
                  sm.appendLabelChange(id, "begun");
                  sm.appendCustomEntry("note", { id });
                },
                withSession: async (ctx) => {
                  const { sessionManager: sm } = ctx;
                  const texts = sm.getBranch().map((entry) => entry.type).join();
                  ctx.ui.notify(`in ${texts} ${sm.getHeader().parentSession === parent}`);
                  await ctx.sendUserMessage("go on");
                },
              });
              console.log(`done ${JSON.stringify(result)}`);
            },
          });
        }"#,
    );
    server.push(Answer::text("First."));
    server.push(Answer::text("Second."));
    let mut rpc = home.rpc(&[]);
    assert_eq!(
        told(&mut rpc, "session_start").await,
        json!({"reason": "startup"})
    );
    rpc.run("one").await;
    let old = home.session();
    let old = old.file_name().unwrap().to_str().unwrap();
    rpc.ok(prompt("/begin")).await;
    assert_eq!(
        told(&mut rpc, "session_before_switch").await,
        json!({"reason": "new"})
    );
    let left = told(&mut rpc, "session_shutdown").await;
    assert_eq!(left["reason"], "new");
    assert_eq!(
        told(&mut rpc, "session_start").await,
        json!({"reason": "new", "previousSessionFile": old})
    );
    rpc.notified("in model_change,thinking_level_change,message,label,custom true")
        .await;
    rpc.event("agent_end").await;
    assert_eq!(
        said(&mut rpc).await,
        ["from before true", "go on", "Second."]
    );
    assert!(
        rpc.stderr().contains(r#"done {"cancelled":false}"#),
        "{}",
        rpc.stderr()
    );
    let now = rpc.ok(json!({"type": "get_state"})).await;
    let file = now["sessionFile"].as_str().unwrap();
    assert_eq!(left["targetSessionFile"], file.rsplit('/').next().unwrap());
    let text = fs::read_to_string(file).unwrap();
    let message = r#""message":{"role":"user","content":[{"type":"text","text":"from before true"}],"timestamp":7,"extra":[1.5]}}"#;
    assert!(text.contains(message), "{text}");
    assert!(rpc.close().await.success());
}
