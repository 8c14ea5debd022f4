//! Sessions that come from the one that is open: forks, clones, exports; and those
//! that are taken in, or made by extensions.

use std::path::{Path, PathBuf};

use chrono::{SecondsFormat, Utc};
use serde_json::json;

use super::AgentSession;
use super::left::Next;
use super::refusal::{ErrorCode, Refusal};
use super::run::object;
use crate::agent::AgentMessage;
use crate::resources::paths::expand_tilde;
use crate::session::{NewSession, Session, SessionInfo, UnlockedSession};

/// How much of the conversation a fork takes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPosition {
    /// What was said before a message of the user.
    Before,
    /// Everything up to an entry, and the entry.
    At,
}

impl ForkPosition {
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "before" => Some(Self::Before),
            "at" => Some(Self::At),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::At => "at",
        }
    }
}

/// The session that is open now is a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forked {
    /// Of the message before which it was forked.
    pub text: Option<String>,
}

impl AgentSession {
    /// `None` if an extension vetoed.
    pub async fn fork(
        &self,
        entry: &str,
        position: ForkPosition,
    ) -> Result<Option<Forked>, Refusal> {
        let _one = self.replacing.lock().await;
        let invalid = || Refusal::new(ErrorCode::InvalidEntry, "Invalid entry ID for forking");
        let (text, leaf, is_end) = {
            let state = self.state.lock();
            let entry = state.session.entry(entry).ok_or_else(invalid)?;
            let is_end = state.session.leaf_id() == Some(&entry.id) && position == ForkPosition::At;
            let (text, leaf) = match position {
                ForkPosition::At => (None, Some(entry.id.clone())),
                ForkPosition::Before => {
                    let message = entry.message().ok().flatten().ok_or_else(invalid)?;
                    let AgentMessage::User(user) = &*message else {
                        return Err(invalid());
                    };
                    (Some(user.content.text()), entry.parent_id.clone())
                }
            };
            (text, leaf, is_end)
        };
        let event = object(json!({ "entryId": entry, "position": position.name() }));
        if self.is_vetoed("session_before_fork", event).await {
            return Ok(None);
        }
        let dir = self.session_dir(&self.cwd()).unwrap_or_default();
        // What ends with the run, or was kept back for its end, belongs to the branch.
        drop(self.take_over().await);
        let session = {
            let state = self.state.lock();
            let leaf = match is_end {
                true => state.session.leaf_id(),
                false => leaf.as_deref(),
            };
            state.session.fork_to(leaf, &dir)?
        };
        self.replace(session, "fork").await;
        Ok(Some(Forked { text }))
    }

    /// A fork of everything that was said on this branch; `false` if an extension
    /// vetoed.
    pub async fn clone_session(&self) -> Result<bool, Refusal> {
        let leaf = self.state.lock().session.leaf_id().map(str::to_owned);
        let nothing = "Cannot clone session: no current entry selected";
        let leaf = leaf.ok_or_else(|| Refusal::new(ErrorCode::NothingToDo, nothing))?;
        let forked = self.fork(&leaf, ForkPosition::At).await?;
        Ok(forked.is_some())
    }

    /// All user messages of the file, with the ids that [`Self::fork`] takes.
    pub fn fork_messages(&self) -> Vec<(String, String)> {
        let state = self.state.lock();
        let users = state.session.entries().iter().filter_map(|entry| {
            let message = entry.message().ok().flatten()?;
            match &*message {
                AgentMessage::User(user) => Some((entry.id.clone(), user.content.text())),
                _ => None,
            }
        });
        users.collect()
    }

    /// The same with the place of each among the entries.
    pub fn branch_messages(&self) -> Vec<(usize, String, String)> {
        let messages = self.fork_messages();
        let state = self.state.lock();
        let place = |id: &str| {
            state
                .session
                .entries()
                .iter()
                .position(|entry| entry.id == id)
        };
        messages
            .into_iter()
            .filter_map(|(id, text)| Some((place(&id)?, id, text)))
            .collect()
    }

    /// A new session that an extension may write to before it is entered; `None`
    /// if an extension vetoed.
    pub(super) async fn prepare_session(
        &self,
        parent: Option<PathBuf>,
    ) -> Result<Option<UnlockedSession>, String> {
        let _one = self.replacing.lock().await;
        if !self.may_begin().await {
            return Ok(None);
        }
        let new = NewSession {
            parent_session: parent,
            ..NewSession::default()
        };
        let cwd = self.cwd();
        let made = match self.session_dir(&cwd) {
            Some(dir) => UnlockedSession::create(&dir, &cwd, new),
            None => UnlockedSession::in_memory(&cwd, new),
        };
        let mut made = made.map_err(|error| error.to_string())?;
        let (model, thinking) = (self.model(), self.thinking_level());
        let begun = made.write(|session| {
            if let Some(model) = model {
                session.append_model_change(&model.provider, &model.id)?;
            }
            session.append_thinking_level_change(thinking.as_str())
        });
        begun.map_err(|error| error.to_string())?;
        Ok(Some(made))
    }

    /// Makes what [`Self::prepare_session`] made the session.
    pub(super) async fn enter_session(&self, prepared: UnlockedSession) -> Result<(), String> {
        let _one = self.replacing.lock().await;
        let session = prepared.into_session().map_err(|error| error.to_string())?;
        self.replace(session, "new").await;
        Ok(())
    }

    /// Copies a session file among our sessions, and goes on there. `cwd` is where,
    /// if not where the file says. `false` if an extension vetoed.
    pub async fn import_jsonl(&self, path: &str, cwd: Option<&Path>) -> Result<bool, String> {
        let _one = self.replacing.lock().await;
        let here = self.cwd();
        let source = here.join(expand_tilde(path, &self.config.paths.home));
        if !source.exists() {
            return Err(format!("File not found: {}", source.display()));
        }
        let dir = match self.session_dir(&here) {
            Some(dir) => dir,
            None => super::start::session_dir(&self.config, &self.settings, &here),
        };
        let target = dir.join(source.file_name().unwrap_or_default());
        let target = target.display().to_string();
        let event = object(json!({ "reason": "resume", "targetSessionFile": target }));
        if self.is_vetoed("session_before_switch", event).await {
            return Ok(false);
        }
        let copy = crate::session::import(&source, &dir).map_err(|error| error.to_string())?;
        self.go_on_with(&copy, cwd).await?;
        Ok(true)
    }

    /// What was said on this branch, as a session file; returns where it is.
    pub fn export_jsonl(&self, path: Option<&str>) -> Result<PathBuf, String> {
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let usual = || format!("session-{}.jsonl", time.replace([':', '.'], "-"));
        let path = path.map_or_else(usual, str::to_owned);
        let path = self
            .cwd()
            .join(expand_tilde(&path, &self.config.paths.home));
        let state = self.state.lock();
        state.session.export_branch(&path).map_err(text)
    }

    /// Entries after `since`, or all, and where the session stands: JSON.
    pub fn entries_json(&self, since: Option<&str>) -> Result<String, Refusal> {
        Ok(self.state.lock().session.entries_json(since)?)
    }

    /// All entries, each inside its parent, and where the session stands: JSON.
    pub fn tree_json(&self) -> String {
        self.state.lock().session.tree_json()
    }

    /// The sessions of this folder, or of all, the last active first.
    pub async fn list_sessions(&self, all: bool) -> Result<Vec<SessionInfo>, String> {
        let cwd = self.cwd();
        let dir = match self.session_dir(&cwd) {
            Some(dir) => dir,
            None => super::start::session_dir(&self.config, &self.settings, &cwd),
        };
        let everywhere = self.config.paths.sessions();
        let listed = tokio::task::spawn_blocking(move || match all {
            true => crate::session::list_all(&everywhere),
            false => crate::session::list(&dir),
        });
        listed.await.map_err(text)?.map_err(text)
    }

    pub(super) async fn go_on_with(&self, path: &Path, cwd: Option<&Path>) -> Result<(), Refusal> {
        let (next, warnings) = match self.go_back_to(path, cwd) {
            None if self.is_open(path) => {
                if let Some(cwd) = cwd.filter(|cwd| cwd.is_dir()) {
                    self.state.lock().session.override_cwd(cwd);
                }
                (Next::Again, Vec::new())
            }
            Some(stay) => (Next::Back(stay), Vec::new()),
            None => {
                let (mut session, warnings) = Session::open_shared(path, &self.cwd())?;
                if let Some(cwd) = cwd {
                    session.override_cwd(cwd);
                }
                (session.into(), warnings)
            }
        };
        let (_, cwd) = self.state.lock().whereabouts(&next);
        if !cwd.is_dir() {
            let text = format!(
                "Stored session working directory does not exist: {}. Create the folder, or start \
                 a new session",
                cwd.display()
            );
            return Err(Refusal::new(ErrorCode::SessionUnavailable, text));
        }
        self.note_warnings(warnings);
        self.replace(next, "resume").await;
        Ok(())
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
