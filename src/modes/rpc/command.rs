//! The commands of the protocol (behaviour.md §2.2).

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use crate::agent::queue::{Delivery, QueueMode};
use crate::ai::half_characters;
use crate::ai::message::ImageContent;

#[derive(Debug, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Command {
    Prompt {
        message: String,
        #[serde(default)]
        images: Option<Vec<ImageContent>>,
        #[serde(default)]
        streaming_behavior: Option<StreamingBehavior>,
    },
    Steer {
        message: String,
        #[serde(default)]
        images: Option<Vec<ImageContent>>,
    },
    FollowUp {
        message: String,
        #[serde(default)]
        images: Option<Vec<ImageContent>>,
    },
    Abort,
    NewSession {
        #[serde(default)]
        parent_session: Option<String>,
    },
    GetState,
    GetMessages,
    SetModel {
        provider: String,
        model_id: String,
    },
    CycleModel,
    GetAvailableModels,
    SetThinkingLevel {
        level: String,
    },
    CycleThinkingLevel,
    SetSteeringMode {
        mode: QueueMode,
    },
    SetFollowUpMode {
        mode: QueueMode,
    },
    Compact {
        #[serde(default)]
        custom_instructions: Option<String>,
    },
    SetAutoCompaction {
        enabled: bool,
    },
    SetAutoRetry {
        enabled: bool,
    },
    AbortRetry,
    Bash {
        command: String,
        #[serde(default)]
        exclude_from_context: bool,
    },
    AbortBash,
    GetSessionStats,
    ExportHtml {
        #[serde(default)]
        output_path: Option<PathBuf>,
    },
    SwitchSession {
        session_path: String,
    },
    Fork {
        entry_id: String,
    },
    Clone,
    GetForkMessages,
    GetEntries {
        #[serde(default)]
        since: Option<String>,
    },
    GetTree,
    GetLastAssistantText,
    SetSessionName {
        name: String,
    },
    GetCommands,
    /// Ours: what extensions cost.
    GetExtensionStats,
    /// Ours: answered when nothing is at work any more.
    WaitForIdle,
    /// Ours: extensions, settings and models as they are on the disk now.
    Reload {
        /// One that was set aside is let in again.
        #[serde(default)]
        extension: Option<String>,
    },
    ExtensionUiResponse {
        id: String,
        #[serde(default)]
        value: Option<String>,
        #[serde(default)]
        confirmed: Option<bool>,
        #[serde(default)]
        cancelled: bool,
    },
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamingBehavior {
    Steer,
    FollowUp,
}

impl From<StreamingBehavior> for Delivery {
    fn from(behavior: StreamingBehavior) -> Self {
        match behavior {
            StreamingBehavior::Steer => Self::Steer,
            StreamingBehavior::FollowUp => Self::FollowUp,
        }
    }
}

/// Why a line is no command.
#[derive(Debug, PartialEq, Eq)]
pub struct BadCommand {
    pub id: Option<Value>,
    /// The type it claims, `parse` if it has none.
    pub command: String,
    pub error: String,
}

/// The command, its type and its id.
pub fn parse(line: &[u8]) -> Result<(Command, String, Option<Value>), BadCommand> {
    let bad = |id, command: &str, error| BadCommand {
        id,
        command: command.to_string(),
        error,
    };
    let text = String::from_utf8_lossy(line);
    let value: Value = half_characters::from_str(&text)
        .map_err(|error| bad(None, "parse", format!("Failed to parse command: {error}")))?;
    let Value::Object(members) = &value else {
        let error = "Failed to parse command: a command is a JSON object".to_string();
        return Err(bad(None, "parse", error));
    };
    let id = members.get("id").filter(|id| !id.is_null()).cloned();
    let Some(name) = members.get("type").and_then(Value::as_str) else {
        let error = "Failed to parse command: the member \"type\" is missing".to_string();
        return Err(bad(id, "parse", error));
    };
    let name = name.to_string();
    // Unit variants take no other members.
    match serde_json::from_value(value) {
        Ok(command) => Ok((command, name, id)),
        Err(error) => {
            let error = error.to_string();
            let error = match error.starts_with("unknown variant") {
                true if error.contains(&format!("`{name}`")) => format!("Unknown command: {name}"),
                _ => format!("{name}: {error}"),
            };
            Err(bad(id, &name, error))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(line: &str) -> BadCommand {
        parse(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn bad_lines_are_told_what_is_wrong() {
        assert_eq!(error("").command, "parse");
        assert!(error("null").error.contains("JSON object"));
        assert_eq!(error(r#"{"type":"dance"}"#).error, "Unknown command: dance");
        let missing = error(r#"{"id":"7","type":"prompt"}"#);
        assert_eq!(missing.id, Some(json!("7")));
        assert!(missing.error.contains("message"), "{missing:?}");
    }

    #[test]
    fn half_a_character_is_replaced() {
        let line = br#"{"type":"prompt","id":1,"message":"cut \ud83d"}"#;
        let (command, _, _) = parse(line).unwrap();
        assert!(matches!(command, Command::Prompt { message, .. } if message == "cut \u{fffd}"));
    }

    #[test]
    fn commands_ignore_members_they_do_not_know() {
        let (command, name, id) = parse(br#"{"type":"get_state","id":1,"extra":true}"#).unwrap();
        assert!(matches!(command, Command::GetState));
        assert_eq!((name.as_str(), id), ("get_state", Some(json!(1))));
    }
}
