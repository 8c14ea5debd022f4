//! Why something that a mode asked for was not done: a sentence for people, and a
//! code for programs, which stays what it is when the sentence gets better.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::prompt::PromptError;
use crate::export::ExportError;
use crate::session::SessionError;

/// The `errorCode` of a response. Codes are added, never renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum ErrorCode {
    /// The line is no JSON object with a `type`.
    ParseError,
    /// The line is longer than any that is taken.
    LineTooLong,
    /// There is no such command.
    UnknownCommand,
    /// A member of the command is missing or wrong.
    InvalidCommand,
    /// The agent is at work, and this cannot be done meanwhile.
    Busy,
    /// Somebody ended it before it was done.
    Aborted,
    /// A command of an extension cannot be queued.
    NotQueueable,
    /// No model is chosen, or there is none.
    NoModel,
    /// There is no such model, or no key for it.
    ModelNotFound,
    /// Nothing to present to the model's provider, or it was refused.
    Auth,
    /// The model speaks an API that this version does not know.
    UnsupportedApi,
    /// There is nothing that this could be done with.
    NothingToDo,
    /// The model that was to write a summary failed.
    SummaryFailed,
    /// The session has no such entry, or none that this can be done with.
    InvalidEntry,
    /// A name that cannot be one.
    InvalidName,
    /// The file is not there, or is no session.
    SessionUnavailable,
    /// Another process writes to the session.
    SessionLocked,
    /// The events asked for are not kept any more, or never were.
    EventsGone,
    /// Everything else: the sentence says what.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: ErrorCode,
    pub text: String,
}

impl Refusal {
    pub fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self::new(ErrorCode::Failed, text)
    }
}

/// For those who only pass the sentence on.
impl From<Refusal> for String {
    fn from(refusal: Refusal) -> Self {
        refusal.text
    }
}

impl From<PromptError> for Refusal {
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

impl From<ExportError> for Refusal {
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

impl From<SessionError> for Refusal {
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
