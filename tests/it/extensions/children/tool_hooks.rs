//! `beforeToolCall` and `afterToolCall` on the agent of a child session: sub-agents control with
//! them which tools run and what the agent is told.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, command_result};

const HOOKED: &str = include_str!("fixtures/tool-hooks.ts");

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
