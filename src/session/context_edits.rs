//! Entries of type `context_edit`, which newer versions of the original write: they change or
//! remove the message of another entry in the context. The last edit on the path applies; the
//! edited entry stays in the file unchanged.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::entry::{Entry, EntryKind};
use crate::message::AgentMessage;
pub use pi_ai::json::depth::{self, Origin};

/// Maps the id of an edited entry to the last edit.
pub(crate) struct ContextEdits<'a>(HashMap<&'a str, &'a Entry>);

#[derive(Deserialize)]
struct Body {
    replacement: Value,
}

/// The effect of an edit on a message.
enum Edit {
    Omit,
    Replace(Value),
}

impl<'a> ContextEdits<'a> {
    /// Collects the edits on `path`, which runs from the root to the leaf.
    pub(crate) fn on_path(path: &'a [Arc<Entry>]) -> Self {
        let edits = path.iter().filter_map(|entry| match &entry.kind {
            EntryKind::ContextEdit { target_id } => Some((target_id.as_str(), &**entry)),
            _ => None,
        });
        Self(edits.collect())
    }

    /// Returns the message as the model receives it; `None` if the edit removes it.
    pub(crate) fn apply(
        &self,
        entry: &Entry,
        message: Arc<AgentMessage>,
    ) -> Option<Arc<AgentMessage>> {
        match self.edit(entry) {
            None => Some(message),
            Some(Edit::Omit) => None,
            Some(Edit::Replace(content)) => {
                let edited =
                    serde_json::to_value(&*message).map(|value| with_content(value, content));
                let edited = edited.and_then(serde_json::from_value);
                // An edit whose result cannot be read is ignored.
                Some(edited.map_or(message, Arc::new))
            }
        }
    }

    /// Like [`Self::apply`], for the JSON of a message. Members that the edit does not name
    /// stay as they are.
    pub(crate) fn apply_json(&self, entry: &Entry, message: String) -> Option<String> {
        match self.edit(entry) {
            None => Some(message),
            Some(Edit::Omit) => None,
            Some(Edit::Replace(content)) => {
                let value = depth::from_str(&message, Origin::SessionLine);
                Some(value.map_or(message, |value| with_content(value, content).to_string()))
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
        let body: Body = depth::from_str(&edit.raw, Origin::SessionLine).ok()?;
        match body.replacement {
            Value::Null => Some(Edit::Omit),
            replacement => Some(Edit::Replace(replacement.get("content")?.clone())),
        }
    }
}

/// Replaces the content of a message. Content of answers and tool results is an array of
/// blocks.
fn with_content(mut message: Value, content: Value) -> Value {
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

/// Returns whether `raw` has all members that an edit needs.
pub(crate) fn is_complete(raw: &str) -> bool {
    depth::from_str(raw, Origin::SessionLine).is_ok_and(|body: Body| match &body.replacement {
        Value::Null => true,
        replacement => match replacement.get("content") {
            Some(Value::String(_)) => true,
            Some(Value::Array(blocks)) => blocks.iter().all(Value::is_object),
            _ => false,
        },
    })
}
