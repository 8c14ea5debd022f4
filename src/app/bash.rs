//! Shell commands that the user runs, and that the model hears of later.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use super::AgentSession;
use super::left::{Stay, UserCommand};
use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::ai::message::now;
use crate::extensions::UserBash;
use crate::session::message::BashExecutionMessage;
use crate::tools::operations::Commands;
use crate::tools::shell_command::{UserCommandResult, run_user_command};

/// Pieces of output that may wait for the mode.
const OUTPUT_WAITS: usize = 16;

pub type BashOutcome = UserCommandResult;

impl AgentSession {
    /// [`Self::bash`] for a command that the user typed: extensions may run it
    /// somewhere else, or themselves.
    pub async fn user_bash(
        &self,
        command: &str,
        exclude_from_context: bool,
    ) -> Result<BashOutcome, String> {
        let begun = self.begin_command();
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
                    "An extension took the command over, and failed: {problem}"
                ));
            }
            UserBash::Finished(result) => {
                self.record_bash(&begun.stay, command, &result, exclude_from_context)
                    .await;
                return Ok(result);
            }
        };
        self.run_bash(begun, command, exclude_from_context, elsewhere, None)
            .await
    }

    /// Runs a command in the session's folder and records it: in the
    /// conversation at once, or before the next prompt if the agent is at work.
    pub async fn bash(
        &self,
        command: &str,
        exclude_from_context: bool,
    ) -> Result<BashOutcome, String> {
        let begun = self.begin_command();
        self.run_bash(begun, command, exclude_from_context, None, None)
            .await
    }

    /// [`Self::bash`], run by somebody else.
    pub async fn bash_by(
        &self,
        command: &str,
        exclude_from_context: bool,
        by: Arc<dyn Commands>,
    ) -> Result<BashOutcome, String> {
        let begun = self.begin_command();
        self.run_bash(begun, command, exclude_from_context, Some(by), None)
            .await
    }

    /// [`Self::bash`]; what it prints becomes events with this id. The command waits
    /// for a mode that is slow.
    pub async fn bash_told(
        &self,
        command: &str,
        exclude_from_context: bool,
        id: Option<Value>,
    ) -> Result<BashOutcome, String> {
        let begun = self.begin_command();
        let (told, mut heard) = mpsc::channel(OUTPUT_WAITS);
        let runs = self.run_bash(begun, command, exclude_from_context, None, Some(told));
        let tells = async {
            while let Some(delta) = heard.recv().await {
                let id = id.clone();
                self.tell(Event::BashExecutionUpdate { id, delta }).await;
            }
        };
        let (result, ()) = futures::future::join(runs, tells).await;
        result
    }

    async fn run_bash(
        &self,
        begun: UserCommand,
        command: &str,
        exclude_from_context: bool,
        elsewhere: Option<Arc<dyn Commands>>,
        told: Option<mpsc::Sender<String>>,
    ) -> Result<BashOutcome, String> {
        let shell = self.tool_options().shell();
        let UserCommand { stay, cwd, cancel } = begun;
        let result = run_user_command(command, &cwd, &shell, elsewhere, cancel, told)
            .await
            .map_err(|error| error.0)?;
        self.record_bash(&stay, command, &result, exclude_from_context)
            .await;
        Ok(result)
    }

    async fn record_bash(
        &self,
        stay: &Stay,
        command: &str,
        result: &BashOutcome,
        exclude_from_context: bool,
    ) {
        let message = bash_message(command, result, exclude_from_context);
        let news = self.store_command(stay, message);
        self.tell_of_store(news).await;
    }

    /// A command that somebody else has run.
    pub(super) fn record_result(
        &self,
        command: &str,
        result: &BashOutcome,
        exclude_from_context: bool,
    ) {
        let stay = self.stay_here();
        let news = self.store_command(&stay, bash_message(command, result, exclude_from_context));
        if news.is_some() {
            let session = self.arc();
            (self.handle).spawn(async move { session.tell_of_store(news).await });
        }
    }

    /// Ends the command that was started last.
    pub fn abort_bash(&self) {
        if let Some(cancel) = &self.state.lock().bash {
            cancel.cancel();
        }
    }

    /// Commands that ran during the last run join the conversation.
    pub(super) async fn flush_bash(&self) {
        let news = self.state.lock().store_deferred();
        self.tell_of_store(news).await;
    }

    /// The last attempt before the session is left.
    pub(super) async fn flush_unsaved(&self) {
        let news = self.state.lock().write_unsaved();
        self.tell_of_store(news).await;
    }

    pub(super) async fn tell_of_store(&self, news: Option<String>) {
        if let Some(news) = news {
            self.report("<session>", "append", news).await;
        }
    }

    /// For a custom message that joins an idle session: the mode hears of it.
    pub(super) async fn announce(&self, message: Arc<AgentMessage>) {
        self.tell(Event::MessageStart {
            message: message.clone(),
        })
        .await;
        self.tell(Event::MessageEnd { message }).await;
    }
}

fn bash_message(
    command: &str,
    result: &BashOutcome,
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
