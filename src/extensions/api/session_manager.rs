//! `SessionManager`: sessions that extensions open themselves, beside the current one. They
//! use the same store and format, and lock the file only during writes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::bridge::{BridgeResult, parse};
use pi_session::{
    NewSession, Session, SessionError, SessionInfo, UnlockedSession, context_json_from_lines,
    default_session_dir, list, list_all, migrate_lines, most_recent,
};

#[derive(Default)]
pub struct OpenSessions {
    held: Mutex<HashMap<u64, UnlockedSession>>,
    tokens: AtomicU64,
}

/// Arguments that name a session to open, or where to store a new one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionArgs {
    #[serde(default)]
    path: PathBuf,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    dir: Option<PathBuf>,
    #[serde(default)]
    agent_dir: PathBuf,
    /// Id of a new session.
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    parent_session: Option<PathBuf>,
    /// Working directory of the extensions.
    #[serde(default = "here")]
    here: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OpenSessionArgs {
    token: u64,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    since: usize,
    #[serde(default)]
    entry: Option<Box<RawValue>>,
    #[serde(default)]
    parent_session: Option<PathBuf>,
    #[serde(default)]
    path: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntriesArgs {
    lines: Vec<Box<RawValue>>,
    /// `null` stands for the position before the first entry.
    #[serde(default)]
    leaf_id: Option<String>,
    #[serde(default)]
    at_end: bool,
}

/// The working directory of the process, which follows the session; empty if the folder is
/// gone.
fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}

impl SessionArgs {
    /// Checks required members, which JavaScript may leave out.
    fn complete(self, method: &str) -> Result<Self, HostError> {
        let is_empty = |path: &Path| path.as_os_str().is_empty();
        let missing = match method {
            "sessions.open" | "sessions.fork" if is_empty(&self.path) => "path",
            "sessions.create" | "sessions.recent" | "sessions.fork" | "sessions.list"
                if self.cwd.as_deref().is_none_or(is_empty) =>
            {
                "cwd"
            }
            _ => return Ok(self),
        };
        Err(HostError {
            class: "TypeError",
            message: format!("SessionManager ({method}): the {missing} is missing"),
        })
    }

    fn cwd(&self) -> &Path {
        self.cwd.as_deref().unwrap_or(&self.here)
    }

    fn new_session(&self) -> NewSession {
        NewSession {
            id: self.id.clone(),
            parent_session: self.parent_session.clone(),
        }
    }

    /// Returns the folder of sessions: the given one, or the default of the working
    /// directory.
    fn dir(&self) -> PathBuf {
        let usual = || default_session_dir(&self.agent_dir, self.cwd());
        self.dir.clone().unwrap_or_else(usual)
    }
}

impl OpenSessions {
    pub fn insert(&self, session: UnlockedSession) -> u64 {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed) + 1;
        self.held.lock().insert(token, session);
        token
    }

    pub fn take(&self, token: u64) -> Result<UnlockedSession, HostError> {
        self.held.lock().remove(&token).ok_or_else(entered_error)
    }

    /// Serves methods whose result is JSON text and may be long; `None` for other methods.
    pub fn serve_json(&self, method: &str, args: &str) -> Option<Result<String, HostError>> {
        Some(match method {
            "sessions.since" => self.with_session(method, args, |session, of| {
                let path = session.path().map(Path::to_owned);
                let dir = session.dir().map(Path::to_owned).unwrap_or_default();
                let id = of.id.unwrap_or_default();
                let session = session.session();
                Ok(entries_since(session, path.as_deref(), &dir, &id, of.since))
            }),
            "sessions.context" => self.with_session(method, args, |session, _| {
                Ok(session.session().context_json())
            }),
            "sessions.contextOf" => parse::<EntriesArgs>(method, args).and_then(|args| {
                let lines: Vec<&str> = args.lines.iter().map(|line| line.get()).collect();
                let leaf = (!args.at_end).then_some(args.leaf_id.as_deref());
                context_json_from_lines(&lines, leaf).map_err(session_error)
            }),
            "sessions.migrate" => parse::<EntriesArgs>(method, args).map(|args| {
                let lines: Vec<&str> = args.lines.iter().map(|line| line.get()).collect();
                match migrate_lines(&lines) {
                    Some(migrated) => format!("[{}]", migrated.join(",")),
                    None => String::new(),
                }
            }),
            _ => return None,
        })
    }

    /// Serves methods with small results; `None` for other methods.
    pub fn serve(&self, method: &str, args: &str) -> Option<BridgeResult> {
        let made = |made: Result<UnlockedSession, SessionError>| {
            let session = made.map_err(session_error)?;
            Ok(json!({ "token": self.insert(session) }))
        };
        let make = || parse::<SessionArgs>(method, args).and_then(|args| args.complete(method));
        let nothing = |result: Result<(), SessionError>| result.map(|()| Value::Null);
        Some(match method {
            "sessions.create" => make().and_then(|args| {
                made(UnlockedSession::create(
                    &args.dir(),
                    args.cwd(),
                    args.new_session(),
                ))
            }),
            "sessions.memory" => make()
                .and_then(|args| made(UnlockedSession::in_memory(args.cwd(), args.new_session()))),
            "sessions.open" => make().and_then(|args| made(args.open(&args.path))),
            "sessions.recent" => make().and_then(|args| made(args.recent())),
            "sessions.fork" => make().and_then(|args| {
                made(UnlockedSession::fork_file(
                    &args.path,
                    &args.dir(),
                    args.cwd(),
                    args.id.clone(),
                ))
            }),
            "sessions.append" => self.with_session(method, args, |session, of| {
                let entry = entry_arg(&of)?;
                let stored = session.write(|session| session.append_external(entry.get()))?;
                Ok(json!(stored.id))
            }),
            "sessions.leaf" => self.with_session(method, args, |session, of| {
                nothing(session.session().set_leaf(of.id.as_deref()))
            }),
            "sessions.summarize" => self.with_session(method, args, |session, of| {
                let entry = entry_arg(&of)?;
                let stored = session.write(|session| {
                    let before = session.leaf_id().map(str::to_owned);
                    session.set_leaf(of.id.as_deref())?;
                    let stored = session.append_external(entry.get());
                    if stored.is_err() {
                        session.set_leaf(before.as_deref())?;
                    }
                    stored
                })?;
                Ok(json!(stored.id))
            }),
            "sessions.branchOff" => self.with_session(method, args, |session, of| {
                nothing(session.branch_off(&of.id.unwrap_or_default()))
            }),
            "sessions.begin" => self.with_session(method, args, |session, of| {
                nothing(session.begin(NewSession {
                    id: of.id,
                    parent_session: of.parent_session,
                }))
            }),
            "sessions.reopen" => self.with_session(method, args, |session, of| {
                let path = of.path.unwrap_or_default();
                let dir = session.dir().map(Path::to_owned);
                let cwd = session.session().cwd().to_owned();
                let (other, _) = UnlockedSession::open(&path, dir.as_deref(), Some(&cwd), &cwd)?;
                *session = other;
                Ok(Value::Null)
            }),
            "sessions.close" => parse::<OpenSessionArgs>(method, args).map(|of| {
                self.held.lock().remove(&of.token);
                Value::Null
            }),
            _ => return None,
        })
    }

    fn with_session<T>(
        &self,
        method: &str,
        args: &str,
        work: impl FnOnce(&mut UnlockedSession, OpenSessionArgs) -> Result<T, SessionError>,
    ) -> Result<T, HostError> {
        let of: OpenSessionArgs = parse(method, args)?;
        let mut held = self.held.lock();
        let session = held.get_mut(&of.token).ok_or_else(entered_error)?;
        work(session, of).map_err(session_error)
    }
}

impl SessionArgs {
    fn open(&self, path: &Path) -> Result<UnlockedSession, SessionError> {
        let opened =
            UnlockedSession::open(path, self.dir.as_deref(), self.cwd.as_deref(), &self.here);
        let (session, warnings) = opened?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        Ok(session)
    }

    fn recent(&self) -> Result<UnlockedSession, SessionError> {
        match most_recent(&self.dir())? {
            Some(path) => self.open(&path),
            None => UnlockedSession::create(&self.dir(), self.cwd(), NewSession::default()),
        }
    }
}

/// Serves `SessionManager.list` and `listAll`.
pub async fn list_sessions(method: &str, args: &str) -> BridgeResult {
    let args = parse::<SessionArgs>(method, args)?.complete(method)?;
    let all = method == "sessions.listAll";
    let found = tokio::task::spawn_blocking(move || match all {
        true => list_all(&args.agent_dir.join("sessions")),
        false => list(&args.dir()),
    });
    let found = found
        .await
        .map_err(|error| HostError::new(error.to_string()))?;
    let found = found.map_err(session_error)?;
    Ok(found.into_iter().map(describe).collect())
}

/// Returns the members in the original's order.
fn describe(info: SessionInfo) -> Value {
    let parent = info.parent_session.as_ref();
    let mut value = json!({
        "path": info.path.to_string_lossy(),
        "id": info.id,
        "cwd": info.cwd.to_string_lossy(),
        "name": info.name,
        "parentSessionPath": parent.map(|parent| parent.to_string_lossy()),
        "created": info.created,
        "modified": info.modified,
        "messageCount": info.message_count,
        "firstMessage": info.first_message,
        "allMessagesText": info.all_messages_text,
    });
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    value
}

/// Returns JSON of `NewEntries` in `js/modules/pi-coding-agent/session-manager/view.ts`.
pub fn entries_since(
    session: &Session,
    path: Option<&Path>,
    dir: &Path,
    id: &str,
    since: usize,
) -> String {
    let entries = session.entries();
    let since = match session.id() == id {
        true => since.min(entries.len()),
        false => 0,
    };
    // The entries are JSON already.
    let lines: Vec<_> = entries[since..]
        .iter()
        .map(|entry| entry.wire_json())
        .collect();
    let text = |path: &Path| json!(path.to_string_lossy()).to_string();
    format!(
        "{{\"id\":{},\"cwd\":{},\"dir\":{},\"file\":{},\"header\":{},\"leafId\":{},\
         \"entries\":[{}]}}",
        json!(session.id()),
        text(session.cwd()),
        text(dir),
        path.map_or_else(|| "null".to_string(), text),
        session.header().raw,
        json!(session.leaf_id()),
        lines.join(",")
    )
}

fn entry_arg(of: &OpenSessionArgs) -> Result<&RawValue, SessionError> {
    of.entry.as_deref().ok_or_else(|| SessionError::BadEntry {
        what: "the entry".into(),
        reason: "it is missing".into(),
    })
}

fn session_error(error: SessionError) -> HostError {
    let text = error.to_string();
    HostError::new(match error {
        SessionError::Locked { .. } => format!(
            "{text}. If it is the session of this pi: pi.sendMessage(), pi.appendEntry(), \
             pi.setLabel() and pi.setSessionName() write to it"
        ),
        _ => text,
    })
}

fn entered_error() -> HostError {
    HostError::new("This SessionManager is not usable any more: its session was entered")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_members_are_named() {
        let sessions = OpenSessions::default();
        for (method, args, missing) in [
            ("sessions.open", json!({}), "path"),
            ("sessions.open", json!({ "path": "" }), "path"),
            ("sessions.create", json!({}), "cwd"),
            ("sessions.fork", json!({ "path": "/x" }), "cwd"),
        ] {
            let error = sessions
                .serve(method, &args.to_string())
                .unwrap()
                .unwrap_err();
            assert_eq!(error.class, "TypeError");
            assert!(error.message.contains(missing), "{error}");
        }
        let entered_error = sessions.serve("sessions.leaf", r#"{"token":7}"#).unwrap();
        assert!(
            entered_error
                .unwrap_err()
                .message
                .contains("not usable any more")
        );
        assert!(sessions.serve("other", "{}").is_none());
    }
}
