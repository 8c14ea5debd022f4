//! The error type of this layer: a sentence for people, and a code for programs that stays the same
//! when the sentence improves.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::prompt::PromptError;
use pi_export::ExportError;
use pi_session::SessionError;

/// The `errorCode` of a response. Codes are added, never renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ErrorCode {
    /// The line is no JSON object with a `type`.
    ParseError,
    /// The line is longer than the limit.
    LineTooLong,
    /// No command has this name.
    UnknownCommand,
    /// A member of the command is missing or wrong.
    InvalidCommand,
    /// The command cannot be executed while a run is active.
    Busy,
    /// An abort ended the command.
    Aborted,
    /// A command of an extension cannot be queued.
    NotQueueable,
    /// No model is chosen or available.
    NoModel,
    /// The model does not exist, or no key for it does.
    ModelNotFound,
    /// The credentials of the model's provider are missing or were refused.
    Auth,
    /// No provider of the model's API is loaded.
    UnsupportedApi,
    /// The session has no data that the command could use.
    NothingToDo,
    /// The model that was to write a summary failed.
    SummaryFailed,
    /// The session has no such entry, or the command does not apply to it.
    InvalidEntry,
    /// The name or path is invalid.
    InvalidName,
    /// The session file is missing or is not a session.
    SessionUnavailable,
    /// Another process holds the session lock.
    SessionLocked,
    /// The requested events are not in the replay buffer any more, or never were.
    EventsGone,
    /// Any other error; the sentence describes it.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandError {
    pub code: ErrorCode,
    pub text: String,
}

impl CommandError {
    pub fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> Self {
        Self::new(ErrorCode::Failed, text)
    }
}

impl std::error::Error for CommandError {}

/// For callers that need the sentence only.
impl From<CommandError> for String {
    fn from(refusal: CommandError) -> Self {
        refusal.text
    }
}

impl From<PromptError> for CommandError {
    fn from(error: PromptError) -> Self {
        let code = match &error {
            PromptError::Session(error) => session_code(error),
            PromptError::Busy => ErrorCode::Busy,
            PromptError::Aborted => ErrorCode::Aborted,
            PromptError::NoModel(_) => ErrorCode::NoModel,
            PromptError::Auth(_) => ErrorCode::Auth,
            PromptError::UnknownApi { .. } => ErrorCode::UnsupportedApi,
            PromptError::CommandCannotWait(_) => ErrorCode::NotQueueable,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ExportError> for CommandError {
    fn from(error: ExportError) -> Self {
        let code = match &error {
            ExportError::InMemory | ExportError::Nothing => ErrorCode::NothingToDo,
            ExportError::NoFile(_) => ErrorCode::SessionUnavailable,
            ExportError::Ending => ErrorCode::Aborted,
            ExportError::OverSession(_) => ErrorCode::InvalidName,
            ExportError::Write { .. } | ExportError::Session(_) => ErrorCode::Failed,
        };
        Self::new(code, error.to_string())
    }
}

impl From<SessionError> for CommandError {
    fn from(error: SessionError) -> Self {
        Self::new(session_code(&error), error.to_string())
    }
}

fn session_code(error: &SessionError) -> ErrorCode {
    match error {
        SessionError::UnknownEntry { .. } | SessionError::BadMessage { .. } => {
            ErrorCode::InvalidEntry
        }
        SessionError::Locked { .. } | SessionError::IdReserved { .. } => ErrorCode::SessionLocked,
        SessionError::NotASession { .. }
        | SessionError::Occupied { .. }
        | SessionError::Vanished { .. }
        | SessionError::Shortened { .. } => ErrorCode::SessionUnavailable,
        SessionError::BadId { .. }
        | SessionError::ExportOntoItself { .. }
        | SessionError::ExportOntoSession { .. } => ErrorCode::InvalidName,
        SessionError::BadEntry { .. }
        | SessionError::Io { .. }
        | SessionError::NotAMessage { .. } => ErrorCode::Failed,
    }
}
