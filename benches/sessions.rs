//! Measures listing and searching thousands of sessions.

use std::fs;
use std::path::Path;
use std::time::Instant;

use pi_session::{SessionQuery, default_session_dir, list_all};
use serde_json::json;
use tempfile::TempDir;

use super::print;

const FOLDERS: usize = 50;
const SESSIONS: usize = 5000;
const TURNS: usize = 8;
const LIST_RUNS: usize = 5;

/// Sessions have about 20 kB each: questions, tool calls with results, answers.
pub fn list_and_search() {
    let home = TempDir::with_prefix("pi-bench-").expect("a temporary folder");
    let mut bytes = 0;
    for n in 0..SESSIONS {
        let cwd = format!("/home/user/project-{}", n % FOLDERS);
        let dir = default_session_dir(home.path(), Path::new(&cwd));
        let text = session(n, &cwd);
        bytes += text.len();
        fs::create_dir_all(&dir).expect("a folder");
        fs::write(dir.join(format!("{n:05}.jsonl")), text).expect("a file");
    }
    let sessions = home.path().join("sessions");
    let (mut listing, mut searching) = (Vec::new(), Vec::new());
    for _ in 0..LIST_RUNS {
        let start = Instant::now();
        let found = list_all(&sessions).expect("a list");
        listing.push(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(found.len(), SESSIONS);
        let start = Instant::now();
        let query = SessionQuery::parse("needle \"in session 4999\"").expect("a query");
        let matches = found.iter().filter(|info| query.matches(info)).count();
        searching.push(start.elapsed().as_secs_f64() * 1e3);
        assert_eq!(matches, 1);
    }
    let what = format!("{SESSIONS} sessions ({} MB), all listed", bytes >> 20);
    print(&what, "ms", &mut listing, None);
    print("searched for words in them", "ms", &mut searching, None);
}

fn session(n: usize, cwd: &str) -> String {
    let time = "2026-01-01T00:00:00.000Z";
    let header = json!({"type": "session", "version": 3, "id": format!("{n:08x}"), "timestamp": time, "cwd": cwd});
    let mut lines = vec![header.to_string()];
    let mut parent = None::<String>;
    let mut add = |message: serde_json::Value| {
        let id = format!("{:08x}", lines.len());
        let message = message.to_string();
        let parent = serde_json::to_string(&parent.replace(id.clone())).expect("an id");
        lines.push(format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{time}","message":{message}}}"#
        ));
    };
    // The role comes first, as in files that pi writes.
    for turn in 0..TURNS {
        let at = 1_767_225_600_000_u64 + (n * TURNS + turn) as u64;
        add(
            json!({"role": "user", "content": format!("question {turn} with a needle in session {n}"), "timestamp": at}),
        );
        add(
            json!({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm ".repeat(60)}, {"type": "toolCall", "id": "call", "name": "bash", "arguments": {"command": "ls"}}], "timestamp": at}),
        );
        add(
            json!({"role": "toolResult", "toolCallId": "call", "toolName": "bash", "content": [{"type": "text", "text": "a line of a file\n".repeat(80)}], "isError": false, "timestamp": at}),
        );
        add(
            json!({"role": "assistant", "content": [{"type": "text", "text": "an answer of some length ".repeat(10)}], "timestamp": at}),
        );
    }
    lines.join("\n") + "\n"
}
