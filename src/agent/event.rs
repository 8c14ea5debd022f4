//! The one type of what happens in a session. RPC, JSON mode, the terminal and
//! extensions see the same values; serialised, they are the wire format of
//! `docs/rpc.md`.

use std::fmt;
use std::sync::Arc;

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ai::message::AssistantMessage;
use crate::ai::model::ThinkingLevel;
use crate::ai::stream::{AssistantEvent, Partial};
use crate::compaction::Compacted;
use crate::session::Raw;
use crate::session::message::AgentMessage;
use crate::tools::tool::ToolOutput;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Event {
    AgentStart,
    /// The run's own messages, the prompt included.
    AgentEnd {
        messages: Vec<Arc<AgentMessage>>,
        /// The last request failed and is going to be made again. Handlers of extensions are
        /// called before that is decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        will_retry: Option<bool>,
    },
    TurnStart,
    TurnEnd {
        message: Arc<AgentMessage>,
        tool_results: Vec<Arc<AgentMessage>>,
    },
    MessageStart {
        message: Arc<AgentMessage>,
    },
    MessageUpdate(#[cfg_attr(test, schemars(with = "WrittenUpdate"))] MessageUpdate),
    MessageEnd {
        message: Arc<AgentMessage>,
    },
    ToolExecutionStart {
        tool_call_id: String,
        tool_name: String,
        args: Value,
    },
    ToolExecutionUpdate {
        tool_call_id: String,
        tool_name: String,
        args: Value,
        partial_result: ToolOutput,
    },
    ToolExecutionEnd {
        tool_call_id: String,
        tool_name: String,
        result: ToolOutput,
        is_error: bool,
        /// Milliseconds that the tool ran; not there if it did not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    QueueUpdate {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    /// The session has another name, or without `name` none.
    SessionInfoChanged {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    /// An extension has added an entry to the session. Messages have events of their own.
    EntryAppended {
        #[cfg_attr(test, schemars(with = "Entry"))]
        entry: WrittenEntry,
    },
    /// What a client's `bash` printed since the last one.
    BashExecutionUpdate {
        /// Of the command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        delta: String,
    },
    /// Nothing is left to do: no retry, no compaction, nothing that waits.
    AgentSettled {
        aborted: bool,
    },
    AutoRetryStart {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    AutoRetryEnd {
        success: bool,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        final_error: Option<String>,
    },
    CompactionStart {
        reason: CompactionReason,
    },
    CompactionEnd {
        reason: CompactionReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Compacted>,
        aborted: bool,
        /// The request that did not fit is made again.
        will_retry: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// The model that was to write a summary failed, and is asked again after a while.
    SummarizationRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    SummarizationRetryAttemptStart(SummarySource),
    /// With or without a summary: what comes of it is said by what wanted one.
    SummarizationRetryFinished,
    ExtensionError(ExtensionError),
    ExtensionWarning(ExtensionWarning),
    /// An extension has used up half of its time, and is waited for.
    ExtensionWaitStart(ExtensionWait),
    ExtensionWaitEnd(WaitEnd),
    ExtensionUiRequest(UiRequest),
}

/// An entry as it stands in the session file: JSON.
#[derive(Clone, Debug)]
pub struct WrittenEntry(pub Raw);

impl Serialize for WrittenEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        entry.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WrittenEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Value::deserialize(deserializer)?.to_string().into()))
    }
}

/// A line of the session file (docs/sessions.md); the other members depend on `type`.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = true))]
#[expect(dead_code, reason = "only its shape is of interest")]
pub struct Entry {
    r#type: String,
    id: String,
    parent_id: Nullable,
    timestamp: String,
}

/// `null` where there is none.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Nullable {
    Some(String),
    None,
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CompactionReason {
    /// Somebody asked for it.
    Manual,
    /// Little is left of the model's context.
    Threshold,
    /// The model refused, because nothing is left of it.
    Overflow,
}

/// What is being summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "source", rename_all = "camelCase")]
pub enum SummarySource {
    Compaction { reason: CompactionReason },
    BranchSummary,
}

/// Something an extension did wrong; the agent goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionError {
    /// The extension's file, `command:<name>` or `<runtime>`.
    pub extension_path: String,
    /// The event that was being handled, or `command`, `load`, `send_message`, …
    pub event: String,
    /// What was thrown: an error's message.
    pub error: String,
    #[serde(flatten)]
    pub details: ErrorDetails,
    /// Not on the wire: a report that is only a warning becomes an [`ExtensionWarning`].
    #[serde(skip)]
    pub severity: Severity,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Severity {
    /// Something does not work, or was lost.
    #[default]
    Error,
    /// Everything works, but the author should look at it.
    Warning,
}

/// Something that the author of an extension should look at, although everything works: a name
/// that is misspelt, a key that is built in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionWarning {
    /// The extension's file, or `<session>`.
    pub extension_path: String,
    /// The event that was being handled, or `load`, `register_provider`, …
    pub event: String,
    pub message: String,
    #[serde(flatten)]
    pub details: ErrorDetails,
}

impl From<ExtensionError> for Event {
    fn from(report: ExtensionError) -> Self {
        match report.severity {
            Severity::Error => Self::ExtensionError(report),
            Severity::Warning => Self::ExtensionWarning(ExtensionWarning {
                extension_path: report.extension_path,
                event: report.event,
                message: report.error,
                details: report.details,
            }),
        }
    }
}

impl From<ExtensionWarning> for ExtensionError {
    fn from(warning: ExtensionWarning) -> Self {
        Self {
            extension_path: warning.extension_path,
            event: warning.event,
            error: warning.message,
            details: warning.details,
            severity: Severity::Warning,
        }
    }
}

/// What can be found out about an error of an extension.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorDetails {
    /// As JavaScript writes it: class and message, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionName>,
    /// In the author's source, as far as source maps go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// The lines there, the one in question marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_frame: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExtensionName {
    /// Of its package, or its file's name without the extension.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Lines and columns count from 1, columns in UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Location {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl ExtensionError {
    pub fn new(
        path: impl Into<String>,
        event: impl Into<String>,
        error: impl Into<String>,
    ) -> Self {
        Self {
            extension_path: path.into(),
            event: event.into(),
            error: error.into(),
            details: ErrorDetails::default(),
            severity: Severity::Error,
        }
    }

    pub fn as_warning(self) -> Self {
        Self {
            severity: Severity::Warning,
            ..self
        }
    }

    /// The path of the extension's file, or `command:<name> of <extension>`.
    pub fn place_and_name(&self) -> String {
        let path = &self.extension_path;
        match &self.details.extension {
            Some(extension) if !path.contains('/') => format!("{path} of {}", extension.name),
            _ => path.clone(),
        }
    }

    /// What an extension's code has thrown.
    pub fn thrown(
        path: impl Into<String>,
        event: impl Into<String>,
        plain: String,
        stack: Option<String>,
    ) -> Self {
        let mut error = Self::new(path, event, plain);
        error.details.stack = stack;
        error
    }

    /// The same with the frame of a stack, if there is one, for what was not thrown.
    pub fn in_frame(mut self, frame: Option<String>) -> Self {
        let stack = frame.map(|frame| format!("{}\n{frame}", self.error));
        self.details.stack = self.details.stack.or(stack);
        self
    }

    /// All that is known of what was thrown, for people.
    pub fn whole(&self) -> &str {
        self.details.stack.as_deref().unwrap_or(&self.error)
    }
}

/// Who is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionWait {
    pub extension_path: String,
    /// The event that is being handled, or `load`, `command`, `tool:<name>`.
    pub event: String,
    pub elapsed_ms: u64,
    /// After so long the extension is left behind; the time in which it waits for the
    /// user is not counted.
    pub limit_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaitEnd {
    #[serde(flatten)]
    pub wait: ExtensionWait,
    pub outcome: WaitOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WaitOutcome {
    /// It answered, or threw.
    Settled,
    /// It had its time.
    Abandoned,
    /// The user did not want to wait any longer.
    Cancelled,
    /// Its isolate was stopped.
    Stopped,
}

/// A question or a message of an extension to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UiRequest {
    pub id: String,
    #[serde(flatten)]
    pub method: UiMethod,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    tag = "method",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum UiMethod {
    Select {
        title: String,
        options: Vec<String>,
        /// Milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    Confirm {
        title: String,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    Input {
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placeholder: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<u64>,
    },
    Editor {
        title: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefill: Option<String>,
    },
    Notify {
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notify_type: Option<String>,
    },
    SetStatus {
        status_key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status_text: Option<String>,
    },
    SetWidget {
        widget_key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        widget_lines: Option<Vec<String>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        widget_placement: Option<String>,
    },
    SetTitle {
        title: String,
    },
    #[serde(rename = "set_editor_text")]
    SetEditorText {
        text: String,
    },
}

impl UiMethod {
    /// As it is called in `ctx.ui`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Select { .. } => "select",
            Self::Confirm { .. } => "confirm",
            Self::Input { .. } => "input",
            Self::Editor { .. } => "editor",
            Self::Notify { .. } => "notify",
            Self::SetStatus { .. } => "setStatus",
            Self::SetWidget { .. } => "setWidget",
            Self::SetTitle { .. } => "setTitle",
            Self::SetEditorText { .. } => "setEditorText",
        }
    }

    /// What takes away again what this shows, if it stays until then. Who gave a terminal
    /// its title before is not known.
    pub fn taken_away(&self) -> Option<Self> {
        match self {
            Self::SetStatus { status_key, .. } => Some(Self::SetStatus {
                status_key: status_key.clone(),
                status_text: None,
            }),
            Self::SetWidget {
                widget_key,
                widget_placement,
                ..
            } => Some(Self::SetWidget {
                widget_key: widget_key.clone(),
                widget_lines: None,
                widget_placement: widget_placement.clone(),
            }),
            _ => None,
        }
    }

    /// Whether somebody waits for an answer.
    pub fn is_question(&self) -> bool {
        matches!(
            self,
            Self::Select { .. } | Self::Confirm { .. } | Self::Input { .. } | Self::Editor { .. }
        )
    }
}

/// What the user answered.
#[derive(Clone, Debug, PartialEq)]
pub enum UiAnswer {
    Value(String),
    Confirmed(bool),
    /// Escape, a timeout, an abort, or nobody there to ask.
    Cancelled,
}

/// `message_update`: the step, and the message so far. The wire repeats the
/// message as `message` and as `assistantMessageEvent.partial`; here it is held
/// once.
#[derive(Clone, Debug)]
pub struct MessageUpdate {
    pub message: Partial,
    pub event: AssistantEvent,
}

impl Serialize for MessageUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct WithPartial<'a> {
            #[serde(flatten)]
            step: Step<'a>,
            partial: &'a RawValue,
        }
        let message = serde_json::value::to_raw_value(&crate::ai::message::WithRole::of(
            &self.message.message(),
        ))
        .map_err(serde::ser::Error::custom)?;
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("message", &message)?;
        map.serialize_entry("usage", self.message.usage())?;
        map.serialize_entry(
            "assistantMessageEvent",
            &WithPartial {
                step: self.step(),
                partial: &message,
            },
        )?;
        map.end()
    }
}

/// A step of an answer, as it stands on the wire without the message so far.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step<'a> {
    #[serde(flatten)]
    event: &'a AssistantEvent,
    /// The id of the call, where a call begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

impl MessageUpdate {
    pub fn step(&self) -> Step<'_> {
        let call = match self.event {
            AssistantEvent::ToolCallStart { content_index } => self.message.call(content_index),
            _ => None,
        };
        Step {
            event: &self.event,
            id: call.map(|(id, _)| id),
            tool_name: call.map(|(_, name)| name),
        }
    }
}

/// As it may stand on the wire.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct WrittenUpdate {
    /// The answer so far; not there where a client asked for `deltaUpdates`.
    #[cfg_attr(
        test,
        schemars(with = "Option<WithRole>", skip_serializing_if = "Option::is_none")
    )]
    message: Option<AssistantMessage>,
    /// The tokens so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<crate::ai::message::Usage>"))]
    #[expect(dead_code, reason = "the message has it, too")]
    usage: Option<serde::de::IgnoredAny>,
    #[cfg_attr(test, schemars(with = "WrittenStep"))]
    assistant_message_event: AssistantEvent,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its shape is of interest")]
struct WrittenStep {
    #[serde(flatten)]
    event: AssistantEvent,
    /// The answer so far; not there where a client asked for `deltaUpdates`.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<WithRole>,
    /// Set for the call of a `toolcall_start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Set for the call of a `toolcall_start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(rename = "AnswerSoFar")]
#[expect(dead_code, reason = "only its shape is of interest")]
struct WithRole {
    #[schemars(extend("const" = "assistant"))]
    role: String,
    #[serde(flatten)]
    message: AssistantMessage,
}

impl<'de> Deserialize<'de> for MessageUpdate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WrittenUpdate::deserialize(deserializer)?;
        let message = written
            .message
            .ok_or_else(|| serde::de::Error::missing_field("message"))?;
        Ok(Self {
            message: Partial::new(&message),
            event: written.assistant_message_event,
        })
    }
}

impl Event {
    /// The `type` on the wire, which is also the name that `pi.on` takes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AgentStart => "agent_start",
            Self::AgentEnd { .. } => "agent_end",
            Self::TurnStart => "turn_start",
            Self::TurnEnd { .. } => "turn_end",
            Self::MessageStart { .. } => "message_start",
            Self::MessageUpdate(_) => "message_update",
            Self::MessageEnd { .. } => "message_end",
            Self::ToolExecutionStart { .. } => "tool_execution_start",
            Self::ToolExecutionUpdate { .. } => "tool_execution_update",
            Self::ToolExecutionEnd { .. } => "tool_execution_end",
            Self::QueueUpdate { .. } => "queue_update",
            Self::SessionInfoChanged { .. } => "session_info_changed",
            Self::ThinkingLevelChanged { .. } => "thinking_level_changed",
            Self::EntryAppended { .. } => "entry_appended",
            Self::BashExecutionUpdate { .. } => "bash_execution_update",
            Self::AgentSettled { .. } => "agent_settled",
            Self::AutoRetryStart { .. } => "auto_retry_start",
            Self::AutoRetryEnd { .. } => "auto_retry_end",
            Self::CompactionStart { .. } => "compaction_start",
            Self::CompactionEnd { .. } => "compaction_end",
            Self::SummarizationRetryScheduled { .. } => "summarization_retry_scheduled",
            Self::SummarizationRetryAttemptStart(_) => "summarization_retry_attempt_start",
            Self::SummarizationRetryFinished => "summarization_retry_finished",
            Self::ExtensionError(_) => "extension_error",
            Self::ExtensionWarning(_) => "extension_warning",
            Self::ExtensionWaitStart(_) => "extension_wait_start",
            Self::ExtensionWaitEnd(_) => "extension_wait_end",
            Self::ExtensionUiRequest(_) => "extension_ui_request",
        }
    }

    /// `true` if version 0.67 of the original has this event.
    pub fn is_known_to_067(&self) -> bool {
        match self {
            Self::AgentStart
            | Self::AgentEnd { .. }
            | Self::TurnStart
            | Self::TurnEnd { .. }
            | Self::MessageStart { .. }
            | Self::MessageUpdate(_)
            | Self::MessageEnd { .. }
            | Self::ToolExecutionStart { .. }
            | Self::ToolExecutionUpdate { .. }
            | Self::ToolExecutionEnd { .. }
            | Self::QueueUpdate { .. }
            | Self::AutoRetryStart { .. }
            | Self::AutoRetryEnd { .. }
            | Self::CompactionStart { .. }
            | Self::CompactionEnd { .. }
            | Self::ExtensionError(_)
            | Self::ExtensionUiRequest(_) => true,
            Self::SessionInfoChanged { .. }
            | Self::ThinkingLevelChanged { .. }
            | Self::EntryAppended { .. }
            | Self::BashExecutionUpdate { .. }
            | Self::AgentSettled { .. }
            | Self::SummarizationRetryScheduled { .. }
            | Self::SummarizationRetryAttemptStart(_)
            | Self::SummarizationRetryFinished
            | Self::ExtensionWarning(_)
            | Self::ExtensionWaitStart(_)
            | Self::ExtensionWaitEnd(_) => false,
        }
    }
}
