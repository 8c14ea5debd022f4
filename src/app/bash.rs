//! Shell commands that the user runs, and that the model hears of later.

use std::sync::Arc;

use super::AgentSession;
use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::ai::message::now;
use crate::session::message::BashExecutionMessage;
use crate::tools::shell_command::{UserCommandResult, run_user_command};

pub type BashOutcome = UserCommandResult;

impl AgentSession {
    /// Runs a command in the session's folder and records it: in the
    /// conversation at once, or before the next prompt if the agent is at work.
    pub async fn bash(
        &self,
        command: &str,
        exclude_from_context: bool,
    ) -> Result<BashOutcome, String> {
        let cancel = self.commands.child_token();
        self.state.lock().bash = Some(cancel.clone());
        let cwd = self.cwd();
        let result = run_user_command(command, &cwd, &self.tool_options().shell(), cancel, &|_| {})
            .await
            .map_err(|error| error.0)?;
        let message = Arc::new(AgentMessage::BashExecution(BashExecutionMessage {
            command: command.to_string(),
            output: result.output.clone(),
            exit_code: result.exit_code,
            cancelled: result.cancelled,
            truncated: result.truncated,
            full_output_path: result.full_output_path.clone(),
            timestamp: now(),
            exclude_from_context: exclude_from_context.then_some(true),
        }));
        let news = {
            let mut state = self.state.lock();
            if state.run.is_some() {
                state.deferred_bash.push(message);
                None
            } else {
                state.say_anyway(message)
            }
        };
        self.tell_of_store(news).await;
        Ok(result)
    }

    /// Ends the command that was started last.
    pub fn abort_bash(&self) {
        if let Some(cancel) = &self.state.lock().bash {
            cancel.cancel();
        }
    }

    /// Commands that ran during the last run join the conversation.
    pub(super) async fn flush_bash(&self) {
        let news = {
            let mut state = self.state.lock();
            let deferred = std::mem::take(&mut state.deferred_bash);
            let news = deferred
                .into_iter()
                .filter_map(|message| state.say_anyway(message));
            // The last one counts those before.
            news.last()
        };
        self.tell_of_store(news).await;
    }

    /// The last attempt before the session is left.
    pub(super) async fn flush_unsaved(&self) {
        let news = self.state.lock().store_unsaved();
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
