//! Tests of the session store with real files.

mod context;
mod context_edits;
mod crash;
mod damage;
mod every_fault;
mod export;
mod fork;
mod forms;
mod full_disk;
mod list;
mod lock;
mod memory_disk;
mod reference;
mod session;
mod unlocked;

use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::message::AgentMessage;
use super::*;
use pi_ai::message::{ImageContent, UserMessage};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#;

fn temp() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn user(text: &str) -> AgentMessage {
    AgentMessage::User(UserMessage::new(text, Vec::<ImageContent>::new()))
}

/// Makes an assistant message that calls tools, given as id and name.
fn calls(stop_reason: &str, calls: &[(&str, &str)]) -> AgentMessage {
    let content: Vec<_> = calls
        .iter()
        .map(|(id, name)| json!({ "type": "toolCall", "id": id, "name": name, "arguments": {} }))
        .collect();
    serde_json::from_value(json!({
        "role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m",
        "usage": {}, "stopReason": stop_reason, "timestamp": 7,
    }))
    .unwrap()
}

fn result(id: &str, name: &str) -> AgentMessage {
    serde_json::from_value(json!({
        "role": "toolResult", "toolCallId": id, "toolName": name,
        "content": [{ "type": "text", "text": "done" }], "isError": false, "timestamp": 8,
    }))
    .unwrap()
}

/// Makes the line of an entry with a user message.
fn line(id: &str, parent: Option<&str>, text: &str) -> String {
    json!({
        "type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z",
        "message": { "role": "user", "content": text, "timestamp": 1 },
    })
    .to_string()
}

fn open(path: &Path) -> (Session, Vec<Warning>) {
    Session::open(path, Path::new("/elsewhere")).unwrap()
}

fn new_session(dir: &Path) -> Session {
    Session::create(dir, Path::new("/w"), NewSession::default())
}

fn raws(session: &Session) -> Vec<String> {
    session
        .entries()
        .iter()
        .map(|entry| entry.raw.to_string())
        .collect()
}

fn ids(entries: &[std::sync::Arc<Entry>]) -> Vec<&str> {
    entries.iter().map(|entry| entry.id.as_str()).collect()
}

fn texts(context: &SessionContext) -> Vec<String> {
    let texts = context.messages.iter().map(|message| match &**message {
        AgentMessage::User(user) => user.content.text(),
        AgentMessage::Custom(custom) => custom.content.text(),
        AgentMessage::BranchSummary(branch) => format!("branch: {}", branch.summary),
        AgentMessage::CompactionSummary(summary) => format!("compaction: {}", summary.summary),
        AgentMessage::ToolResult(result) => {
            let text = pi_ai::message::join_text(&result.content);
            format!(
                "{} {} error={}: {text}",
                result.tool_name, result.tool_call_id, result.is_error
            )
        }
        other => other.role().to_owned(),
    });
    texts.collect()
}

/// Returns the names of all files in `dir`, sorted.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
