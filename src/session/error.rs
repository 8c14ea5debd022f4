//! Errors and warnings of sessions.

use std::io;
use std::path::{Path, PathBuf};

use crate::file::lock_holder::LockHolder;

/// Each message names the file and says what the user can do.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(
        "{path} is open in another pi{}, which writes to it now, and a session has one writer at \
         a time. Wait until it is idle, close it there, or continue in a copy: pi --fork {path}",
        named(.holder)
    )]
    Locked {
        path: PathBuf,
        /// The process that holds the lock, if the system reports it.
        holder: Option<LockHolder>,
    },
    #[error(
        "the session id {id} was taken by another pi{} just before, and a session has one writer \
         at a time. Use another id, or wait until that one has ended",
        named(.holder)
    )]
    IdReserved {
        id: String,
        holder: Option<LockHolder>,
    },
    #[error(
        "{path} is not a session file: its first line is not a session header. \
         It was left as it is; choose another file, or move this one away"
    )]
    NotASession { path: PathBuf },
    #[error(
        "{path} was written by another program after this session chose it. \
         Open it with pi --session {path}, or start a new session"
    )]
    Occupied { path: PathBuf },
    #[error(
        "{path} was deleted or replaced while the session was open, so nothing can be \
         stored there unless it comes back. Start a new session, or fork this one to keep its conversation"
    )]
    Vanished { path: PathBuf },
    #[error(
        "{path} was shortened while the session was open, so nothing more is stored there. Start a \
         new session, or fork this one to keep its conversation"
    )]
    Shortened { path: PathBuf },
    #[error("{path} is the file of this very session: export it under another name")]
    ExportOntoItself { path: PathBuf },
    #[error("{path} is another session: export under another name")]
    ExportOntoSession { path: PathBuf },
    #[error("\"{id}\" cannot be the id of a session: use letters, digits, dots and dashes")]
    BadId { id: String },
    #[error("{what} cannot be stored: {reason}")]
    BadEntry { what: String, reason: String },
    #[error("could not {action} {path}: {source}{}", advice(.source))]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("entry {id} is not in this session; list the entries to see the ids it has")]
    UnknownEntry { id: String },
    #[error("entry {id} holds a message that cannot be read ({source}); it was left as it is")]
    BadMessage {
        id: String,
        source: serde_json::Error,
    },
    #[error(
        "a {role} is not stored as a message: append it as an entry of its own \
         (compaction or branch summary)"
    )]
    NotAMessage { role: &'static str },
}

impl SessionError {
    pub(crate) fn io<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

fn named(holder: &Option<LockHolder>) -> String {
    holder
        .as_ref()
        .map_or_else(String::new, LockHolder::to_string)
}

/// Returns what the user can do about `error`, where its message does not make that plain.
fn advice(error: &io::Error) -> &'static str {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => ". Free some space on that disk",
        PermissionDenied | ReadOnlyFilesystem => {
            ". Make the file and its folder writable, or continue in a copy: pi --fork"
        }
        _ => "",
    }
}

/// A problem that was found while a session was opened. The session works; the user should
/// know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error(
        "{path}: the last line was cut off in the middle of a write (by a crash or a full disk). \
         Its {bytes} bytes were moved to {aside}; everything before it is here"
    )]
    TornTail {
        path: PathBuf,
        aside: PathBuf,
        bytes: usize,
    },
    #[error(
        "{path}: the last line was cut off in the middle of a write (by a crash or a full disk). \
         Its {bytes} bytes stay in the file, since they cannot be moved aside ({reason}); \
         everything before them is here"
    )]
    TornTailLeft {
        path: PathBuf,
        bytes: usize,
        reason: String,
    },
    #[error("{path}: added the missing newline at the end of the file; no data was lost")]
    MissingNewline { path: PathBuf },
    #[error(
        "{path}: {count} line(s) cannot be read and were skipped, the first is line {line}: \
         {reason}. They stay in the file"
    )]
    Malformed {
        path: PathBuf,
        count: usize,
        line: usize,
        reason: String,
    },
    #[error(
        "{path}: {count} line(s) are not in the form that pi writes, the first is line {line}: \
         {form}. They were read as far as they can be understood, and stay in the file as they are"
    )]
    UnusualForm {
        path: PathBuf,
        count: usize,
        line: usize,
        form: String,
    },
    #[error(
        "{path}: {count} entries hang on an entry that is missing, the first is {id}. \
         What came before them is not part of the conversation"
    )]
    Orphans {
        path: PathBuf,
        count: usize,
        id: String,
    },
    #[error("{path}: some bytes are not UTF-8 and are shown as \u{fffd}; the file keeps them")]
    InvalidUtf8 { path: PathBuf },
    #[error("{path}: the file as it was, with those bytes, is kept in {aside}")]
    KeptOriginal { path: PathBuf, aside: PathBuf },
    #[error("{path}: brought from session version {from} to {to}", to = super::CURRENT_VERSION)]
    Migrated { path: PathBuf, from: u64 },
    #[error(
        "{path}: written by a newer pi (session version {version}); what this one does not know \
         is kept and not shown"
    )]
    NewerVersion { path: PathBuf, version: u64 },
    #[error(
        "{path}: this file system has no locks ({reason}). \
         Do not open the session in two programs at once"
    )]
    NoLock { path: PathBuf, reason: String },
    #[error(
        "the session was cut off while a tool ran ({tools}): its result is missing, and the model \
         is told that the call was interrupted"
    )]
    Interrupted { tools: String },
    #[error("the message of entry {id} cannot be read and was left out: {reason}")]
    SkippedMessage { id: String, reason: String },
}
