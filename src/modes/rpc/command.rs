//! The commands of the protocol, including those of older versions.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::images::{Attachment, Picture};
use pi_agent::permission::PermissionOption;
use pi_agent::queue::{Delivery, QueueMode};

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
        /// Images and documents as clients before 0.20 send them.
        #[serde(default)]
        attachments: Option<Vec<Attachment>>,
        /// Required while the agent works.
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
    /// The older form of `fork`, which takes the results of `get_branch_messages`.
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
        /// Id of an entry; only entries after it are returned.
        #[serde(default)]
        since: Option<String>,
    },
    GetTree,
    GetLastAssistantText,
    SetSessionName {
        name: String,
    },
    GetCommands,
    /// Not in the original. Identifies the client and its capabilities, and asks for others.
    Hello(Hello),
    /// Not in the original. Asks whether pi responds. The response comes at once, also while the
    /// agent works.
    Ping,
    /// Not in the original. Returns the events that a client has missed.
    GetEvents {
        /// The `seq` of the last event that the client has seen.
        since: u64,
    },
    /// Not in the original. Returns the time and memory that extensions use.
    GetExtensionStats {
        /// Measure the heap of each extension, too. No JavaScript runs meanwhile.
        #[serde(default)]
        measure_heap: bool,
    },
    /// Not in the original. Asks for a response when the session has settled.
    WaitForIdle,
    /// Not in the original. Loads extensions, settings and models from the disk again.
    Reload {
        /// Name of a quarantined extension that is loaded again.
        #[serde(default)]
        extension: Option<String>,
    },
    /// Not in the original. Asks the user anew whether the project is trusted.
    Trust,
    /// Not in the original. Answers a `permission_request`. pi sends no response to it.
    PermissionResponse {
        id: String,
        option: PermissionOption,
        /// The reason of the answer, which the model gets.
        #[serde(default)]
        reason: Option<String>,
    },
    ExtensionUiResponse {
        id: String,
        #[serde(default, deserialize_with = "dialog_text")]
        value: Option<String>,
        #[serde(default, deserialize_with = "dialog_flag")]
        confirmed: Option<bool>,
        #[serde(default, deserialize_with = "dialog_flag")]
        cancelled: Option<bool>,
    },
}

/// Reads the value of a dialog as text. Other types are converted instead of refused: the
/// extension waits for the answer, and no response tells the client of an error.
fn dialog_text<'de, D: Deserializer<'de>>(answer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(answer)? {
        Value::String(text) => Some(text),
        answer @ (Value::Number(_) | Value::Bool(_)) => Some(answer.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    })
}

/// Reads a value as a Boolean, by the rules of JavaScript.
fn dialog_flag<'de, D: Deserializer<'de>>(answer: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(answer)? {
        Value::Null => None,
        Value::Bool(truth) => Some(truth),
        Value::Number(number) => Some(number.as_f64() != Some(0.0)),
        Value::String(text) => Some(!text.is_empty()),
        Value::Array(_) | Value::Object(_) => Some(true),
    })
}

/// Every member is optional. Without any, the session is as it is without `hello`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Hello {
    /// The newest protocol version that the client speaks.
    pub protocol_version: Option<u32>,
    /// Name of the client, for the log.
    pub client: Option<String>,
    /// Capabilities that the client asks for, of those that the response lists as
    /// `capabilities`. Unknown names are missing in the response's `enabled`.
    pub capabilities: Option<Vec<String>>,
    /// The methods of `ctx.ui` that the client supports. If this is missing, extensions are
    /// not told which methods are unsupported.
    pub ui: Option<Vec<String>>,
}

/// When a command is executed that arrives while the session is still opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartupOrder {
    /// At once: responses to dialogs, and commands that need no session.
    Immediate,
    /// At once, and again for the earlier commands that wait.
    Abort,
    /// In the order of arrival, once the session is open.
    AfterOpen,
}

impl Command {
    pub fn startup_order(&self) -> StartupOrder {
        match self {
            Self::Abort => StartupOrder::Abort,
            Self::ExtensionUiResponse { .. }
            | Self::PermissionResponse { .. }
            | Self::Hello(_)
            | Self::Ping
            | Self::GetEvents { .. } => StartupOrder::Immediate,
            _ => StartupOrder::AfterOpen,
        }
    }
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

/// The names of all commands, for clients that check them before they send one. Older names
/// of the same commands are not listed.
pub const COMMANDS: [&str; 42] = [
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
    "trust",
];
