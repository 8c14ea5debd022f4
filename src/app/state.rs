//! What a session is at the moment. Behind one lock that is never held while
//! anything is awaited.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::compact::Due;
use super::left::Left;
use super::prompt_options::PromptOptions;
use super::rest::Ending;
use crate::agent::AgentMessage;
use crate::agent::queue::Queues;
use crate::agent::retry::RetryPolicy;
use crate::ai::model::{Model, ThinkingLevel};
use crate::ai::select::ScopedModel;
use crate::session::{EntryKind, Session, SessionError};

pub(super) struct State {
    pub session: Session,
    /// Changes when the session's file may have become this process's to write.
    pub written: watch::Sender<()>,
    /// Which of the sessions that were opened so far it is.
    pub place: u64,
    /// How many there were.
    pub places: u64,
    /// Those in which something still goes on.
    pub left: Vec<Left>,
    /// The place of everything that keeps a session open.
    pub stays: Vec<u64>,
    /// What the model would be told: derived from the session, kept beside it so
    /// that it need not be built anew for every prompt.
    pub context: Vec<Arc<AgentMessage>>,
    pub model: Option<Arc<Model>>,
    pub thinking: ThinkingLevel,
    /// The models to cycle through; empty for all.
    pub scope: Vec<ScopedModel>,
    pub queues: Queues,
    pub active_tools: Vec<String>,
    /// All that there were when this was last looked at.
    pub known_tools: HashSet<String>,
    /// Prompts on their way to the agent. What is queued waits for them: see
    /// [`Self::owed`].
    pub preparing: usize,
    /// Prompts whose `before_agent_start` handlers are asked: what extensions say meanwhile
    /// is queued for the run that is about to begin.
    pub starting: usize,
    /// A run is to begin with what is queued, if none of them begins one.
    pub owed: bool,
    /// Wait for the next prompt (`deliverAs: "nextTurn"`).
    pub next_turn: Vec<Arc<AgentMessage>>,
    /// Shell commands run while the agent was busy; they join the conversation
    /// when it rests.
    pub deferred_bash: Vec<Arc<AgentMessage>>,
    pub system_prompt: String,
    /// What `before_agent_start` handlers made of it for the latest run.
    pub run_prompt: Option<String>,
    /// What it was made of.
    pub prompt_options: PromptOptions,
    /// The same of [`Self::run_prompt`], if handlers have changed it.
    pub run_options: Option<PromptOptions>,
    pub run: Option<Run>,
    /// The run that is telling of its end; at rest it is [`Self::run`] no more.
    pub ending: Option<Ending>,
    /// Another session, or another set of extensions, is being put in place: no
    /// run may begin.
    pub replacing: bool,
    /// The error of the last answer if it is asked for again. Decided before anybody
    /// hears of the run's end, who may change the settings then.
    pub failure: Option<String>,
    /// The wait before a failed answer is asked for again.
    pub retry_wait: Option<CancellationToken>,
    /// A summary is being written: of what was said (a compaction), or of a branch.
    /// No run may begin.
    pub summary: Option<Run>,
    /// How many wait for the end of the run to write one.
    pub wanted: usize,
    /// What the run that has ended left to one of them: `summary`, held already.
    pub handed: Option<Run>,
    /// The run that has ended is followed by a compaction, for which `summary` is
    /// held already.
    pub due: Option<Due>,
    /// The conversation was compacted because it did not fit, and nothing was said
    /// since that did.
    pub overflow_recovered: bool,
    /// Of runs and summaries.
    pub runs: u64,
    pub retry: RetryPolicy,
    /// Failed attempts of the request that is going on.
    pub attempt: u32,
    /// Turns since the run began.
    pub turn: u64,
    pub bash: Option<CancellationToken>,
    pub auto_compaction: bool,
    /// The file does not say how hard the session thinks, and says so before anything else
    /// is said in it: who only looks at it does not change it.
    pub thinking_unsaid: bool,
}

/// The agent, or whoever summarises, at work.
#[derive(Clone)]
pub(super) struct Run {
    pub id: u64,
    pub cancel: CancellationToken,
}

impl State {
    /// Appends to the session file and to what the model is told. The file comes
    /// first: nobody hears of what is not stored.
    pub fn say(&mut self, message: Arc<AgentMessage>) -> Result<(), SessionError> {
        self.say_thinking_level()?;
        let session = self.writable()?;
        match &*message {
            AgentMessage::Custom(custom) => session.append_custom_message(
                &custom.custom_type,
                &custom.content,
                custom.display,
                custom.details.as_ref(),
            ),
            message => session.append_message(message),
        }?;
        self.context.push(message);
        Ok(())
    }

    /// [`Self::say`]; what cannot be stored is in the conversation all the same, and
    /// is stored as soon as that works. Gives what the user has to be told.
    pub fn say_anyway(&mut self, message: Arc<AgentMessage>) -> Option<String> {
        if let Err(error) = self.say_thinking_level() {
            tracing::warn!("the thinking level was not stored: {error}");
        }
        if let Err(error) = self.hold() {
            tracing::warn!("{error}");
        }
        let news = keep(&mut self.session, &message);
        self.context.push(message);
        news
    }

    /// In which session, and how often what was said there was compacted.
    pub fn compactions(&self) -> (u64, usize) {
        let entries = self.session.entries().iter();
        let compactions =
            entries.filter(|entry| matches!(entry.kind, EntryKind::Compaction { .. }));
        (self.place, compactions.count())
    }

    /// The commands of the user that ran beside the agent. Gives what they have to be told.
    pub fn store_deferred(&mut self) -> Option<String> {
        let deferred = std::mem::take(&mut self.deferred_bash);
        let news = deferred
            .into_iter()
            .filter_map(|message| self.say_anyway(message));
        // The last one counts those before.
        news.last()
    }

    /// What could not be stored is tried again. Gives what the user has to be told.
    pub fn write_unsaved(&mut self) -> Option<String> {
        if self.session.unsaved_count() == 0 {
            return None;
        }
        self.written.send_replace(());
        Some(match self.session.write_unsaved() {
            Ok(()) => caught_up(&self.session),
            Err(error) => not_stored(&self.session, &error),
        })
    }

    /// The first entries of a new session: with what it is held.
    pub fn begin(&mut self) -> Result<(), SessionError> {
        if let Some(model) = self.model.clone() {
            self.writable()?
                .append_model_change(&model.provider, &model.id)?;
        }
        self.keep_thinking_level()
    }

    fn say_thinking_level(&mut self) -> Result<(), SessionError> {
        match self.thinking_unsaid {
            true => self.keep_thinking_level(),
            false => Ok(()),
        }
    }

    /// Whoever goes on with the session thinks as hard.
    pub fn keep_thinking_level(&mut self) -> Result<(), SessionError> {
        self.thinking_unsaid = false;
        let level = self.thinking;
        self.writable()?
            .append_thinking_level_change(level.as_str())?;
        Ok(())
    }
}

/// [`State::say_anyway`] for the file alone.
pub(super) fn keep(session: &mut Session, message: &AgentMessage) -> Option<String> {
    let owed = session.unsaved_count();
    match session.append_or_buffer(message) {
        Ok(()) if owed > 0 => Some(caught_up(session)),
        Ok(()) => None,
        Err(error) => Some(not_stored(session, &error)),
    }
}

fn caught_up(session: &Session) -> String {
    let path = session.path().unwrap_or(Path::new(""));
    format!(
        "{}: what could not be stored before is stored now",
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
