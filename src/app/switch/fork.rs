//! Sessions made from the current one: forks, clones and exports. Also imports, and sessions that
//! extensions create.

use std::path::{Path, PathBuf};

use chrono::{SecondsFormat, Utc};
use serde_json::json;
use tokio::task::JoinError;

use crate::AgentSession;
use crate::error::{CommandError, ErrorCode};
use crate::run::json_object;
use crate::switch::background::SwitchTarget;
use pi_agent::AgentMessage;
use pi_resources::paths::expand_tilde;
use pi_session::{NewSession, Session, SessionError, SessionInfo, UnlockedSession};

/// The end of the part that a fork copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPosition {
    /// Up to a message of the user, which is excluded.
    Before,
    /// Up to an entry, which is included.
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

/// The result of a fork, which is the current session now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forked {
    /// The text of the message that the fork ends before.
    pub text: Option<String>,
}

/// The reason why a session file was not imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    #[error("File not found: {}", .0.display())]
    NoFile(PathBuf),
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The copy was made, and cannot be entered.
    #[error(transparent)]
    Resume(#[from] CommandError),
}

impl From<ImportError> for CommandError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::NoFile(_) => Self::new(ErrorCode::SessionUnavailable, error.to_string()),
            ImportError::Session(error) => error.into(),
            ImportError::Resume(error) => error,
        }
    }
}

/// The reason why sessions were not listed.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The thread that reads the files panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

impl AgentSession {
    /// Returns `None` if an extension vetoed.
    pub(crate) async fn fork(
        &self,
        entry: &str,
        position: ForkPosition,
    ) -> Result<Option<Forked>, CommandError> {
        let _switch_guard = self.switcher.lock.lock().await;
        let invalid = || CommandError::new(ErrorCode::InvalidEntry, "Invalid entry ID for forking");
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
        let event = json_object(json!({ "entryId": entry, "position": position.name() }));
        if self.is_vetoed("session_before_fork", event).await {
            return Ok(None);
        }
        let dir = self.session_dir(&self.cwd()).unwrap_or_default();
        // Messages that are appended at the end of the run belong to the branch.
        drop(self.acquire_idle().await);
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

    /// Forks the whole current branch. Returns `false` if an extension vetoed.
    pub(crate) async fn clone_session(&self) -> Result<bool, CommandError> {
        let leaf = self.state.lock().session.leaf_id().map(str::to_owned);
        let nothing = "Cannot clone session: no current entry selected";
        let leaf = leaf.ok_or_else(|| CommandError::new(ErrorCode::NothingToDo, nothing))?;
        let forked = self.fork(&leaf, ForkPosition::At).await?;
        Ok(forked.is_some())
    }

    /// Returns the id and text of each user message in the file; [`Self::fork`] takes the ids.
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

    /// Returns the [`Self::fork_messages`] of the current branch, with the index of each among all
    /// entries.
    pub fn branch_messages(&self) -> Vec<(usize, String, String)> {
        let messages = self.fork_messages();
        let state = self.state.lock();
        let index = |id: &str| {
            state
                .session
                .entries()
                .iter()
                .position(|entry| entry.id == id)
        };
        messages
            .into_iter()
            .filter_map(|(id, text)| Some((index(&id)?, id, text)))
            .collect()
    }

    /// Makes a new session that an extension can write to before it is entered. Returns `None` if
    /// an extension vetoed.
    pub(crate) async fn create_session(
        &self,
        parent: Option<PathBuf>,
    ) -> Result<Option<UnlockedSession>, SessionError> {
        let _switch_guard = self.switcher.lock.lock().await;
        if !self.allows_new_session().await {
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
        let mut made = made?;
        let (model, thinking) = (self.model(), self.thinking_level());
        made.write(|session| {
            if let Some(model) = model {
                session.append_model_change(&model.provider, &model.id)?;
            }
            session.append_thinking_level_change(thinking.as_str())
        })?;
        Ok(Some(made))
    }

    /// Switches to a session from [`Self::create_session`].
    pub(crate) async fn enter_session(&self, created: UnlockedSession) -> Result<(), SessionError> {
        let _switch_guard = self.switcher.lock.lock().await;
        let session = created.into_session()?;
        self.replace(session, "new").await;
        Ok(())
    }

    /// Copies a session file into the folder of sessions, and switches to the copy. `cwd` overrides
    /// its working folder. Returns `false` if an extension vetoed.
    pub(crate) async fn import_jsonl(
        &self,
        path: &str,
        cwd: Option<&Path>,
    ) -> Result<bool, ImportError> {
        let _switch_guard = self.switcher.lock.lock().await;
        let current_dir = self.cwd();
        let source = current_dir.join(expand_tilde(path, &self.config.paths.home));
        if !source.exists() {
            return Err(ImportError::NoFile(source));
        }
        let dir = match self.session_dir(&current_dir) {
            Some(dir) => dir,
            None => crate::startup::session_dir(&self.config, &self.settings, &current_dir),
        };
        let target = dir.join(source.file_name().unwrap_or_default());
        let target = target.display().to_string();
        let event = json_object(json!({ "reason": "resume", "targetSessionFile": target }));
        if self.is_vetoed("session_before_switch", event).await {
            return Ok(false);
        }
        let copy = pi_session::import(&source, &dir)?;
        self.resume_session(&copy, cwd).await?;
        Ok(true)
    }

    /// Writes the current branch into a session file; returns its path.
    pub(crate) fn export_jsonl(&self, path: Option<&str>) -> Result<PathBuf, SessionError> {
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let usual = || format!("session-{}.jsonl", time.replace([':', '.'], "-"));
        let path = path.map_or_else(usual, str::to_owned);
        let path = self
            .cwd()
            .join(expand_tilde(&path, &self.config.paths.home));
        let state = self.state.lock();
        state.session.export_branch(&path)
    }

    /// Returns the entries after `since`, or all, and the current leaf as JSON.
    pub fn entries_json(&self, since: Option<&str>) -> Result<String, CommandError> {
        Ok(self.state.lock().session.entries_json(since)?)
    }

    /// Returns all entries as a tree, and the current leaf as JSON.
    pub fn tree_json(&self) -> String {
        self.state.lock().session.tree_json()
    }

    /// Lists the sessions of this folder, or of all, the most recently active first.
    pub async fn list_sessions(&self, all: bool) -> Result<Vec<SessionInfo>, ListError> {
        let cwd = self.cwd();
        let dir = match self.session_dir(&cwd) {
            Some(dir) => dir,
            None => crate::startup::session_dir(&self.config, &self.settings, &cwd),
        };
        let everywhere = self.config.paths.sessions();
        let listed = tokio::task::spawn_blocking(move || match all {
            true => pi_session::list_all(&everywhere),
            false => pi_session::list(&dir),
        });
        Ok(listed.await??)
    }

    pub(crate) async fn resume_session(
        &self,
        path: &Path,
        cwd: Option<&Path>,
    ) -> Result<(), CommandError> {
        let (target, warnings) = match self.user_commands.lease_background(path, cwd) {
            None if self.is_open(path) => {
                if let Some(cwd) = cwd.filter(|cwd| cwd.is_dir()) {
                    self.state.lock().session.override_cwd(cwd);
                }
                (SwitchTarget::Reopen, Vec::new())
            }
            Some(lease) => (SwitchTarget::Background(lease), Vec::new()),
            None => {
                let (mut session, warnings) = Session::open_shared(path, &self.cwd())?;
                if let Some(cwd) = cwd {
                    session.override_cwd(cwd);
                }
                (session.into(), warnings)
            }
        };
        let (_, cwd) = self.state.lock().path_and_cwd(&target);
        if !cwd.is_dir() {
            let text = format!(
                "Stored session working directory does not exist: {}. Create the folder, or start \
                 a new session",
                cwd.display()
            );
            return Err(CommandError::new(ErrorCode::SessionUnavailable, text));
        }
        self.add_warnings(warnings);
        self.replace(target, "resume").await;
        Ok(())
    }
}
