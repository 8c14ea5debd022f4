//! Compaction of conversations that outgrow the context window of their model.

mod extensions;
mod overflow;
mod parity;
mod retries;
mod runs;

use model_server::{Answer, ModelServer};
use serde_json::{Value, json};

use crate::support::{Home, Rpc, text_of};

/// Tokens of a question and its answer in most tests.
pub const TURN: u64 = 4;

/// A server and a home whose compactions keep about this many tokens of the end of a conversation.
pub async fn keeping(tokens: u64) -> (ModelServer, Home) {
    let server = ModelServer::start().await;
    let home = Home::new(&server);
    home.settings(json!({"compaction": {"keepRecentTokens": tokens}}));
    (server, home)
}

/// Runs one prompt per topic; the model answers `About one.`, `About two.`, …
pub async fn talk(server: &ModelServer, rpc: &mut Rpc, about: &[&str]) {
    for text in about {
        server.push(Answer::text(&format!("About {text}.")));
        rpc.run(text).await;
    }
}

/// The command `compact`.
pub fn compact() -> Value {
    json!({"type": "compact"})
}

pub async fn message_texts(rpc: &mut Rpc) -> Vec<String> {
    let data = rpc.ok(json!({"type": "get_messages"})).await;
    let messages = data["messages"].as_array().unwrap().iter();
    let text = |message: &Value| match &message["summary"] {
        Value::String(summary) => format!("{}: {summary}", message["role"].as_str().unwrap()),
        _ => text_of(message),
    };
    messages.map(text).collect()
}

/// The texts of the messages in the newest request.
pub fn request_texts(server: &ModelServer) -> Vec<String> {
    let body = server.last_request().body;
    let messages = body["messages"].as_array().unwrap();
    messages.iter().map(text_of).collect()
}

/// The entries of one type.
pub fn of_type(entries: &[Value], kind: &str) -> Vec<Value> {
    let found = entries.iter().filter(|entry| entry["type"] == kind);
    found.cloned().collect()
}
