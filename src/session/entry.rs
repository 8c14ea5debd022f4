//! One line of a session file. Reading it takes only what the tree needs; the message is parsed
//! on first use, so that long sessions open fast.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde::de::{DeserializeOwned, Error};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::SessionError;
use crate::format::entry_writer::IdRef;
use crate::format::json_line;
use crate::format::members::{Members, Scalar};
use crate::format::shared_text::SharedText;
use crate::message::{
    self, AgentMessage, BranchSummaryMessage, CompactionSummaryMessage, CustomMessage,
};
use crate::paths;
pub use pi_ai::json::depth::{self, Origin};
use pi_ai::json::lenient::{number, text};
use pi_ai::json::surrogates;

#[derive(Debug)]
pub struct Entry {
    pub id: String,
    pub parent_id: Option<String>,
    /// Time of the entry in ISO 8601.
    pub timestamp: String,
    pub kind: EntryKind,
    /// The exact line, without its line end.
    pub raw: SharedText,
    id_form: IdForm,
    /// True if `raw` has an id or the time in another form than these fields, e.g. a number.
    is_unusual: bool,
    message: OnceLock<Arc<AgentMessage>>,
}

/// The form of the id in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdForm {
    Text,
    Number,
    /// The line has no id, so [`Entry::assign_position`] assigns one. `is_chained`: the line has
    /// no parent either and follows the line before it, as in version 1.
    Missing {
        is_chained: bool,
    },
}

/// The content of an entry, as far as it is known without parsing the whole line.
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
    /// Changes or removes the message of another entry in the context.
    ContextEdit {
        target_id: String,
    },
    /// An unknown type, or an entry without the members that its type needs. It stays in the
    /// tree and has no other effect.
    Other {
        type_name: String,
    },
}

impl Entry {
    pub fn parse(raw: impl Into<SharedText>) -> Result<Self, serde_json::Error> {
        Self::read(raw).map(|(entry, _)| entry)
    }

    /// Like [`Self::parse`]; also returns a description of the first member that is not in the
    /// form that pi writes.
    pub(crate) fn read(
        raw: impl Into<SharedText>,
    ) -> Result<(Self, Option<String>), serde_json::Error> {
        let raw = raw.into();
        let members = Members::read(raw.as_bytes())?;
        let unusual = members.unusual_in_entry();
        let refers_to_number = [&members.target_id, &members.first_kept_entry_id]
            .into_iter()
            .any(|id| matches!(id, Scalar::Number(_)));
        let timestamp = members.time();
        let id_form = match &members.id {
            Scalar::Number(_) => IdForm::Number,
            Scalar::Text(id) if !id.is_empty() => IdForm::Text,
            _ => IdForm::Missing {
                is_chained: members.parent_id == Scalar::Missing,
            },
        };
        let id = members.id.clone().into_id().unwrap_or_default();
        let parent_id = members.parent_id.clone().into_id();
        let parent_id = parent_id.filter(|parent| !parent.is_empty());
        let kind = kind(members);
        if id.is_empty() && matches!(kind, EntryKind::Other { .. }) {
            return Err(serde_json::Error::custom(
                "it has no id and is of no type that pi knows",
            ));
        }
        let entry = Self {
            id,
            parent_id,
            timestamp,
            kind,
            raw,
            id_form,
            is_unusual: unusual.is_some() || refers_to_number,
            message: OnceLock::new(),
        };
        Ok((entry, unusual))
    }

    /// Assigns an id to a line without one. The id depends only on the line and its parent, so
    /// that it is the same each time the file is read. `previous` is the id of the entry before
    /// it.
    pub(crate) fn assign_position(&mut self, previous: Option<&str>) {
        let IdForm::Missing { is_chained } = self.id_form else {
            return;
        };
        if is_chained {
            self.parent_id = previous.map(str::to_owned);
        }
        let mut digest = Sha256::new();
        digest.update(self.parent_id.as_deref().unwrap_or_default());
        digest.update([0]);
        digest.update(self.raw.as_bytes());
        let bytes = digest.finalize();
        self.id = bytes[..8]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
    }

    /// Returns whether the line has no id.
    pub(crate) fn lacks_id(&self) -> bool {
        matches!(self.id_form, IdForm::Missing { .. })
    }

    /// Returns the id in the form that other lines must use to refer to this entry, so that
    /// every program finds it.
    pub(crate) fn id_ref(&self) -> IdRef<'_> {
        IdRef {
            text: &self.id,
            is_number: self.id_form == IdForm::Number,
        }
    }

    /// Returns the line for clients and extensions: ids and the time are strings.
    pub fn wire_json(&self) -> Cow<'_, str> {
        match self.is_unusual {
            true => Cow::Owned(json_line::with_normal_members(self)),
            false => Cow::Borrowed(&self.raw),
        }
    }

    /// Returns the entry with `message` as its parsed message, which saves parsing what was
    /// just serialized.
    pub(crate) fn with_message(self, message: AgentMessage) -> Self {
        Self {
            message: Arc::new(message).into(),
            ..self
        }
    }

    /// Returns the value of `type`.
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

    /// Returns the message of the entry; `None` for entries without one. The message is parsed
    /// once.
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

    /// Fails if the line is nested too deeply to be read again.
    pub(crate) fn check_depth(&self) -> Result<(), SessionError> {
        match depth::depth_problem(&self.raw, Origin::SessionLine) {
            None => Ok(()),
            Some(reason) => Err(SessionError::BadEntry {
                what: format!("an entry of the type \"{}\"", self.type_name()),
                reason,
            }),
        }
    }

    /// Number of bytes that [`Self::message`] still has to parse.
    pub(crate) fn unparsed(&self) -> usize {
        match self.message.get() {
            Some(_) => 0,
            None => self.raw.as_bytes().len(),
        }
    }

    /// Returns whether the entry justifies creating the session file. Each start of the agent
    /// appends a model and a thinking level, and extensions append their state; a file with no
    /// more than that would clutter the list and be picked by `--continue`.
    pub(crate) fn justifies_file(&self) -> bool {
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

    /// Time of the entry in milliseconds since the epoch; 0 if it has no readable time.
    pub fn millis(&self) -> i64 {
        paths::millis(&self.timestamp)
    }

    fn parse_message(&self) -> Result<Option<AgentMessage>, serde_json::Error> {
        let message = match self.kind {
            // Newer versions of the original store the system prompt and the tools that a model
            // received; pi computes the current ones.
            EntryKind::Message { ref role } if role == "system" => return Ok(None),
            // The role is known already. Serde would buffer the whole message as untyped values
            // to find it.
            EntryKind::Message { ref role } => {
                let read = match role.as_str() {
                    "user" => self.parse_body().map(AgentMessage::User),
                    "assistant" => self.parse_body().map(AgentMessage::Assistant),
                    "toolResult" => self.parse_body().map(AgentMessage::ToolResult),
                    _ => self.parse_body(),
                };
                read.or_else(|error| self.normalized().ok_or(error))?
            }
            EntryKind::CustomMessage { .. } => {
                let read = surrogates::from_session_line::<CustomMessage>(&self.raw);
                let message = read.or_else(|error| {
                    let normalized = self.value().and_then(message::normalized_custom);
                    normalized.ok_or(error)
                })?;
                AgentMessage::Custom(CustomMessage {
                    timestamp: self.millis(),
                    ..message
                })
            }
            EntryKind::BranchSummary => {
                let body: BranchBody = self.body()?;
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
                let body: CompactionBody = self.body()?;
                AgentMessage::CompactionSummary(CompactionSummaryMessage {
                    summary: body.summary,
                    tokens_before: body.tokens_before.unwrap_or_default() as u64,
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

    /// Reads the message of a program that writes another form of it.
    fn normalized(&self) -> Option<AgentMessage> {
        let message = self.value()?.as_object_mut()?.remove("message")?;
        message::normalized(message)
    }

    fn parse_body<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let body: MessageBody<T> = surrogates::from_session_line(&self.raw)?;
        Ok(body.message)
    }

    /// Deserializes the members of the line itself. Of two members with the same name the last
    /// one is used.
    fn body<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        surrogates::from_session_line(&self.raw)
            .or_else(|error| self.value().map_or(Err(error), serde_json::from_value))
    }

    fn value(&self) -> Option<Value> {
        surrogates::from_session_line(&self.raw).ok()
    }
}

#[derive(Deserialize)]
struct MessageBody<T> {
    message: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BranchBody {
    #[serde(default, deserialize_with = "text")]
    summary: String,
    #[serde(default, deserialize_with = "text")]
    from_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CompactionBody {
    #[serde(default, deserialize_with = "text")]
    summary: String,
    #[serde(default, deserialize_with = "number")]
    tokens_before: Option<f64>,
}

fn kind(line: Members<'_>) -> EntryKind {
    let Some(r#type) = line.r#type.into_id() else {
        return EntryKind::Other {
            type_name: String::new(),
        };
    };
    let known = match r#type.as_str() {
        "message" => line
            .message
            .role
            .into_text()
            .map(|role| EntryKind::Message { role }),
        "thinking_level_change" => line
            .thinking_level
            .into_text()
            .map(|level| EntryKind::ThinkingLevelChange { level }),
        "model_change" => (line.provider.into_text())
            .zip(line.model_id.into_text())
            .map(|(provider, model_id)| EntryKind::ModelChange { provider, model_id }),
        // Without this member everything before the compaction is dropped from the context, as
        // in the original.
        "compaction" => Some(EntryKind::Compaction {
            first_kept_entry_id: line.first_kept_entry_id.into_id().unwrap_or_default(),
        }),
        "branch_summary" => Some(EntryKind::BranchSummary),
        "custom" => line
            .custom_type
            .into_id()
            .map(|custom_type| EntryKind::Custom { custom_type }),
        "custom_message" => Some(EntryKind::CustomMessage {
            custom_type: line.custom_type.into_id().unwrap_or_default(),
        }),
        "label" => line.target_id.into_id().map(|target_id| EntryKind::Label {
            target_id,
            label: line.label.into_id().filter(|label| !label.is_empty()),
        }),
        "context_edit" => line
            .target_id
            .into_id()
            .map(|target_id| EntryKind::ContextEdit { target_id }),
        "session_info" => Some(EntryKind::SessionInfo {
            name: line.name.into_id(),
        }),
        _ => None,
    };
    known.unwrap_or(EntryKind::Other { type_name: r#type })
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
            r#"{"type":"label","id":"b","parentId":"a","timestamp":"T","targetId":{}}"#,
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
    fn lone_surrogate_does_not_lose_the_entry() {
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
    fn unreadable_message_is_an_error_that_names_its_entry() {
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
    fn line_without_type_and_id_is_not_an_entry() {
        for raw in [
            "[]",
            "7",
            "{}",
            r#"{"type":"label"}"#,
            r#"{"type":"checkpoint","id":null}"#,
            r#"{"type":7}"#,
        ] {
            assert!(Entry::parse(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn ids_that_are_numbers_are_shown_as_texts_and_kept() {
        let raw = r#"{"type":"label","id":2,"parentId":1.0,"timestamp":1700000000007,"targetId":1,"x":1.0}"#;
        let (entry, unusual) = Entry::read(raw).unwrap();
        assert_eq!(unusual.as_deref(), Some("`id` is a number"));
        assert_eq!(
            (entry.id.as_str(), entry.parent_id.as_deref()),
            ("2", Some("1"))
        );
        assert_eq!(entry.millis(), 1_700_000_000_007);
        assert_eq!(&*entry.raw, raw);
        assert_eq!(
            entry.wire_json(),
            r#"{"type":"label","id":"2","parentId":"1","timestamp":"2023-11-14T22:13:20.007Z","targetId":"1","x":1.0}"#
        );
    }

    #[test]
    fn a_message_without_an_id_gets_the_same_one_each_time() {
        let raw = r#"{"type":"message","message":{"role":"user","content":"a","timestamp":1}}"#;
        let placed = |previous| {
            let mut entry = Entry::parse(raw).unwrap();
            entry.assign_position(previous);
            (entry.id, entry.parent_id)
        };
        assert_eq!(placed(Some("p")), placed(Some("p")));
        assert_eq!(placed(Some("p")).1.as_deref(), Some("p"));
        assert_ne!(placed(Some("p")).0, placed(None).0);
    }
}
