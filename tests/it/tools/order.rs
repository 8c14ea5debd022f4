//! Calls of one answer that change the same file run in the order of the calls, whichever tool runs
//! them, although calls otherwise run concurrently.

use std::path::Path;
use std::time::Duration;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, prompt, text_of};

/// `add` appends a word through the queue, `late` does so after a wait of its own, `write` is
/// wrapped, `hang` waits until it is aborted, `spin` occupies the thread for two seconds and then
/// reports the file's content.
const TOOLS: &str = include_str!("fixtures/order.ts");

fn file(home: &Home) -> String {
    std::fs::read_to_string(home.cwd().join("f.txt")).unwrap_or_default()
}

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    let edits = json!([{ "oldText": old, "newText": new }]);
    ("edit", json!({ "path": "f.txt", "edits": edits }))
}

fn add(word: &str) -> (&'static str, Value) {
    ("add", json!({ "word": word }))
}

/// Returns the results of the tools and the file's content afterwards.
async fn outcome(calls: Answer) -> (Vec<String>, String) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("tools.ts", TOOLS);
    home.file("f.txt", "one\n");
    home.file("beside.txt", "beside");
    server.push(calls);
    server.push(Answer::text("I see."));
    let mut rpc = home.rpc(&[]);
    let events = rpc.run("go").await;
    let ends = events.iter();
    let ends = ends.filter(|event| event["type"] == "tool_execution_end");
    let output = ends.map(|event| text_of(&event["result"])).collect();
    (output, file(&home))
}

const EDITED: &str = "Successfully replaced 1 block(s) in f.txt.";

/// The built-in tool was queued first and did not find the text that it was to change.
#[tokio::test]
async fn a_built_in_tool_sees_the_writes_of_an_earlier_call() {
    let calls = [
        edit("one", "two"),
        add("a"),
        edit("two\na", "b"),
        add("c"),
        ("read", json!({ "path": "beside.txt" })),
        add("d"),
        edit("b\nc\nd", "e"),
    ];
    let (output, file) = outcome(Answer::tools(calls)).await;
    let expected = [
        EDITED, "added a", EDITED, "added c", "beside", "added d", EDITED,
    ];
    assert_eq!(output, expected);
    assert_eq!(file, "e\n");
}

#[tokio::test]
async fn a_call_sees_the_writes_of_an_earlier_wrapped_tool() {
    let write = |text: &str| ("write", json!({ "path": "f.txt", "content": text }));
    let calls = [write("x"), edit("x", "y"), write("z"), edit("z", "end")];
    let (output, file) = outcome(Answer::tools(calls)).await;
    let wrote = "Successfully wrote 1 bytes to f.txt";
    assert_eq!(output, [wrote, EDITED, wrote, EDITED]);
    assert_eq!(file, "end");
}

/// A tool that waits for something else before it queues loses its position.
#[tokio::test]
async fn a_tool_that_queues_late_or_never_delays_no_other() {
    let calls = [
        ("throws", json!({})),
        ("late", json!({ "word": "late" })),
        edit("one", "two"),
    ];
    let (output, file) = outcome(Answer::tools(calls)).await;
    assert_eq!(output, ["no", "added late", EDITED]);
    assert_eq!(file, "two\nlate\n");
}

async fn until_it_says(file: &Path, text: &str) {
    let says = async {
        while std::fs::read_to_string(file).unwrap_or_default() != text {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let output = tokio::time::timeout(Duration::from_secs(30), says).await;
    output.unwrap_or_else(|_| panic!("{} never said {text:?}", file.display()));
}

#[tokio::test]
async fn a_tool_that_hangs_is_passed_and_can_be_aborted() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("tools.ts", TOOLS);
    home.file("f.txt", "one\n");
    server.push(Answer::tools([
        ("hang", json!({})),
        edit("one", "two"),
        add("three"),
    ]));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("go")).await;
    until_it_says(&home.cwd().join("f.txt"), "two\nthree\n").await;
    rpc.ok(json!({"type": "abort"})).await;
    let end = rpc.event("tool_execution_end").await;
    assert_eq!(text_of(&end["result"]), "gave up");
    rpc.event("agent_end").await;
}

/// Other tools of the isolate wait for the thread, but the program continues.
#[tokio::test]
async fn a_busy_thread_does_not_delay_built_in_tools() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("tools.ts", TOOLS);
    home.settings(json!({ "extensionTimeouts": { "handler": 300 } }));
    home.file("f.txt", "one\n");
    server.push(Answer::tools([("spin", json!({})), edit("one", "two")]));
    server.push(Answer::text("I see."));
    let mut rpc = home.rpc(&[]);
    let events = rpc.run("go").await;
    let spun = events
        .iter()
        .find(|event| event["type"] == "tool_execution_end");
    assert_eq!(text_of(&spun.unwrap()["result"]), "two\n");
}

#[tokio::test]
async fn tools_of_a_child_session_keep_the_order() {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.extension("tools.ts", TOOLS);
    home.file("f.txt", "one\n");
    server.push(Answer::tools([
        add("a"),
        edit("one\na", "b"),
        add("c"),
        edit("b\nc", "d"),
    ]));
    server.push(Answer::text("I see."));
    let mut rpc = home.rpc(&[]);
    rpc.ok(prompt("/second")).await;
    rpc.notified("done").await;
    assert_eq!(file(&home), "d\n");
}
