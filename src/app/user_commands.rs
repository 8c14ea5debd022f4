//! Shell commands of the user; their output joins the conversation.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::AgentSession;
use super::session::{EventSink, emit, report_error};
use super::state::State;
use super::switch::background::{SessionLease, UserCommand};
use super::tools::Tools;
use pi_agent::AgentMessage;
use pi_agent::event::{Event, ExtensionError};
use pi_ai::message::now;
use pi_extensions::{Extensions, UserBash};
use pi_session::message::BashExecutionMessage;
pub use pi_tools::command::run::UserCommandResult;
use pi_tools::command::run::run_user_command;
use pi_tools::remote::RemoteCommands;

/// Number of pieces of output that may wait for the mode.
const OUTPUT_BUFFER: usize = 16;

/// Runs shell commands of the user, and records their results.
pub(super) struct UserCommands {
    /// Cancels all commands, and later ones at once.
    pub cancel: CancellationToken,
    /// Commands that are running, or whose output is not stored yet.
    pub tasks: TaskTracker,
    extensions: Arc<Extensions>,
    tools: Arc<Tools>,
    mode: Arc<dyn EventSink>,
    handle: Handle,
    pub(super) state: Arc<Mutex<State>>,
}

/// Results and cancellation of the user's shell commands.
#[derive(Default)]
pub(super) struct UserCommandState {
    /// Results of commands that ended during a run; they are appended when the run ends.
    pub deferred: Vec<Arc<AgentMessage>>,
    /// Cancels the command that was started last.
    pub last_cancel: Option<CancellationToken>,
}

/// A shell command of the user.
pub struct UserCommandRequest {
    pub command: String,
    pub exclude_from_context: bool,
    pub runner: UserCommandRunner,
}

/// The part of the program that runs a shell command, and that gets its output.
pub enum UserCommandRunner {
    /// pi.
    Pi,
    /// pi, unless an extension that handles `user_bash` runs it elsewhere or replaces its result.
    Extensions,
    /// An implementation of the caller.
    Remote(Arc<dyn RemoteCommands>),
    /// pi, with an event for each piece of output. A slow mode slows the command down.
    PiWithUpdates {
        /// The `id` of the events.
        id: Option<Value>,
    },
}

impl UserCommands {
    pub fn new(
        extensions: Arc<Extensions>,
        tools: Arc<Tools>,
        mode: Arc<dyn EventSink>,
        handle: Handle,
        state: Arc<Mutex<State>>,
    ) -> Self {
        Self {
            cancel: CancellationToken::new(),
            tasks: TaskTracker::new(),
            extensions,
            tools,
            mode,
            handle,
            state,
        }
    }

    /// Runs a command in the session's folder and records it: in the conversation at once, or after
    /// the run if one is active.
    pub async fn run(&self, request: UserCommandRequest) -> Result<UserCommandResult, String> {
        let UserCommandRequest {
            command,
            exclude_from_context,
            runner,
        } = request;
        match runner {
            UserCommandRunner::Pi => {
                let begun = self.begin();
                self.run_begun(begun, &command, exclude_from_context, None, None)
                    .await
            }
            UserCommandRunner::Extensions => {
                self.run_with_extensions(&command, exclude_from_context)
                    .await
            }
            UserCommandRunner::Remote(by) => {
                let begun = self.begin();
                self.run_begun(begun, &command, exclude_from_context, Some(by), None)
                    .await
            }
            UserCommandRunner::PiWithUpdates { id } => {
                self.run_with_updates(&command, exclude_from_context, id)
                    .await
            }
        }
    }

    async fn run_with_extensions(
        &self,
        command: &str,
        exclude_from_context: bool,
    ) -> Result<UserCommandResult, String> {
        let begun = self.begin();
        let cwd = begun.cwd.display().to_string();
        let chosen = self
            .extensions
            .user_bash(command, exclude_from_context, &cwd, &begun.cancel)
            .await;
        let elsewhere = match chosen {
            UserBash::RunLocally => None,
            UserBash::RunWith(commands) => Some(commands),
            UserBash::Failed(problem) => {
                return Err(format!(
                    "An extension took over the command (user_bash) and failed: {problem}"
                ));
            }
            UserBash::Finished(result) => {
                self.record(&begun.lease, command, &result, exclude_from_context)
                    .await;
                return Ok(result);
            }
        };
        self.run_begun(begun, command, exclude_from_context, elsewhere, None)
            .await
    }

    async fn run_with_updates(
        &self,
        command: &str,
        exclude_from_context: bool,
        id: Option<Value>,
    ) -> Result<UserCommandResult, String> {
        let begun = self.begin();
        let (updates, mut received) = mpsc::channel(OUTPUT_BUFFER);
        let runs = self.run_begun(begun, command, exclude_from_context, None, Some(updates));
        let emits = async {
            while let Some(delta) = received.recv().await {
                let id = id.clone();
                emit(&*self.mode, Event::BashExecutionUpdate { id, delta }).await;
            }
        };
        let (result, ()) = futures::future::join(runs, emits).await;
        result
    }

    async fn run_begun(
        &self,
        begun: UserCommand,
        command: &str,
        exclude_from_context: bool,
        elsewhere: Option<Arc<dyn RemoteCommands>>,
        updates: Option<mpsc::Sender<String>>,
    ) -> Result<UserCommandResult, String> {
        let shell = self.tools.options().shell();
        let UserCommand { lease, cwd, cancel } = begun;
        let result = run_user_command(command, &cwd, &shell, elsewhere, cancel, updates)
            .await
            .map_err(|error| error.0)?;
        self.record(&lease, command, &result, exclude_from_context)
            .await;
        Ok(result)
    }

    async fn record(
        &self,
        lease: &SessionLease,
        command: &str,
        result: &UserCommandResult,
        exclude_from_context: bool,
    ) {
        let message = bash_message(command, result, exclude_from_context);
        let notice = self.append(lease, message);
        report_store_problem(&*self.mode, notice).await;
    }

    /// Records a command that an extension has run.
    pub fn record_result(
        &self,
        command: &str,
        result: &UserCommandResult,
        exclude_from_context: bool,
    ) {
        let lease = self.lease_current();
        let notice = self.append(&lease, bash_message(command, result, exclude_from_context));
        if notice.is_some() {
            let mode = self.mode.clone();
            (self.handle).spawn(async move { report_store_problem(&*mode, notice).await });
        }
    }

    /// Cancels the command that was started last.
    pub fn abort_last(&self) {
        if let Some(cancel) = &self.state.lock().user_commands.last_cancel {
            cancel.cancel();
        }
    }
}

impl AgentSession {
    /// Appends the results of commands that ended during the last run.
    pub(super) async fn store_deferred_user_commands(&self) {
        let notice = self.state.lock().append_deferred_user_commands();
        self.report_store_problem(notice).await;
    }

    /// Tries a last time to store messages before the session is replaced or closed.
    pub(super) async fn append_unsaved(&self) {
        let notice = self.state.lock().write_unsaved();
        self.report_store_problem(notice).await;
    }

    pub(super) async fn report_store_problem(&self, notice: Option<String>) {
        report_store_problem(&*self.mode, notice).await;
    }
}

async fn report_store_problem(mode: &dyn EventSink, notice: Option<String>) {
    if let Some(notice) = notice {
        report_error(mode, ExtensionError::new("<session>", "append", notice)).await;
    }
}

fn bash_message(
    command: &str,
    result: &UserCommandResult,
    exclude_from_context: bool,
) -> Arc<AgentMessage> {
    Arc::new(AgentMessage::BashExecution(BashExecutionMessage {
        command: command.to_string(),
        output: result.output.clone(),
        exit_code: result.exit_code,
        cancelled: result.cancelled,
        truncated: result.truncated,
        full_output_path: result.full_output_path.clone(),
        timestamp: now(),
        exclude_from_context: exclude_from_context.then_some(true),
    }))
}
