//! The page of an exported session in a real browser (`tests/browser/export.mjs`): a conversation,
//! a hostile file, and a session of ten thousand entries.

use std::fmt::Write as _;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Browser, Home, PIXEL, type_packages};

#[tokio::test]
async fn a_reader_uses_the_page() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    for (name, session) in [("story", story()), ("hostile", hostile()), ("long", long())] {
        let file = home.file(&format!("{name}.jsonl"), &session);
        let file = file.to_str().expect("a temporary folder in UTF-8");
        let page = format!("{name}.html");
        home.run(&["--export", file, &page], "").await.ok();
    }
    let mut rpc = home.rpc(&["--tools", "bash", "--system-prompt", "You are told this."]);
    server.push(Answer::text("The answer to all."));
    rpc.run("hi").await;
    rpc.ok(json!({"type": "export_html", "outputPath": "live.html"}))
        .await;
    rpc.close().await;
    browser.run("export.mjs", &home.cwd()).await;
}

/// Uses the packages that the build has installed beside a copy of the sources.
#[test]
fn the_page_fits_its_types() {
    let compiler = type_packages().join("typescript/bin/tsc");
    let mut command = std::process::Command::new("node");
    let checked = command
        .arg(compiler)
        .args(["--project", pi_export::PAGE_SOURCES])
        .output();
    let checked = checked.expect("node is installed (scripts/setup)");
    let printed = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{printed}");
}

/// Builder of a session file.
struct Story {
    lines: String,
    last: Option<String>,
    count: usize,
}

impl Story {
    fn begin() -> Self {
        let header = json!({
            "type": "session", "version": 3, "id": "0199aaaa-bbbb-7ccc-8ddd-eeeeffff0001",
            "timestamp": "2026-04-20T09:00:00.000Z", "cwd": "/home/ann/weather",
        });
        Self {
            lines: format!("{header}\n"),
            last: None,
            count: 0,
        }
    }

    /// Appends an entry with a given id after the last one.
    fn named(&mut self, id: &str, kind: &str, members: Value) {
        let mut entry = json!({
            "type": kind, "id": id, "parentId": self.last,
            "timestamp": format!("2026-04-20T09:{:02}:00.000Z", self.count % 60),
        });
        let members = members.as_object().expect("members");
        entry
            .as_object_mut()
            .expect("an entry")
            .extend(members.clone());
        self.raw(&entry.to_string());
        self.last = Some(id.to_string());
        self.count += 1;
    }

    fn raw(&mut self, line: &str) {
        writeln!(self.lines, "{line}").expect("a string takes everything");
    }

    fn add(&mut self, kind: &str, members: Value) {
        let id = format!("{:08x}", self.count + 0x1000);
        self.named(&id, kind, members);
    }

    fn message(&mut self, message: Value) {
        self.add("message", json!({ "message": message }));
    }

    fn user(&mut self, id: &str, content: Value) {
        let message = json!({"role": "user", "content": content, "timestamp": 0});
        self.named(id, "message", json!({ "message": message }));
    }

    fn answer(&mut self, content: Value) {
        self.message(answer(content, "stop"));
    }

    fn result(&mut self, id: &str, call: &str, tool: &str, text: &str, details: Value) {
        let message = json!({
            "role": "toolResult", "toolCallId": call, "toolName": tool, "details": details,
            "content": [{"type": "text", "text": text}], "isError": false, "timestamp": 0,
        });
        self.named(id, "message", json!({ "message": message }));
    }
}

fn answer(content: Value, stop_reason: &str) -> Value {
    json!({
        "role": "assistant", "content": content, "api": "x", "provider": "scripted",
        "model": "scribe", "stopReason": stop_reason, "timestamp": 0,
        "usage": {
            "input": 10, "output": 20, "cacheRead": 3000, "cacheWrite": 0, "totalTokens": 3030,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.01},
        },
    })
}

fn call(id: &str, tool: &str, arguments: Value) -> Value {
    json!({"type": "toolCall", "id": id, "name": tool, "arguments": arguments})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn rows(count: usize) -> String {
    let rows = (0..count).map(|row| format!("row {row} of {count}\n"));
    rows.collect()
}

fn story() -> String {
    let mut story = Story::begin();
    story.add("session_info", json!({"name": "Cold stations"}));
    let picture = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    story.user(
        "e-why",
        json!([text("Why is it warm in Oymyakon?"), picture]),
    );
    story.answer(json!([
        {"type": "thinking", "thinking": "A sign, perhaps."},
        call("read", "read", json!({"path": "src/units.rs", "offset": 1, "limit": 40})),
        call("edit", "edit", json!({"path": "src/units.rs", "edits": []})),
        call("build", "bash", json!({"command": "cargo build"})),
    ]));
    let lines = (1..40).map(|line| format!("line {line} of the file\n"));
    story.result(
        "e-read",
        "read",
        "read",
        &lines.collect::<String>(),
        Value::Null,
    );
    let diff = "  3 same\n- 4 old line\n+ 4 new line";
    story.result("e-edit", "edit", "edit", "Edited", json!({ "diff": diff }));
    let build = format!("unused variable\n{}", rows(300));
    story.result("e-build", "build", "bash", &build, Value::Null);
    story.answer(json!([text(
        "## The cause\n\n| station |\n|---|\n| Oymyakon |\n\n- [x] found\n\n```rust\nfn main() {}\n```"
    )]));
    let fork = story.last.clone();
    story.add("label", json!({"targetId": fork, "label": "decision"}));
    story.user("e-test", json!("Fix the test."));
    story.answer(json!([text("The test was repaired.")]));
    story.message({
        let mut failed = answer(json!([]), "error");
        failed["errorMessage"] = json!("overloaded");
        failed
    });
    story.last = fork;
    story.add(
        "branch_summary",
        json!({"fromId": "x", "summary": "Went **wrong**."}),
    );
    story.message({
        let mut failed = answer(json!([]), "error");
        failed["errorMessage"] = json!("overloaded");
        failed
    });
    story.user("e-code", json!("Fix the code."));
    story.message(json!({
        "role": "bashExecution", "command": "false", "output": "", "exitCode": 1,
        "cancelled": false, "truncated": false, "timestamp": 0,
    }));
    story.user(
        "e-skill",
        json!("<skill name=\"forecasts\" location=\"/s/SKILL.md\">\nLook at the sky.\n</skill>\n\nWith care, please."),
    );
    story.add(
        "custom_message",
        json!({"customType": "plan-mode", "content": "A plan", "display": true}),
    );
    story.add(
        "compaction",
        json!({"summary": "All before", "firstKeptEntryId": "e-why", "tokensBefore": 152_000}),
    );
    story.answer(json!([text("Done.")]));
    story.lines
}

/// Texts that would run, or break the page, if they were taken for more than text.
fn hostile() -> String {
    let evil = "</script><script>window.pwned=1</script><img src=x onerror=\"window.pwned=2\">\
                <svg onload=window.pwned=3><!-- <script> '\"`${window.pwned=4} </style>";
    let links = "[a](javascript:window.pwned=5) [b](data:text/html,<script>window.pwned=6</script>) \
                 <a href=\"javascript:window.pwned=7\">x</a> ![c](javascript:window.pwned=8) \
                 ![d](https://tracker.invalid/x.png) ![e](data:image/svg+xml;base64,PHN2Zz4=) \
                 <javascript:window.pwned=9> [f](vbscript:x) [g](https://example.com/?a=\"b\") \
                 [h](JaVaScRiPt&colon;window.pwned=10) [i](&#106;avascript:window.pwned=11)\n\n\
                 ```html\n</code></pre><script>window.pwned=12</script>\n```\n\n| a |\n|---|\n| <b>x</b> |";
    let mut story = Story::begin();
    story.add("session_info", json!({ "name": evil }));
    story.user("e-first", json!([text(evil), text(links)]));
    let mut arguments = json!({"path": evil, "__proto__": {"x": 1}});
    arguments[evil] = json!(evil);
    story.answer(json!([
        text(evil), {"type": "thinking", "thinking": evil}, {"type": evil},
        call(evil, evil, arguments), call("big", "bash", json!({"command": evil})),
        call("edit", "edit", json!({"path": evil})), null, 7, "x", {"type": "text", "text": {}},
        {"type": "toolCall"}, {"type": "toolCall", "name": 7, "arguments": [1]},
    ]));
    story.result("e-evil", evil, evil, evil, json!({ "diff": evil }));
    story.result("e-big", "big", "bash", &"x".repeat(5_000_000), Value::Null);
    let diff = json!({ "diff": format!("+{evil}\n").repeat(6_000) });
    story.result("e-diff", "edit", "edit", "", diff);
    let image = |data: &str, kind: &str| json!({"type": "image", "data": data, "mimeType": kind});
    story.user(
        "e-images",
        json!([
            image("\"><script>window.pwned=13</script>", "image/png"),
            image("AAAA", "image/png"),
            image("PHN2Zz4=", "image/svg+xml"),
            image("AAAA", "text/html\" onload=\"window.pwned=14"),
            image(PIXEL, "image/png"),
            image(&format!("A{}!", " ".repeat(1_000_000)), "image/png"),
            {"type": "image"},
        ]),
    );
    // Parsers take quadratic time or more for these.
    for content in [
        ">".repeat(400),
        "[".repeat(3_000),
        "*a_".repeat(30_000),
        "http://a.(".repeat(9_000),
        format!("a{}a", " ".repeat(100_000)),
        format!("```csharp\n{}\n```", "a".repeat(50_000)),
        "\u{1b}]".repeat(30_000),
    ] {
        story.message(json!({"role": "user", "content": content}));
    }
    story.add("label", json!({"targetId": "e-first", "label": evil}));
    for message in [json!({"role": evil, "content": 7}), json!(7), json!(null)] {
        story.message(message);
    }
    for kind in [
        "compaction",
        "branch_summary",
        "custom_message",
        "model_change",
        "label",
        "__proto__",
        evil,
    ] {
        story.add(kind, json!({"customType": evil, "content": {"a": evil}}));
    }
    let end = story.last.clone().expect("there are entries");
    story.raw("no JSON at all");
    // Half of a surrogate pair, a null, and a carriage return between members.
    story.raw(
        "{\"type\":\"message\",\r\"id\":\"half\",\"parentId\":null,\"timestamp\":\"T\",\
         \"message\":{\"role\":\"user\",\"content\":\"a \\ud83d b \\udc00 \\u0000 c\"}}",
    );
    story.raw(&format!(
        "{{\"type\":\"custom\",\"id\":\"deep\",\"parentId\":\"half\",\"timestamp\":\"T\",\
         \"customType\":\"x\",\"data\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    ));
    for (id, parent) in [
        ("self", "self"),
        ("b", "a"),
        ("a", "b"),
        ("twice", "nowhere"),
        ("twice", "twice"),
    ] {
        story.last = Some(parent.to_string());
        story.user(id, json!("round and round"));
    }
    story.last = Some(end);
    story.user("e-end", json!("the last word"));
    story.lines
}

fn long() -> String {
    let mut story = Story::begin();
    for number in 0..2_500 {
        story.user(&format!("q{number}"), json!(format!("Question {number}?")));
        let id = format!("call{number}");
        let call = call(&id, "bash", json!({"command": format!("echo {number}")}));
        story.answer(json!([
            text("Let me look:\n\n```rust\nfn x() {}\n```"),
            call
        ]));
        story.result(&format!("r{number}"), &id, "bash", &rows(40), Value::Null);
        let word = if number == 1_200 { "needle" } else { "straw" };
        story.answer(json!([text(&format!("It is **{number}**, a {word}."))]));
    }
    story.lines
}
