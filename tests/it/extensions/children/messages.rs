//! The messages of a child session are a list that its owner can change.

use model_server::{Answer, ModelServer, Received};
use serde_json::json;

use crate::support::{Home, command_result, text_of};

/// Side agents change the returned list itself.
const LIVE: &str = include_str!("fixtures/messages.ts");

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
        let reported: Vec<_> = server.requests().iter().map(texts).collect();
        let expected = [
            vec!["I am Bob.", "one"],
            vec!["I am Eve.", "Fine.", "two"],
            vec!["three"],
        ];
        assert_eq!(reported[..3], expected, "{original}");
    }
}

fn texts(request: &Received) -> Vec<String> {
    let messages = request.body["messages"].as_array().unwrap();
    messages.iter().map(text_of).collect()
}
