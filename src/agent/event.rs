//! The event type of a session. RPC, JSON mode, the terminal and extensions receive the same
//! values; serialized, they are the wire format of `docs/rpc.md`.

use std::fmt;
use std::sync::Arc;

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::permission::PermissionRequest;
use pi_ai::message::AssistantMessage;
use pi_ai::model::ThinkingLevel;
use pi_ai::stream::{AssistantEvent, PartialMessage};
use pi_compaction::Compacted;
use pi_resources::trust::{Listed, TrustReason};
use pi_session::SharedText;
use pi_session::message::AgentMessage;
use pi_tools::tool::ToolOutput;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Event {
    AgentStart,
    /// Messages of this run, including the prompt.
    AgentEnd {
        messages: Vec<Arc<AgentMessage>>,
        /// Whether the last request failed and will be retried. Not set for handlers of
        /// extensions, which are called before that is decided.
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
    MessageUpdate(#[cfg_attr(feature = "schema", schemars(with = "WrittenUpdate"))] MessageUpdate),
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
        /// Milliseconds that the tool ran; absent if it did not run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    QueueUpdate {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    /// The session was renamed; `name` is absent if the name was removed.
    SessionInfoChanged {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    ThinkingLevelChanged {
        level: ThinkingLevel,
    },
    /// An extension has appended an entry to the session. Messages have their own events.
    EntryAppended {
        #[cfg_attr(feature = "schema", schemars(with = "Entry"))]
        entry: WrittenEntry,
    },
    /// Output of a client's `bash` since the last update.
    BashExecutionUpdate {
        /// The `id` of the `bash` command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        delta: String,
    },
    /// Everything has ended: no retry, compaction or queued message is pending.
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
        /// Whether the request that exceeded the context is made again.
        will_retry: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// The model failed to write a summary and will be asked again after a delay.
    SummarizationRetryScheduled {
        attempt: u32,
        max_attempts: u32,
        delay_ms: u64,
        error_message: String,
    },
    SummarizationRetryAttemptStart(SummarySource),
    /// The retries have ended, with or without a summary. The command or event that needed the
    /// summary reports the outcome.
    SummarizationRetryFinished,
    ExtensionError(ExtensionError),
    ExtensionWarning(ExtensionWarning),
    /// An extension has used half of its time limit, and pi waits for it.
    ExtensionWaitStart(ExtensionWait),
    ExtensionWaitEnd(WaitEnd),
    ExtensionUiRequest(UiRequest),
    /// A dialog has ended without an answer of the user: its time is over, or its extension or a
    /// reload has withdrawn it. Clients close it.
    ExtensionUiEnd(UiEnd),
    /// The next dialog asks whether the project is trusted.
    ProjectTrustRequest(ProjectTrustRequest),
    PermissionRequest(PermissionRequest),
    PermissionRequestEnd {
        /// The `id` of the request.
        id: String,
    },
}

/// The JSON of an entry as it is in the session file.
#[derive(Clone, Debug)]
pub struct WrittenEntry(pub SharedText);

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
#[cfg(feature = "schema")]
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

/// `null` if there is no value.
#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Nullable {
    Some(String),
    None,
}

/// The reason of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CompactionReason {
    /// The user, a client or an extension requested it.
    Manual,
    /// Little is left of the model's context.
    Threshold,
    /// The model refused a request that exceeded its context.
    Overflow,
}

/// The kind of summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "source", rename_all = "camelCase")]
pub enum SummarySource {
    Compaction { reason: CompactionReason },
    BranchSummary,
}

/// An error of an extension; the agent continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionError {
    /// Path of the file of the extension or the skill, `command:<name>` or `<runtime>`.
    pub extension_path: String,
    /// The event that was being handled, or `command`, `load`, `send_message`, …
    pub event: String,
    /// Message of the thrown error.
    pub error: String,
    #[serde(flatten)]
    pub details: ErrorDetails,
    /// Not on the wire: a warning is sent as [`ExtensionWarning`].
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

/// A diagnostic for the author of an extension that still works: a misspelt name, a key that is
/// built in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionWarning {
    /// Path of the extension's file, or `<session>`.
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

/// Details of an extension's error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorDetails {
    /// The stack as JavaScript writes it: class, message and positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extension: Option<ExtensionName>,
    /// Position in the author's source, as far as source maps are available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// The source lines around the position, with the line marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_frame: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtensionName {
    /// Name of the package, or of the file without its extension.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A source position. Lines and columns count from 1, columns in UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

    /// Returns the path of the extension's file, or `command:<name> of <extension>`.
    pub fn path_and_name(&self) -> String {
        let path = &self.extension_path;
        match &self.details.extension {
            Some(extension) if !path.contains('/') => format!("{path} of {}", extension.name),
            _ => path.clone(),
        }
    }

    /// Makes an error from a value that an extension's code threw.
    pub fn from_thrown(
        path: impl Into<String>,
        event: impl Into<String>,
        plain: String,
        stack: Option<String>,
    ) -> Self {
        let mut error = Self::new(path, event, plain);
        error.details.stack = stack;
        error
    }

    /// Adds the position of a stack frame, if there is one, to an error that was not thrown.
    pub fn with_frame(mut self, frame: Option<String>) -> Self {
        let stack = frame.map(|frame| format!("{}\n{frame}", self.error));
        self.details.stack = self.details.stack.or(stack);
        self
    }

    /// Returns the stack, or the message if there is none, for display.
    pub fn stack_or_message(&self) -> &str {
        self.details.stack.as_deref().unwrap_or(&self.error)
    }
}

/// The question whether a project is trusted, for programs. The dialog that follows has the same
/// `options`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProjectTrustRequest {
    pub cwd: String,
    pub reason: TrustReason,
    /// Files and packages of the project, the newest first; its changes, if it was trusted before.
    pub resources: Vec<Listed>,
    pub options: Vec<String>,
}

/// A slow extension that pi waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExtensionWait {
    pub extension_path: String,
    /// The event that is being handled, or `load`, `command`, `tool:<name>`.
    pub event: String,
    pub elapsed_ms: u64,
    /// Time limit in milliseconds after which pi continues without the extension. Time in which
    /// a dialog is open does not count.
    pub limit_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitEnd {
    #[serde(flatten)]
    pub wait: ExtensionWait,
    pub outcome: WaitOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WaitOutcome {
    /// The extension answered or threw.
    Settled,
    /// The time limit of the extension has passed.
    Abandoned,
    /// The user cancelled.
    Cancelled,
    /// The isolate of the extension was stopped.
    Stopped,
}

/// The end of a dialog, by the id of its request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UiEnd {
    pub id: String,
}

/// A dialog or a message of an extension for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UiRequest {
    pub id: String,
    #[serde(flatten)]
    pub method: UiMethod,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "method",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum UiMethod {
    Select {
        title: String,
        options: Vec<String>,
        /// Timeout in milliseconds.
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
    /// Returns the name of the method in `ctx.ui`.
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

    /// Returns the request that removes what this one shows, if it stays until removed. The
    /// previous title of a terminal is unknown, so a title is not removed.
    pub fn removal(&self) -> Option<Self> {
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

    /// Returns whether the extension waits for a response.
    pub fn is_dialog(&self) -> bool {
        matches!(
            self,
            Self::Select { .. } | Self::Confirm { .. } | Self::Input { .. } | Self::Editor { .. }
        )
    }
}

/// The response of the user to a dialog.
#[derive(Clone, Debug, PartialEq)]
pub enum UiAnswer {
    Value(String),
    Confirmed(bool),
    /// Dismissed with Escape, timed out, aborted, or there is no user.
    Cancelled,
}

/// A `message_update`: the step, and the message so far. The wire repeats the message as
/// `message` and as `assistantMessageEvent.partial`; here it is stored once.
#[derive(Clone, Debug)]
pub struct MessageUpdate {
    pub message: PartialMessage,
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
        let message = serde_json::value::to_raw_value(&pi_ai::message::WithRole::new(
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

/// A step of an answer as on the wire, without the message so far.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step<'a> {
    #[serde(flatten)]
    event: &'a AssistantEvent,
    /// Id of the tool call, if the step starts one.
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

/// A `message_update` in the forms that it has on the wire.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct WrittenUpdate {
    /// The answer so far; absent for clients with the capability `deltaUpdates`.
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<WithRole>", skip_serializing_if = "Option::is_none")
    )]
    message: Option<AssistantMessage>,
    /// Tokens used so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<pi_ai::message::Usage>"))]
    #[expect(dead_code, reason = "the message has it, too")]
    usage: Option<serde::de::IgnoredAny>,
    #[cfg_attr(feature = "schema", schemars(with = "WrittenStep"))]
    assistant_message_event: AssistantEvent,
}

#[cfg(feature = "schema")]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its shape is of interest")]
struct WrittenStep {
    #[serde(flatten)]
    event: AssistantEvent,
    /// The answer so far; absent for clients with the capability `deltaUpdates`.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<WithRole>,
    /// Set for the call of a `toolcall_start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Set for the call of a `toolcall_start`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
}

#[cfg(feature = "schema")]
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
            message: PartialMessage::new(&message),
            event: written.assistant_message_event,
        })
    }
}

impl Event {
    /// Returns the `type` on the wire, which is also the name that `pi.on` takes.
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
            Self::ExtensionUiEnd(_) => "extension_ui_end",
            Self::ProjectTrustRequest(_) => "project_trust_request",
            Self::PermissionRequest(_) => "permission_request",
            Self::PermissionRequestEnd { .. } => "permission_request_end",
        }
    }

    /// Returns whether version 0.67 of the original has this event.
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
            | Self::ExtensionUiRequest(_)
            // Clients get these two only if they have asked for them.
            | Self::PermissionRequest(_)
            | Self::PermissionRequestEnd { .. } => true,
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
            | Self::ExtensionWaitEnd(_)
            | Self::ExtensionUiEnd(_)
            | Self::ProjectTrustRequest(_) => false,
        }
    }
}
