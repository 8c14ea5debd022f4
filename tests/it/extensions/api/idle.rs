//! `ctx.isIdle()` and `ctx.waitForIdle()` count a message that an extension has just sent.

use model_server::Answer;
use serde_json::json;

use crate::support::{prompt, with_extension};

/// A published extension polls every 10 ms until the turn has begun; a run may be over by then.
#[tokio::test]
async fn a_sent_prompt_counts_as_work_immediately() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/idle/a-sent-prompt-counts-as-work-immediately.ts"
    ))
    .await;
    server.repeat(Answer::text("Done."));
    rpc.ok(prompt("/loop")).await;
    rpc.notified("false 1 true; false 2 true; false 3 true; false 4 true; false 5 true")
        .await;
    assert_eq!(server.requests().len(), 5);
}

/// A prompt of the command waited for the command itself to end.
#[tokio::test]
async fn a_sent_slash_command_can_prompt_and_wait() {
    let (server, _home, mut rpc) = with_extension(include_str!(
        "fixtures/idle/a-sent-slash-command-can-prompt-and-wait.ts"
    ))
    .await;
    server.push(Answer::text("Hello."));
    rpc.ok(prompt("/outer")).await;
    rpc.notified("answered: true").await;
}

/// A prompt without effect leaves the session idle.
#[tokio::test]
async fn a_handled_or_refused_prompt_is_no_work() {
    let (server, home, rpc) = with_extension(
        r#"export default (pi) => {
          pi.on("input", (event) => event.text === "handled" ? { action: "handled" } : undefined);
          pi.registerCommand("say", { handler: async (text, ctx) => {
            pi.sendUserMessage(text);
            await ctx.waitForIdle();
            ctx.ui.notify(`${text}: ${ctx.isIdle()}`);
          }});
        };"#,
    )
    .await;
    rpc.close().await;
    let models = json!({"providers": {}});
    std::fs::write(home.agent_dir().join("models.json"), models.to_string()).unwrap();
    let mut rpc = home.rpc(&[]);
    for text in ["handled", "refused"] {
        rpc.ok(prompt(&format!("/say {text}"))).await;
        rpc.notified(&format!("{text}: true")).await;
    }
    assert!(server.requests().is_empty());
}
