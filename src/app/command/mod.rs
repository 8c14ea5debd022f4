//! The operations on a session, the same for all protocols.
//!
//! A protocol parses its own words into a [`SessionCommand`], calls [`AgentSession::execute`], and
//! formats the [`CommandOutcome`]. RPC, line mode, the calls of extensions and child sessions are
//! such parsers; none of them knows how a command is executed.
//!
//! The rule: what begins, changes or ends something in a session is a command. The following are
//! methods of [`AgentSession`]:
//!
//! - queries, which only read (`state`, `messages`, `tree`, `fork_messages`);
//! - waits for a state (`wait_idle`, `wait_settled`);
//! - the life of the session object: `prepare`, `load`, `open`, `shutdown`, and the cancellations
//!   by which a mode ends (`abort_run`, `cancel_commands`);
//! - the connection to the client: dialogs and their answers, warnings, methods of `ctx.ui`;
//! - the credentials of the user (`log_in`, `log_out`), which belong to no session;
//! - operations whose result is an object of one protocol: created and child sessions of
//!   [`SessionApi`](pi_extensions::api::session_api::SessionApi).
//!
//! An [`ImmediateCommand`] never waits. Synchronous calls of extensions can execute no other
//! commands, because JavaScript stands still until they return.

mod execute;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::error::CommandError;
use crate::models::CycledModel;
use crate::prompt::{Accepted, PromptRequest};
use crate::switch::fork::{ForkPosition, Forked};
use crate::trust_question::TrustOutcome;
use crate::user_commands::{UserCommandRequest, UserCommandResult};
use pi_agent::AgentMessage;
use pi_agent::queue::{Delivery, QueueMode};
use pi_ai::message::{ImageContent, UserContent};
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::models::selection::ScopedModel;
use pi_compaction::Compacted;
use pi_extensions::LoadReport;
use pi_extensions::api::session_api::{NavigateOptions, Navigated, SendOptions};
use pi_session::UnlockedSession;
use pi_session::message::CustomMessage;

/// An operation on a session. Each variant names its outcome; [`CommandOutcome::Done`] if it names
/// none.
pub enum SessionCommand {
    /// Sends a prompt. `Accepted`, once the prompt has begun a run, was queued, or was handled by an
    /// extension.
    Prompt(PromptRequest),
    /// Queues a message without asking `input` handlers; while no run is active it waits for the
    /// next one. `Accepted`.
    Queue {
        delivery: Delivery,
        text: String,
        images: Vec<ImageContent>,
    },
    /// Empties both queues. `Dequeued`.
    ClearQueue,
    /// Stops all work, and waits for the end of the run and of the summary that it stopped.
    Abort,
    /// Ends the wait for a retry, and waits until the session is idle if there was one.
    AbortRetry,
    /// Switches to a new, empty session. `Switched`.
    NewSession { parent: Option<PathBuf> },
    /// Switches to a session that an extension has created. `Switched`.
    EnterSession(Box<UnlockedSession>),
    /// Switches to the session in a file; a missing file becomes a new session. `cwd` overrides the
    /// working folder of the file. `Switched`.
    SwitchSession { path: PathBuf, cwd: Option<PathBuf> },
    /// Copies a session file into the folder of sessions and switches to the copy. `Switched`.
    ImportSession { path: String, cwd: Option<PathBuf> },
    /// Switches to a new session with a part of the current branch. `Forked`.
    Fork {
        entry: String,
        position: ForkPosition,
    },
    /// Switches to a copy of the current branch. `Switched`.
    CloneSession,
    /// Moves the leaf to an entry, or before a message of the user. `Navigated`.
    NavigateTree {
        target: String,
        options: NavigateOptions,
    },
    /// Sets the model from the next run on, and the default of new sessions. `Model`.
    SetModel {
        model: ModelReference,
        source: ModelChangeSource,
    },
    /// Switches to the next usable model, or to the one before. `CycledModel`.
    CycleModel { backward: bool },
    /// Stops the run and compacts the conversation. `focus` is added to the instructions of the
    /// summary. `Compacted`.
    Compact { focus: Option<String> },
    /// Runs a shell command of the user. `UserCommand`.
    UserCommand(UserCommandRequest),
    /// Names the session. Waits for another process that writes to its file, within a limit.
    SetName(String),
    /// Writes the session as an HTML page. `Exported`.
    ExportHtml { path: Option<PathBuf> },
    /// Loads settings, models and extensions again. `release` names a quarantined extension that is
    /// loaded, too. `Reloaded`.
    Reload { release: Option<String> },
    /// Asks the user anew whether the project is trusted, and loads or leaves out what it brings.
    /// `Trust`, after the answer.
    AskTrust,
    /// Is executed at once.
    Immediate(ImmediateCommand),
}

/// An operation on a session that never waits. Events and handlers that it causes follow on their
/// own.
pub enum ImmediateCommand {
    /// Stops all work and every wait for extensions; does not wait for the end.
    Abort,
    /// Stops the run alone. Handlers of `agent_end` of a run that is ending are still waited for.
    AbortRun,
    /// Ends the wait for a retry, and with it the run.
    AbortRetry,
    /// Cancels the shell command that was started last.
    AbortUserCommand,
    /// Stops the summary of a compaction or of a branch.
    AbortSummary,
    /// Ends pi when the session is idle.
    Shutdown,
    /// Sends a message of an extension.
    SendMessage {
        message: CustomMessage,
        options: SendOptions,
    },
    /// Sends a message of the user for an extension. An error that occurs later is reported.
    SendUserMessage {
        content: UserContent,
        options: SendOptions,
    },
    /// Queues a message of the user, whether or not a run is active, and without asking handlers.
    QueueUserMessage {
        delivery: Delivery,
        text: String,
        images: Vec<ImageContent>,
    },
    SetQueueMode {
        delivery: Delivery,
        mode: QueueMode,
    },
    SetAutoCompaction(bool),
    SetAutoRetry(bool),
    /// Sets the thinking level, clamped to the levels of the model.
    SetThinkingLevel(ThinkingLevel),
    /// Switches to the next level of the model. `CycledLevel`.
    CycleThinkingLevel,
    /// Sets the models to cycle through; none for all.
    SetScopedModels(Vec<ScopedModel>),
    /// Activates these tools, and no others.
    SetActiveTools(Vec<String>),
    /// Stores the theme in the settings.
    SetTheme(String),
    /// Names the session. Fails at once if the name is empty or another process writes to its file.
    SetName(String),
    /// Appends a name to the session; an empty one removes it. `Appended`.
    AppendName(String),
    /// Appends a custom entry. `Appended`.
    AppendEntry {
        custom_type: String,
        data: Option<Value>,
    },
    /// Appends a message that the model sees when the context is rebuilt from the session.
    /// `Appended`.
    AppendMessage(CustomMessage),
    /// Sets the label of an entry; `None` removes it. `Appended`.
    SetLabel {
        entry: String,
        label: Option<String>,
    },
    /// Records a shell command that an extension has run.
    RecordUserCommand {
        command: String,
        result: UserCommandResult,
        exclude_from_context: bool,
    },
    /// Replaces the first `known` messages of the context, or all if there are fewer. The session
    /// file stays.
    ReplaceMessages {
        known: usize,
        messages: Vec<AgentMessage>,
    },
    /// Writes the current branch into a session file. `Exported`.
    ExportJsonl {
        path: Option<String>,
    },
}

impl From<ImmediateCommand> for SessionCommand {
    fn from(command: ImmediateCommand) -> Self {
        Self::Immediate(command)
    }
}

/// The model of [`SessionCommand::SetModel`].
pub enum ModelReference {
    Named {
        provider: String,
        id: String,
    },
    /// A complete definition, whose limits may differ from those of the known model.
    Defined(Box<Model>),
}

/// The cause of a change of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelChangeSource {
    Set,
    /// A handler set the model while the event queue waits for that handler.
    InHandler,
    Cycled,
}

/// The result of a command. A protocol formats it without knowing the command.
pub enum CommandOutcome {
    Done,
    Accepted(Accepted),
    /// The texts of the messages that were queued.
    Dequeued {
        steering: Vec<String>,
        follow_up: Vec<String>,
    },
    /// Whether another session is current now; otherwise an extension vetoed it.
    Switched(bool),
    /// `None` if an extension vetoed the fork.
    Forked(Option<Forked>),
    Navigated(Navigated),
    Model(Arc<Model>),
    /// `None` if there is no other model.
    CycledModel(Option<CycledModel>),
    /// The new level; `None` if the model offers only one.
    CycledLevel(Option<ThinkingLevel>),
    Compacted(Compacted),
    UserCommand(UserCommandResult),
    /// The path of the file.
    Exported(PathBuf),
    /// The id of the new entry.
    Appended(String),
    Reloaded(LoadReport),
    Trust(TrustOutcome),
}

pub type CommandResult = Result<CommandOutcome, CommandError>;
