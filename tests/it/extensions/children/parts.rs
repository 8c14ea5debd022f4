//! Parts of a child session: its loader, tools that can be run, shell commands by operations of the
//! extension. The original gets the same questions.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, command_result};

const COMMANDS: &str = include_str!("fixtures/parts/commands.ts");

/// The commands ran on this machine despite the given operations.
#[tokio::test]
async fn commands_of_a_child_use_the_given_operations() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("commands.ts", COMMANDS);
    let expected = json!({
        "far": ["touch local in true\n", 3, false],
        "chunks": ["touch local in true\n"],
        "quiet": ["again in true\n", 3],
        "aborted": true,
        "broken": "no line",
        "near": ["a\nb\n", 0],
        "pieces": ["a\n", "b\n"],
        "apart": true,
        "none": [],
        "recorded": [["touch local", "touch local in true\n"], ["again", "again in true\n"]],
        "running": false,
    });
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        assert_eq!(
            command_result(&mut rpc, "commands").await,
            expected,
            "{who}"
        );
        assert!(!home.cwd().join("local").exists());
    }
}

const FURNISHED: &str = include_str!("fixtures/parts/furnished.ts");

/// The loader was missing, tools could not be run, and options of the loader had no effect.
#[tokio::test]
async fn a_child_has_a_loader_and_runnable_tools() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("furnished.ts", FURNISHED);
    // The loader gets other skills than those of the settings file.
    home.settings(json!({ "skills": [home.cwd().join("far")] }));
    let expected = json!({
        "found": [["at-home"], ["greet"], ["greet", "later"]],
        "own": "mine",
        "expanded": "Later",
        "templates": ["greet"],
        "skills": ["at-home"],
        "labels": ["Own", "bash", "edit", "read", "write"],
        "read": "inside",
        "mine": "here",
        "back": "three",
        "preflight": [true],
        "bash": "function",
        "none": true,
        "answer": "Hello.",
    });
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        server.push(Answer::text("Hello."));
        server.push(Answer::text("Bye."));
        assert_eq!(
            command_result(&mut rpc, "furnished").await,
            expected,
            "{who}"
        );
    }
}

/// Newer versions report at the end of a run whether it will be retried.
const ENDS: &str = include_str!("fixtures/parts/ends.ts");

#[tokio::test]
async fn agent_end_reports_whether_the_run_is_retried() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("ends.ts", ENDS);
    let busy = || Answer::error(529, "Overloaded").with_header("x-should-retry", "false");
    server.push(busy());
    server.push(Answer::text("Fine."));
    // Three retries, then the prompt without retries.
    for _ in 0..5 {
        server.push(busy());
    }
    let mut rpc = home.rpc(&[]);
    let expected = [true, false, true, true, true, false, false];
    let expected = expected.map(|again| json!([again, "assistant"]));
    assert_eq!(command_result(&mut rpc, "ends").await, json!(expected));
}
