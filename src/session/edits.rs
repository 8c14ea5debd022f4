//! What a model hears in the place of what was said: entries of the type `context_edit`,
//! which newer versions of the original write (session-format.md of 1.5.2). The last one
//! on the path counts; the entry that it edits stays in the file as it was.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::entry::{Entry, EntryKind};
use super::message::AgentMessage;
use crate::ai::nesting::{self, Of};

/// By the id of the entry that is edited.
pub(super) struct Edits<'a>(HashMap<&'a str, &'a Entry>);

#[derive(Deserialize)]
struct Body {
    replacement: Value,
}

/// What becomes of a message.
enum Edit {
    Omit,
    Replace(Value),
}

impl<'a> Edits<'a> {
    /// `path` runs from the root to the leaf.
    pub(super) fn on(path: &'a [Arc<Entry>]) -> Self {
        let edits = path.iter().filter_map(|entry| match &entry.kind {
            EntryKind::ContextEdit { target_id } => Some((target_id.as_str(), &**entry)),
            _ => None,
        });
        Self(edits.collect())
    }

    /// What the model hears of an entry's message; `None` if that is nothing.
    pub(super) fn apply(
        &self,
        entry: &Entry,
        message: Arc<AgentMessage>,
    ) -> Option<Arc<AgentMessage>> {
        match self.edit(entry) {
            None => Some(message),
            Some(Edit::Omit) => None,
            Some(Edit::Replace(content)) => {
                let edited = serde_json::to_value(&*message).map(|value| with(value, content));
                let edited = edited.and_then(serde_json::from_value);
                // What cannot be read changes nothing.
                Some(edited.map_or(message, Arc::new))
            }
        }
    }

    /// The same with the JSON of a message, whose other members stay as they are.
    pub(super) fn apply_json(&self, entry: &Entry, message: String) -> Option<String> {
        match self.edit(entry) {
            None => Some(message),
            Some(Edit::Omit) => None,
            Some(Edit::Replace(content)) => {
                let value = nesting::from_str(&message, Of::Line);
                Some(value.map_or(message, |value| with(value, content).to_string()))
            }
        }
    }

    fn edit(&self, entry: &Entry) -> Option<Edit> {
        let edit = self.0.get(entry.id.as_str())?;
        if !matches!(
            entry.kind,
            EntryKind::Message { .. } | EntryKind::CustomMessage { .. }
        ) {
            return None;
        }
        let body: Body = nesting::from_str(&edit.raw, Of::Line).ok()?;
        match body.replacement {
            Value::Null => Some(Edit::Omit),
            replacement => Some(Edit::Replace(replacement.get("content")?.clone())),
        }
    }
}

/// The message with another content; what a model or a tool says is an array of blocks.
fn with(mut message: Value, content: Value) -> Value {
    let content = match (&message["role"], content) {
        (Value::String(role), Value::String(text))
            if matches!(role.as_str(), "assistant" | "toolResult") =>
        {
            json!([{ "type": "text", "text": text }])
        }
        (_, content) => content,
    };
    message["content"] = content;
    message
}

/// Whether `raw` says what is to become of its target.
pub(super) fn is_whole(raw: &str) -> bool {
    nesting::from_str(raw, Of::Line).is_ok_and(|body: Body| match &body.replacement {
        Value::Null => true,
        replacement => match replacement.get("content") {
            Some(Value::String(_)) => true,
            Some(Value::Array(blocks)) => blocks.iter().all(Value::is_object),
            _ => false,
        },
    })
}
