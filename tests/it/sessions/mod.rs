//! Session files: what is stored, who may write, and how a session continues.

mod damaged;
mod deep_data;
mod foreign_files;
mod forks;
mod handover;
mod kill;
mod locking;
mod navigation;
mod persistence;
mod picker;
mod upgrade;

use std::path::{Path, PathBuf};

use model_server::{Answer, ModelServer};
use serde_json::Value;

use crate::support::{Home, read_jsonl, text_of};

/// A path as a command-line argument.
fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Starts a session with one prompt, `begin`, and its answer, `Yes.`, which the server repeats
/// from then on. Returns the session file.
async fn start_session(server: &ModelServer, home: &Home) -> PathBuf {
    let file = home.cwd().join("session.jsonl");
    server.repeat(Answer::text("Yes."));
    let arguments = ["-ne", "--session", path(&file), "-p", "begin"];
    home.run(&arguments, "").await.ok();
    file
}

/// Reads a session file and insists that each entry is the child of the one before it.
fn read_chain(file: &Path) -> Vec<Value> {
    let lines = read_jsonl(file);
    let (header, entries) = lines.split_first().unwrap();
    assert_eq!(header["type"], "session");
    let mut leaf = &Value::Null;
    for entry in entries {
        assert_eq!(&entry["parentId"], leaf, "{lines:#?}");
        leaf = &entry["id"];
    }
    lines
}

/// The texts of the messages in lines of a session file.
fn texts(lines: &[Value]) -> Vec<String> {
    let messages = lines.iter().filter(|line| line["type"] == "message");
    messages.map(|entry| text_of(&entry["message"])).collect()
}
