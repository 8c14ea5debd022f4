//! One line of a session file. Reading it takes only what the tree needs; a
//! message is parsed when somebody asks for it, so that long sessions open fast.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::SessionError;
use super::message::{AgentMessage, BranchSummaryMessage, CompactionSummaryMessage, CustomMessage};
use super::paths;
use super::raw::Raw;
use crate::ai::half_characters;
use crate::ai::mend::mend;
use crate::ai::nesting::{self, Of};

#[derive(Debug)]
pub struct Entry {
    pub id: String,
    pub parent_id: Option<String>,
    /// ISO 8601.
    pub timestamp: String,
    pub kind: EntryKind,
    /// The exact line, without its line end.
    pub raw: Raw,
    message: OnceLock<Arc<AgentMessage>>,
}

/// What can be known of an entry without parsing all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryKind {
    Message {
        role: String,
    },
    ThinkingLevelChange {
        level: String,
    },
    ModelChange {
        provider: String,
        model_id: String,
    },
    Compaction {
        first_kept_entry_id: String,
    },
    BranchSummary,
    Custom {
        custom_type: String,
    },
    CustomMessage {
        custom_type: String,
    },
    Label {
        target_id: String,
        label: Option<String>,
    },
    SessionInfo {
        name: Option<String>,
    },
    /// What a model hears in the place of another entry's message.
    ContextEdit {
        target_id: String,
    },
    /// A type that we do not know, or one that lacks what makes it useful. It
    /// keeps its place in the tree.
    Other {
        type_name: String,
    },
}

/// All members that any entry type keeps in the tree.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    parent_id: Option<String>,
    #[serde(borrow, default)]
    timestamp: Cow<'a, str>,
    message: Option<MessageHead>,
    thinking_level: Option<String>,
    provider: Option<String>,
    model_id: Option<String>,
    first_kept_entry_id: Option<String>,
    custom_type: Option<String>,
    target_id: Option<String>,
    label: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct MessageHead {
    role: String,
}

/// For lines whose other members are not what their type says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BareLine {
    r#type: String,
    id: String,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    timestamp: String,
}

impl Entry {
    pub(crate) fn parse(raw: impl Into<Raw>) -> Result<Self, serde_json::Error> {
        let raw = raw.into();
        let (id, parent_id, timestamp, kind) =
            match serde_json::from_slice::<Line<'_>>(raw.as_bytes()) {
                Ok(line) => line.into_parts(),
                Err(_) => parts_of_unusual(&raw)?,
            };
        Ok(Self {
            id,
            parent_id,
            timestamp,
            kind,
            raw,
            message: OnceLock::new(),
        })
    }

    /// The same entry with the message that was just serialized into it.
    pub(super) fn with_message(self, message: AgentMessage) -> Self {
        Self {
            message: Arc::new(message).into(),
            ..self
        }
    }

    /// The value of `type`.
    pub fn type_name(&self) -> &str {
        match &self.kind {
            EntryKind::Message { .. } => "message",
            EntryKind::ThinkingLevelChange { .. } => "thinking_level_change",
            EntryKind::ModelChange { .. } => "model_change",
            EntryKind::Compaction { .. } => "compaction",
            EntryKind::BranchSummary => "branch_summary",
            EntryKind::Custom { .. } => "custom",
            EntryKind::CustomMessage { .. } => "custom_message",
            EntryKind::Label { .. } => "label",
            EntryKind::SessionInfo { .. } => "session_info",
            EntryKind::ContextEdit { .. } => "context_edit",
            EntryKind::Other { type_name } => type_name,
        }
    }

    /// What the entry says in the conversation; `None` for entries that say
    /// nothing there. Parsed once.
    pub fn message(&self) -> Result<Option<Arc<AgentMessage>>, SessionError> {
        if let Some(message) = self.message.get() {
            return Ok(Some(Arc::clone(message)));
        }
        let parsed = self
            .parse_message()
            .map_err(|source| SessionError::BadMessage {
                id: self.id.clone(),
                source,
            })?;
        Ok(parsed.map(|message| Arc::clone(self.message.get_or_init(|| Arc::new(message)))))
    }

    /// Whether it could be read again.
    pub(super) fn check_depth(&self) -> Result<(), SessionError> {
        match nesting::too_deep(&self.raw, Of::Line) {
            None => Ok(()),
            Some(reason) => Err(SessionError::BadEntry {
                what: format!("an entry of the type \"{}\"", self.type_name()),
                reason,
            }),
        }
    }

    /// So many bytes have to be parsed for [`Self::message`].
    pub(super) fn unparsed(&self) -> usize {
        match self.message.get() {
            Some(_) => 0,
            None => self.raw.as_bytes().len(),
        }
    }

    /// Whether a session that has this is worth a file. Every start of the agent
    /// appends a model and a thinking level, and extensions what they keep; a session
    /// that got no further would clutter the list, and be the one to continue.
    pub(super) fn starts_file(&self) -> bool {
        !matches!(
            self.kind,
            EntryKind::ThinkingLevelChange { .. }
                | EntryKind::ModelChange { .. }
                | EntryKind::Custom { .. }
                | EntryKind::CustomMessage { .. }
                | EntryKind::Label { .. }
                | EntryKind::SessionInfo { .. }
        )
    }

    /// Milliseconds since the epoch; 0 if the entry has no readable time.
    pub fn millis(&self) -> i64 {
        paths::millis(&self.timestamp)
    }

    fn parse_message(&self) -> Result<Option<AgentMessage>, serde_json::Error> {
        let message = match self.kind {
            // Newer originals keep the system prompt and the tools that they have told a
            // model; ours says what they are now.
            EntryKind::Message { ref role } if role == "system" => return Ok(None),
            // The role is known already. Serde would read all of the message into
            // values that know no type before it looked for it.
            EntryKind::Message { ref role } => {
                let read = match role.as_str() {
                    "user" => self.parse_body().map(AgentMessage::User),
                    "assistant" => self.parse_body().map(AgentMessage::Assistant),
                    "toolResult" => self.parse_body().map(AgentMessage::ToolResult),
                    _ => self.parse_body(),
                };
                read.or_else(|error| self.mended().ok_or(error))?
            }
            EntryKind::CustomMessage { .. } => {
                let message: CustomMessage = half_characters::from_line(&self.raw)?;
                AgentMessage::Custom(CustomMessage {
                    timestamp: self.millis(),
                    ..message
                })
            }
            EntryKind::BranchSummary => {
                let body: BranchBody = half_characters::from_line(&self.raw)?;
                if body.summary.is_empty() {
                    return Ok(None);
                }
                AgentMessage::BranchSummary(BranchSummaryMessage {
                    summary: body.summary,
                    from_id: body.from_id,
                    timestamp: self.millis(),
                })
            }
            EntryKind::Compaction { .. } => {
                let body: CompactionBody = half_characters::from_line(&self.raw)?;
                AgentMessage::CompactionSummary(CompactionSummaryMessage {
                    summary: body.summary,
                    tokens_before: body.tokens_before,
                    timestamp: self.millis(),
                })
            }
            EntryKind::ThinkingLevelChange { .. }
            | EntryKind::ModelChange { .. }
            | EntryKind::Custom { .. }
            | EntryKind::Label { .. }
            | EntryKind::SessionInfo { .. }
            | EntryKind::ContextEdit { .. }
            | EntryKind::Other { .. } => return Ok(None),
        };
        Ok(Some(message))
    }

    /// The message of somebody who wrote it in another way.
    fn mended(&self) -> Option<AgentMessage> {
        let mut message: Value = self.parse_body().ok()?;
        mend(&mut message);
        serde_json::from_value(message).ok()
    }

    fn parse_body<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let body: MessageBody<T> = half_characters::from_line(&self.raw)?;
        Ok(body.message)
    }
}

#[derive(Deserialize)]
struct MessageBody<T> {
    message: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BranchBody {
    summary: String,
    #[serde(default)]
    from_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompactionBody {
    summary: String,
    #[serde(default)]
    tokens_before: u64,
}

/// Id, parent, time and kind.
type Parts = (String, Option<String>, String, EntryKind);

fn parts_of_unusual(raw: &str) -> Result<Parts, serde_json::Error> {
    let mended = half_characters::mended(raw);
    if let Some(Ok(line)) = mended.as_deref().map(serde_json::from_str::<Line<'_>>) {
        return Ok(line.into_parts());
    }
    let line: BareLine = half_characters::from_line(raw)?;
    let kind = EntryKind::Other {
        type_name: line.r#type,
    };
    Ok((line.id, line.parent_id, line.timestamp, kind))
}

impl Line<'_> {
    fn into_parts(mut self) -> Parts {
        (
            self.id.to_string(),
            self.parent_id.take(),
            self.timestamp.to_string(),
            self.into_kind(),
        )
    }

    fn into_kind(self) -> EntryKind {
        let known = match &*self.r#type {
            "message" => self
                .message
                .map(|message| EntryKind::Message { role: message.role }),
            "thinking_level_change" => self
                .thinking_level
                .map(|level| EntryKind::ThinkingLevelChange { level }),
            "model_change" => self
                .provider
                .zip(self.model_id)
                .map(|(provider, model_id)| EntryKind::ModelChange { provider, model_id }),
            // Without it everything before the compaction is dropped from the
            // context; that is what the original does, too.
            "compaction" => Some(EntryKind::Compaction {
                first_kept_entry_id: self.first_kept_entry_id.unwrap_or_default(),
            }),
            "branch_summary" => Some(EntryKind::BranchSummary),
            "custom" => self
                .custom_type
                .map(|custom_type| EntryKind::Custom { custom_type }),
            "custom_message" => Some(EntryKind::CustomMessage {
                custom_type: self.custom_type.unwrap_or_default(),
            }),
            "label" => self.target_id.map(|target_id| EntryKind::Label {
                target_id,
                label: self.label.filter(|label| !label.is_empty()),
            }),
            "context_edit" => self
                .target_id
                .map(|target_id| EntryKind::ContextEdit { target_id }),
            "session_info" => Some(EntryKind::SessionInfo { name: self.name }),
            _ => None,
        };
        known.unwrap_or_else(|| EntryKind::Other {
            type_name: self.r#type.into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_keeps_its_line_and_its_place() {
        let raw =
            r#"{ "type":"mood", "weather":{"a":[1e2]}, "id":"b", "parentId":"a", "timestamp":"T"}"#;
        let entry = Entry::parse(raw).unwrap();
        assert_eq!(&*entry.raw, raw);
        assert_eq!(entry.parent_id.as_deref(), Some("a"));
        assert_eq!(
            entry.kind,
            EntryKind::Other {
                type_name: "mood".into()
            }
        );
        assert_eq!(entry.message().unwrap(), None);
    }

    #[test]
    fn a_known_type_with_members_of_the_wrong_kind_keeps_its_place() {
        for raw in [
            r#"{"type":"label","id":"b","parentId":"a","timestamp":"T","targetId":7}"#,
            r#"{"type":"label","id":"b","parentId":"a","timestamp":"T"}"#,
        ] {
            let entry = Entry::parse(raw).unwrap();
            assert_eq!(entry.parent_id.as_deref(), Some("a"));
            assert_eq!(
                entry.kind,
                EntryKind::Other {
                    type_name: "label".into()
                }
            );
        }
    }

    #[test]
    fn half_a_character_is_no_reason_to_lose_anything() {
        let raw = r#"{"type":"message","id":"b","parentId":"a","timestamp":"T","message":{"role":"user","content":"cut \ud83d","timestamp":0}}"#;
        let entry = Entry::parse(raw).unwrap();
        assert_eq!(&*entry.raw, raw);
        let message = entry.message().unwrap().unwrap();
        let shown = serde_json::to_value(&*message).unwrap();
        assert_eq!(shown["content"], "cut \u{fffd}");
        let raw = r#"{"type":"label","id":"b","parentId":"a","timestamp":"T","targetId":"a","label":"\ude00"}"#;
        let kind = EntryKind::Label {
            target_id: "a".into(),
            label: Some("\u{fffd}".into()),
        };
        assert_eq!(Entry::parse(raw).unwrap().kind, kind);
    }

    #[test]
    fn an_empty_label_is_none() {
        let raw =
            r#"{"type":"label","id":"b","parentId":"a","timestamp":"T","targetId":"a","label":""}"#;
        let kind = EntryKind::Label {
            target_id: "a".into(),
            label: None,
        };
        assert_eq!(Entry::parse(raw).unwrap().kind, kind);
    }

    #[test]
    fn a_message_that_cannot_be_read_is_an_error_that_names_its_entry() {
        let raw = r#"{"type":"message","id":"b","parentId":null,"timestamp":"T","message":{"role":"user","content":7,"timestamp":0}}"#;
        let entry = Entry::parse(raw).unwrap();
        assert_eq!(
            entry.kind,
            EntryKind::Message {
                role: "user".into()
            }
        );
        let sentence = entry.message().unwrap_err().to_string();
        assert!(
            sentence.starts_with("entry b holds a message that cannot be read ("),
            "{sentence}"
        );
    }

    #[test]
    fn a_line_without_an_id_is_no_entry() {
        for raw in [
            "[]",
            "7",
            "{}",
            r#"{"type":"label"}"#,
            r#"{"type":"label","id":7}"#,
        ] {
            assert!(Entry::parse(raw).is_err(), "{raw}");
        }
    }
}
