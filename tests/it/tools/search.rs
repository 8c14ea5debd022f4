//! `grep`, `find` and `ls`: available on request, and ended by an abort however much there is to
//! search.

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, blocks, prompt};

fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.filter_map(|tool| tool["name"].as_str()).collect()
}

#[tokio::test]
async fn the_command_line_enables_search_tools() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.file("src/main.rs", "fn main() {}\n");
    home.file("README.md", "main\n");
    server.push(Answer::text("Nothing to do."));
    home.run(&["-p", "go"], "").await.ok();
    assert_eq!(
        offered(&server.last_request().body),
        ["read", "bash", "edit", "write"]
    );

    let mut rpc = home.rpc(&["--tools", "ls,grep,find"]);
    server.push(Answer::tools([
        ("ls", json!({})),
        ("grep", json!({"pattern": "main", "glob": "*.rs"})),
        ("find", json!({"pattern": "*.md"})),
    ]));
    server.push(Answer::text("Done."));
    let events = rpc.run("go").await;
    let results = events
        .iter()
        .filter(|event| event["type"] == "tool_execution_end");
    let mut results: Vec<String> = results
        .map(|event| blocks(&event["result"]["content"], "text"))
        .collect();
    results.sort();
    assert_eq!(
        results,
        [
            "README.md",
            "README.md\nsrc/",
            "src/main.rs:1: fn main() {}"
        ]
    );
    let request = server.last_request().body;
    assert_eq!(offered(&request), ["ls", "grep", "find"]);
    let system = request["system"].to_string();
    assert!(system.contains("- grep: Find lines"), "{system}");
}

#[tokio::test]
async fn an_extension_lists_and_enables_search_tools() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension(
        "tools.ts",
        r#"export default (pi) => pi.registerCommand("search", { handler: async (_args, ctx) => {
            const known = pi.getAllTools().map((tool) => tool.name);
            pi.setActiveTools(["find", "grep", "ls"]);
            ctx.ui.notify([known, pi.getActiveTools()].join(" | "));
        }});"#,
    );
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/search")).await;
    rpc.notified("read,bash,edit,write,grep,find,ls | find,grep,ls")
        .await;
    server.push(Answer::text("Done."));
    rpc.run("go").await;
    assert_eq!(offered(&server.last_request().body), ["find", "grep", "ls"]);
}

/// A sparse file of a terabyte, which takes minutes to search.
#[tokio::test]
async fn an_abort_ends_a_search() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    let file = std::fs::File::create(home.cwd().join("huge")).unwrap();
    if file.set_len(1 << 40).is_err() {
        file.set_len(1 << 36).unwrap();
    }
    let mut rpc = home.rpc(&["--tools", "grep"]);
    server.push(Answer::tool(
        "grep",
        json!({"pattern": "x", "path": "huge"}),
    ));
    rpc.ok(prompt("go")).await;
    rpc.event("tool_execution_start").await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.event("tool_execution_end").await;
    assert_eq!(
        blocks(&end["result"]["content"], "text"),
        "Operation aborted"
    );
    assert!(rpc.close().await.success());
}

/// The walk opened the pipe and never ended.
#[cfg(unix)]
#[tokio::test]
async fn an_ignore_file_that_is_a_pipe_is_reported() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    for name in ["here/a.txt", "here/pipe/b.txt", "above/deep/c.txt"] {
        home.file(name, "text\n");
    }
    for name in ["here/pipe/.gitignore", "above/.ignore"] {
        let path = home.cwd().join(name);
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }
    let mut rpc = home.rpc(&["--tools", "grep,find"]);
    for (path, found) in [("here", "a.txt"), ("above/deep", "c.txt")] {
        server.push(Answer::tools([
            ("grep", json!({"pattern": "text", "path": path})),
            ("find", json!({"pattern": "*.txt", "path": path})),
        ]));
        server.push(Answer::text("Done."));
        let events = rpc.run("go").await;
        let ends = events
            .iter()
            .filter(|event| event["type"] == "tool_execution_end");
        let results: Vec<String> = ends
            .map(|event| blocks(&event["result"]["content"], "text"))
            .collect();
        assert_eq!(results.len(), 2);
        for result in results {
            assert!(result.starts_with(found), "{result}");
            assert!(!result.contains("b.txt"), "{result}");
            let reported = result
                .contains("Could not read 1 of the files and folders, the first: ")
                && result.contains("ignore: it is a pipe, a socket or a device");
            assert!(reported, "{result}");
        }
    }
}
