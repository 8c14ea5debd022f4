//! Settings, skills and tools that an extension passes to a child session.

use model_server::{Answer, ModelServer};
use serde_json::json;

use crate::support::{Home, command_result, prompt};

const SETTINGS: &str = include_str!("fixtures/settings-and-tools/settings.ts");

#[tokio::test]
async fn a_child_has_the_given_settings() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("own.ts", SETTINGS);
    home.settings(json!({"followUpMode": "all", "compaction": {"enabled": true}}));
    let expected = json!({
        "given": ["all", "one-at-a-time", false, false],
        "scoped": [[true, "low"]],
        "bash": [true, false, false],
        "messages": [
            ["bashExecution", "echo ran", "ran\n"],
            ["bashExecution", "elsewhere", "done"],
        ],
        "there": true,
        "header": ["session", 3, true, true],
        "chained": true,
        "exported": 2,
        "retryAttempt": 0,
        "templates": true,
    });
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        assert_eq!(command_result(&mut rpc, "own").await, expected, "{who}");
    }
}

/// The documentation of the original shows a skill that is made up so.
const MADE_UP: &str = include_str!("fixtures/settings-and-tools/made-up.ts");

#[tokio::test]
async fn made_up_skills_and_prompts_count() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file("violets.txt", "Violets are blue");
    home.extension("own.ts", MADE_UP);
    for (who, mut rpc) in [("ours", home.rpc(&[])), ("theirs", home.original_rpc(&[]))] {
        server.push(Answer::text("Planted."));
        let reported = command_result(&mut rpc, "own").await;
        assert_eq!(reported, json!([true, "Planted."]), "{who}");
        let requested = server.last_request().body.to_string();
        assert!(requested.contains("Plant a tree"), "{who}: {requested}");
    }
}

/// Child sessions without `bash`, or without any tools, had the usual ones.
const RESTRICTED: &str = include_str!("fixtures/settings-and-tools/restricted.ts");

#[tokio::test]
async fn a_child_has_only_the_allowed_tools() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("own.ts", RESTRICTED);
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "all": [],
        "builtin": ["mine"],
        "without": ["read", "edit", "write", "mine"],
        "named": ["read", "mine"],
        "wrong": "createAgentSession: noTools must be \"all\" or \"builtin\", not \"some\"",
        "heard": ["fork"],
    });
    rpc.ok(prompt("/own")).await;
    rpc.notified(&expected.to_string()).await;
}

const SOURCES: &str = include_str!("fixtures/settings-and-tools/sources.ts");

/// Newer versions ask for the source of the system prompt and for shared extensions.
#[tokio::test]
async fn a_loader_reports_the_source_of_the_prompt() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file(".pi/SYSTEM.md", "You are theirs.");
    home.file("mine.md", "You are mine.");
    std::fs::write(home.agent_dir().join("APPEND_SYSTEM.md"), "And quick.").unwrap();
    home.extension("own.ts", SOURCES);
    let mut rpc = home.rpc(&[]);
    let expected = json!({
        "found": ["CWD/.pi/SYSTEM.md", "AGENT/APPEND_SYSTEM.md"],
        "named": ["CWD/mine.md", "CWD/mine.md"],
        "texts": [null],
        "runtime": [["AGENT/extensions/own.ts"], ["flag"], "Extension runtime not initialized", "function"],
    });
    assert_eq!(command_result(&mut rpc, "own").await, expected);
}
