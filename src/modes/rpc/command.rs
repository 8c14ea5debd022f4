//! The commands of the protocol, of all its ages (behaviour.md §2.2, §2.6, §11.3).

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::pictures::{Attachment, Picture};
use crate::agent::queue::{Delivery, QueueMode};

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Command {
    Prompt {
        message: String,
        #[serde(default)]
        images: Option<Vec<Picture>>,
        /// As before 0.20.
        #[serde(default)]
        attachments: Option<Vec<Attachment>>,
        /// Needed while the agent works.
        #[serde(default)]
        streaming_behavior: Option<StreamingBehavior>,
    },
    #[serde(alias = "queue_message")]
    Steer {
        message: String,
        #[serde(default)]
        images: Option<Vec<Picture>>,
        #[serde(default)]
        attachments: Option<Vec<Attachment>>,
    },
    FollowUp {
        message: String,
        #[serde(default)]
        images: Option<Vec<Picture>>,
        #[serde(default)]
        attachments: Option<Vec<Attachment>>,
    },
    Abort,
    ClearQueue,
    #[serde(alias = "reset")]
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
    GetAvailableThinkingLevels,
    #[serde(alias = "set_queue_mode")]
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
        exclude_from_context: Option<bool>,
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
    /// `fork` as it was: by what `get_branch_messages` answers.
    Branch {
        #[serde(default)]
        entry_index: Option<usize>,
        #[serde(default)]
        entry_id: Option<String>,
    },
    Clone,
    GetForkMessages,
    GetBranchMessages,
    GetEntries {
        /// An entry's id: those after it.
        #[serde(default)]
        since: Option<String>,
    },
    GetTree,
    GetLastAssistantText,
    SetSessionName {
        name: String,
    },
    GetCommands,
    /// Ours: what the client is and can, and what it would like to have.
    Hello(Hello),
    /// Ours: answered at once, whatever goes on.
    Ping,
    /// Ours: what a client has missed.
    GetEvents {
        /// The `seq` of the last event that it has seen.
        since: u64,
    },
    /// Ours: what extensions cost.
    GetExtensionStats {
        /// Also what each of them holds. No JavaScript runs meanwhile.
        #[serde(default)]
        measure_heap: bool,
    },
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
        #[serde(default, deserialize_with = "text_of")]
        value: Option<String>,
        #[serde(default, deserialize_with = "truth_of")]
        confirmed: Option<bool>,
        #[serde(default, deserialize_with = "truth_of")]
        cancelled: Option<bool>,
    },
}

/// An answer to a question is one whatever it is made of: whoever asked waits for it, and
/// nobody else can tell the client that it is none.
fn text_of<'de, D: Deserializer<'de>>(answer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(answer)? {
        Value::String(text) => Some(text),
        answer @ (Value::Number(_) | Value::Bool(_)) => Some(answer.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    })
}

/// The same where it is yes or no, as JavaScript sees it.
fn truth_of<'de, D: Deserializer<'de>>(answer: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(answer)? {
        Value::Null => None,
        Value::Bool(truth) => Some(truth),
        Value::Number(number) => Some(number.as_f64() != Some(0.0)),
        Value::String(text) => Some(!text.is_empty()),
        Value::Array(_) | Value::Object(_) => Some(true),
    })
}

/// All may be left out: then the session is as it would be without the greeting.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Hello {
    /// The newest that the client speaks.
    pub protocol_version: Option<u32>,
    /// What it calls itself, for the log.
    pub client: Option<String>,
    /// What it would like to have of what the answer's `capabilities` lists. Names that
    /// are not known are left out of the answer's `enabled`.
    pub capabilities: Option<Vec<String>>,
    /// The methods of `ctx.ui` that it can show or ask. Without this extensions are
    /// told nothing of what it cannot.
    pub ui: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// All there are, for clients that want to know before they send one. Older names of
/// the same are not among them.
pub const COMMANDS: [&str; 41] = [
    "prompt",
    "steer",
    "follow_up",
    "abort",
    "clear_queue",
    "new_session",
    "get_state",
    "get_messages",
    "set_model",
    "cycle_model",
    "get_available_models",
    "set_thinking_level",
    "cycle_thinking_level",
    "get_available_thinking_levels",
    "set_steering_mode",
    "set_follow_up_mode",
    "compact",
    "set_auto_compaction",
    "set_auto_retry",
    "abort_retry",
    "bash",
    "abort_bash",
    "get_session_stats",
    "export_html",
    "switch_session",
    "fork",
    "branch",
    "clone",
    "get_fork_messages",
    "get_branch_messages",
    "get_entries",
    "get_tree",
    "get_last_assistant_text",
    "set_session_name",
    "get_commands",
    "hello",
    "ping",
    "get_events",
    "get_extension_stats",
    "wait_for_idle",
    "reload",
];
