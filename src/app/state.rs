//! The mutable state of a session, behind one lock that is never held across an await.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;

use super::activity::WorkState;
use super::compaction::CompactionState;
use super::prompt::options::SystemPromptState;
use super::prompt::queue::PromptQueue;
use super::run::retry::Retry;
use super::switch::background::OpenSessions;
use super::user_commands::UserCommandState;
use pi_agent::AgentMessage;
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::models::selection::ScopedModel;
use pi_session::message::CustomMessage;
use pi_session::{Entry, EntryKind, Session, SessionError};

pub(super) struct State {
    pub session: Session,
    /// Changes with each use of the session lock, and when work that kept it ends.
    pub lock_used: watch::Sender<()>,
    /// The current session among the open ones.
    pub sessions: OpenSessions,
    /// The messages that the model sees. Derived from the session and cached, so that they are not
    /// rebuilt for each prompt.
    pub context: Vec<Arc<AgentMessage>>,
    pub model: Option<Arc<Model>>,
    /// The model that the session has left because no provider had it.
    pub left_model: Option<Arc<Model>>,
    pub thinking: ThinkingLevel,
    /// The models to cycle through; empty for all.
    pub scope: Vec<ScopedModel>,
    pub prompts: PromptQueue,
    pub user_commands: UserCommandState,
    pub system_prompt: SystemPromptState,
    pub work: WorkState,
    pub retry: Retry,
    /// Number of turns since the run began.
    pub turn_index: u64,
    pub compaction: CompactionState,
    /// The resumed session file does not contain the thinking level. It is appended before the next
    /// message, so that opening a session does not change its file.
    pub thinking_not_persisted: bool,
}

impl State {
    /// Appends to the session file and to the context. The file comes first: no message is shown
    /// before it is stored.
    pub fn append(&mut self, message: Arc<AgentMessage>) -> Result<(), SessionError> {
        self.append_pending_thinking_level()?;
        match &*message {
            AgentMessage::Custom(custom) => self.append_custom_message(custom),
            message => self.writable()?.append_message(message),
        }?;
        self.context.push(message);
        Ok(())
    }

    /// Appends a message of an extension to the session file alone.
    pub fn append_custom_message(
        &mut self,
        message: &CustomMessage,
    ) -> Result<Arc<Entry>, SessionError> {
        self.writable()?.append_custom_message(
            &message.custom_type,
            &message.content,
            message.display,
            message.details.as_ref(),
        )
    }

    /// Replaces the first `known` messages of the context, or all if there are fewer. The session
    /// file stays.
    pub fn replace_messages(&mut self, known: usize, messages: Vec<Arc<AgentMessage>>) {
        let known = known.min(self.context.len());
        self.context.splice(..known, messages);
    }

    /// Appends a message as [`Self::append`] does. A message that cannot be stored joins the
    /// context nevertheless and is stored as soon as possible. Returns a notice for the user.
    pub fn append_or_buffer(&mut self, message: Arc<AgentMessage>) -> Option<String> {
        if let Err(error) = self.append_pending_thinking_level() {
            tracing::warn!("the thinking level was not stored: {error}");
        }
        if let Err(error) = self.lock_file() {
            tracing::warn!("{error}");
        }
        let notice = append_to_file(&mut self.session, &message);
        self.context.push(message);
        notice
    }

    /// Returns the session index, and how often this session was compacted.
    pub fn compactions(&self) -> (u64, usize) {
        let entries = self.session.entries().iter();
        let compactions =
            entries.filter(|entry| matches!(entry.kind, EntryKind::Compaction { .. }));
        (self.sessions.current, compactions.count())
    }

    /// Appends the results of user commands that ended during the run. Returns a notice for the
    /// user.
    pub fn append_deferred_user_commands(&mut self) -> Option<String> {
        let deferred = std::mem::take(&mut self.user_commands.deferred);
        let notice = deferred
            .into_iter()
            .filter_map(|message| self.append_or_buffer(message));
        // The last notice counts the messages of those before.
        notice.last()
    }

    /// Tries again to store messages that could not be stored. Returns a notice for the user.
    pub fn write_unsaved(&mut self) -> Option<String> {
        if self.session.unsaved_count() == 0 {
            return None;
        }
        self.lock_used.send_replace(());
        Some(match self.session.write_unsaved() {
            Ok(()) => caught_up(&self.session),
            Err(error) => not_stored(&self.session, &error),
        })
    }

    /// Appends the first entries of a new session: the model and the thinking level.
    pub fn append_initial_entries(&mut self) -> Result<(), SessionError> {
        if let Some(model) = self.model.clone() {
            self.writable()?
                .append_model_change(&model.provider, &model.id)?;
        }
        self.append_thinking_level()
    }

    fn append_pending_thinking_level(&mut self) -> Result<(), SessionError> {
        match self.thinking_not_persisted {
            true => self.append_thinking_level(),
            false => Ok(()),
        }
    }

    /// Records the thinking level in the session so that a resumed session uses it.
    pub fn append_thinking_level(&mut self) -> Result<(), SessionError> {
        self.thinking_not_persisted = false;
        let level = self.thinking;
        self.writable()?
            .append_thinking_level_change(level.as_str())?;
        Ok(())
    }
}

/// Does what [`State::append_or_buffer`] does, for the file alone.
pub(super) fn append_to_file(session: &mut Session, message: &AgentMessage) -> Option<String> {
    let run_pending = session.unsaved_count();
    match session.append_or_buffer(message) {
        Ok(()) if run_pending > 0 => Some(caught_up(session)),
        Ok(()) => None,
        Err(error) => Some(not_stored(session, &error)),
    }
}

fn caught_up(session: &Session) -> String {
    let path = session.path().unwrap_or(Path::new(""));
    format!(
        "{}: messages that could not be stored before are stored now",
        path.display()
    )
}

fn not_stored(session: &Session, error: &SessionError) -> String {
    let messages = match session.unsaved_count() {
        1 => "1 message is".to_string(),
        count => format!("{count} messages are"),
    };
    let rescue = match error {
        SessionError::Vanished { .. } | SessionError::Shortened { .. } => {
            ". /clone (RPC: clone) keeps all of it"
        }
        _ => "",
    };
    format!(
        "{error}. {messages} not stored, only in memory: pi tries again with every message, \
         and they are lost if it ends before that works{rescue}"
    )
}
