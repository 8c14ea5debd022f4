//! Subclasses of exported classes with members of everyday names: private members of the classes do
//! not collide with them.

use serde_json::{Value, json};

use crate::support::with_extension;

const EXTENSION: &str = include_str!("fixtures/subclasses.ts");

#[tokio::test]
async fn subclasses_may_use_everyday_names() {
    let (_server, _home, mut rpc) = with_extension(EXTENSION).await;
    rpc.ok(json!({"type": "prompt", "message": "/subclasses"}))
        .await;
    let reported = rpc.ui("notify").await;
    let results: Value = serde_json::from_str(reported["message"].as_str().unwrap()).unwrap();
    assert_eq!(
        results,
        json!({
            "named": {
                "text": [["a    ", "b    "], 2],
                "markdown": [["a"], ["mine"]],
                "loader": ["done", 0],
                "list": ["b", 0, 3, 2],
                "input": ["abc", ["> abc"], true, "mine"],
                "settings": ["2", "mine", "found x", true],
                "tool": ["mine", true],
                "agent": ["ran", 2, [], {"mine": true}],
                "client": [
                    ["hi"], "Client not started", {"mine": "Client not started"}, "patched", true,
                ],
            },
            "moved": [],
            "others": [],
            "managers": [[], ["message", "patched"], 1, true, "mine"],
            "wrapped": [["b"], "b", ["x"], "x", "y", 2],
        })
    );
}
