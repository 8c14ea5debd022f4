//! Serialization of entries: names and order of the members are those of the original, so that
//! a file does not show which program appended to it.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::message::AgentMessage;
use pi_ai::message::UserContent;

/// An entry without its position in the tree.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub(crate) enum Record<'a> {
    Message {
        message: &'a AgentMessage,
    },
    ThinkingLevelChange {
        thinking_level: &'a str,
    },
    ModelChange {
        provider: &'a str,
        model_id: &'a str,
    },
    Compaction {
        summary: &'a str,
        first_kept_entry_id: IdRef<'a>,
        tokens_before: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    },
    BranchSummary {
        from_id: IdRef<'a>,
        summary: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    },
    Custom {
        custom_type: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Value>,
    },
    CustomMessage {
        /// Type of the message; empty if it has none.
        #[serde(skip_serializing_if = "str::is_empty")]
        custom_type: &'a str,
        content: &'a UserContent,
        display: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<&'a Value>,
    },
    Label {
        target_id: IdRef<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<&'a str>,
    },
    SessionInfo {
        name: &'a str,
    },
}

/// The id of another entry in the form that its line has: both original programs compare with
/// `===`, for which `7` and `"7"` differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdRef<'a> {
    pub(crate) text: &'a str,
    pub(crate) is_number: bool,
}

impl<'a> From<&'a str> for IdRef<'a> {
    fn from(text: &'a str) -> Self {
        Self {
            text,
            is_number: false,
        }
    }
}

impl Serialize for IdRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.is_number.then_some(self.text);
        let integer = number.and_then(|text| text.parse::<i64>().ok());
        let number = number.and_then(|text| text.parse::<f64>().ok());
        match (integer, number) {
            (Some(integer), _) => serializer.serialize_i64(integer),
            (None, Some(number)) => serializer.serialize_f64(number),
            (None, None) => serializer.serialize_str(self.text),
        }
    }
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryPosition<'a> {
    pub(crate) id: &'a str,
    pub(crate) parent_id: Option<IdRef<'a>>,
    pub(crate) timestamp: &'a str,
}

#[derive(Serialize)]
struct PositionFirst<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    position: EntryPosition<'a>,
    #[serde(flatten)]
    record: Record<'a>,
}

#[derive(Serialize)]
struct PositionLast<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    record: Record<'a>,
    #[serde(flatten)]
    position: EntryPosition<'a>,
}

impl Record<'_> {
    fn type_name(&self) -> &'static str {
        match self {
            Self::Message { .. } => "message",
            Self::ThinkingLevelChange { .. } => "thinking_level_change",
            Self::ModelChange { .. } => "model_change",
            Self::Compaction { .. } => "compaction",
            Self::BranchSummary { .. } => "branch_summary",
            Self::Custom { .. } => "custom",
            Self::CustomMessage { .. } => "custom_message",
            Self::Label { .. } => "label",
            Self::SessionInfo { .. } => "session_info",
        }
    }

    /// Returns the line, without its line end.
    pub(crate) fn to_line(self, position: EntryPosition<'_>) -> String {
        let r#type = self.type_name();
        let line = match self {
            Self::Custom { .. } | Self::CustomMessage { .. } => {
                serde_json::to_string(&PositionLast {
                    r#type,
                    record: self,
                    position,
                })
            }
            _ => serde_json::to_string(&PositionFirst {
                r#type,
                position,
                record: self,
            }),
        };
        line.expect("all keys are strings, and nothing in here fails to serialize")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Expected lines were written by `JSON.stringify` in the original.
    #[test]
    fn members_have_the_order_of_the_original() {
        let position = EntryPosition {
            id: "0000000b",
            parent_id: Some("0000000a".into()),
            timestamp: "T",
        };
        let data = json!({ "z": 1, "a": [null, 1.5] });
        let lines = [
            (
                Record::ThinkingLevelChange {
                    thinking_level: "high",
                },
                r#"{"type":"thinking_level_change","id":"0000000b","parentId":"0000000a","timestamp":"T","thinkingLevel":"high"}"#,
            ),
            (
                Record::ModelChange {
                    provider: "p",
                    model_id: "m",
                },
                r#"{"type":"model_change","id":"0000000b","parentId":"0000000a","timestamp":"T","provider":"p","modelId":"m"}"#,
            ),
            (
                Record::Compaction {
                    summary: "s",
                    first_kept_entry_id: "f".into(),
                    tokens_before: 7,
                    details: Some(&data),
                    from_hook: Some(true),
                },
                r#"{"type":"compaction","id":"0000000b","parentId":"0000000a","timestamp":"T","summary":"s","firstKeptEntryId":"f","tokensBefore":7,"details":{"z":1,"a":[null,1.5]},"fromHook":true}"#,
            ),
            (
                Record::BranchSummary {
                    from_id: "root".into(),
                    summary: "s",
                    details: None,
                    from_hook: None,
                },
                r#"{"type":"branch_summary","id":"0000000b","parentId":"0000000a","timestamp":"T","fromId":"root","summary":"s"}"#,
            ),
            (
                Record::Custom {
                    custom_type: "c",
                    data: Some(&data),
                },
                r#"{"type":"custom","customType":"c","data":{"z":1,"a":[null,1.5]},"id":"0000000b","parentId":"0000000a","timestamp":"T"}"#,
            ),
            (
                Record::CustomMessage {
                    custom_type: "c",
                    content: &UserContent::Text("hi\n\u{2028}\u{7}".into()),
                    display: true,
                    details: None,
                },
                "{\"type\":\"custom_message\",\"customType\":\"c\",\"content\":\"hi\\n\u{2028}\\u0007\",\"display\":true,\"id\":\"0000000b\",\"parentId\":\"0000000a\",\"timestamp\":\"T\"}",
            ),
            (
                Record::Label {
                    target_id: "t".into(),
                    label: Some("l"),
                },
                r#"{"type":"label","id":"0000000b","parentId":"0000000a","timestamp":"T","targetId":"t","label":"l"}"#,
            ),
            (
                Record::Label {
                    target_id: "t".into(),
                    label: None,
                },
                r#"{"type":"label","id":"0000000b","parentId":"0000000a","timestamp":"T","targetId":"t"}"#,
            ),
            (
                Record::SessionInfo { name: "n" },
                r#"{"type":"session_info","id":"0000000b","parentId":"0000000a","timestamp":"T","name":"n"}"#,
            ),
        ];
        for (record, line) in lines {
            assert_eq!(record.to_line(position), line);
        }
    }

    #[test]
    fn a_first_entry_has_a_null_parent() {
        let position = EntryPosition {
            id: "a",
            parent_id: None,
            timestamp: "T",
        };
        assert_eq!(
            Record::SessionInfo { name: "" }.to_line(position),
            r#"{"type":"session_info","id":"a","parentId":null,"timestamp":"T","name":""}"#
        );
    }

    #[test]
    fn a_number_is_referred_to_by_a_number() {
        let number = |text| IdRef {
            text,
            is_number: true,
        };
        let position = EntryPosition {
            id: "b",
            parent_id: Some(number("7")),
            timestamp: "T",
        };
        let label = Record::Label {
            target_id: number("1.5"),
            label: None,
        };
        assert_eq!(
            label.to_line(position),
            r#"{"type":"label","id":"b","parentId":7,"timestamp":"T","targetId":1.5}"#
        );
    }
}
