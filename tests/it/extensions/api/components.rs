//! Components inside pi without a terminal, which the comparison with the original
//! (`component_parity.rs`) does not cover.

use serde_json::{Value, json};

use crate::support::with_extension;

const EXTENSION: &str = include_str!("fixtures/components.ts");

#[tokio::test]
async fn components_work_without_a_terminal() {
    let (_server, _home, mut rpc) = with_extension(EXTENSION).await;
    rpc.ok(json!({"type": "prompt", "message": "/draw"})).await;
    let reported = rpc.ui("notify").await;
    let results: Value = serde_json::from_str(reported["message"].as_str().unwrap()).unwrap();
    assert_eq!(
        results,
        json!({
            "an edit is shown before it is made": [
                ["edit a.txt", "1 one", "-2 two", "+2 three"],
                ["edit a.txt", "Could not find the exact text in a.txt. The old text must", "match exactly including all whitespace and newlines."],
            ],
            "definitions of the tools draw": [["ls /x", "output"], ["read /x", "output"]],
            "an editor of its own keeps its names": [
                "HEY", "mine", 7, true,
                ["\u{2500}".repeat(10), "HEY", "\u{2500}".repeat(10)],
            ],
            "a terminal of its own is drawn on": [true, true, false],
            "the terminal is pi's":
                "ProcessTerminal cannot be used in an extension: standard input and output belong \
                 to pi. Show components with ctx.ui.custom(), or give TUI a terminal object of \
                 your own.",
            "nothing is too much": [true, true, true, true, true, true, true, true],
            "odd things are no reason to end": [[], [], true],
            "messages have room on both sides": [
                [["   hi", "   Error: no"], ["  hi"], [" hi"]],
                [["hi", "Error: no"], ["hi"]],
                [4, 0],
            ],
        })
    );
}
