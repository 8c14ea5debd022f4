//! The context as JSON for extensions: messages with all members that they have in the file,
//! including unknown ones.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::context::{context_entries, entry_model};
use crate::context_edits::ContextEdits;
use crate::entry::{Entry, EntryKind};
pub use pi_ai::json::depth::{self, Origin};

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

/// Returns `{"messages":[…],"thinkingLevel":…,"model":…}`. `path` runs from the root to the
/// leaf.
pub(crate) fn write(path: &[Arc<Entry>]) -> String {
    let edits = ContextEdits::on_path(path);
    let messages: Vec<String> = context_entries(path)
        .into_iter()
        .filter_map(|entry| edits.apply_json(entry, message(entry)?))
        .collect();
    let level = path.iter().rev().find_map(|entry| match &entry.kind {
        EntryKind::ThinkingLevelChange { level } => Some(level.as_str()),
        _ => None,
    });
    let model = path.iter().rev().find_map(|entry| entry_model(entry));
    let model = model.map(|model| json!({ "provider": model.provider, "modelId": model.model_id }));
    format!(
        "{{\"messages\":[{}],\"thinkingLevel\":{},\"model\":{}}}",
        messages.join(","),
        json!(level.unwrap_or("off")),
        json!(model)
    )
}

/// Returns each entry of the context with its messages, as `{ sourceEntry, messages }`
/// (`ProjectedSessionEntry` in newer versions of the original).
pub(crate) fn projection(path: &[Arc<Entry>]) -> Vec<Value> {
    let edits = ContextEdits::on_path(path);
    let entries = context_entries(path).into_iter().map(|entry| {
        let edited = message(entry).and_then(|message| edits.apply_json(entry, message));
        let parse =
            |text: &str| depth::from_str::<Value>(text, Origin::SessionLine).unwrap_or_default();
        json!({
            "sourceEntry": parse(&entry.wire_json()),
            "messages": edited.iter().map(|message| parse(message)).collect::<Vec<_>>(),
        })
    });
    entries.collect()
}

/// Returns the message of an entry as JSON; `None` if it cannot be read, which was reported
/// when the session was opened.
fn message(entry: &Entry) -> Option<String> {
    if let EntryKind::Message { role } = &entry.kind {
        if role == "system" {
            return None;
        }
        let line: Line<'_> = serde_json::from_str(&entry.raw).ok()?;
        return Some(line.message.get().to_owned());
    }
    let message = entry.message().ok()??;
    serde_json::to_string(&*message).ok()
}
