//! Executes commands. Each arm calls the part of the session that does the work.

use std::sync::Arc;

use super::{CommandOutcome, CommandResult, ImmediateCommand, SessionCommand};
use crate::AgentSession;
use crate::prompt::Accepted;
use pi_agent::AgentMessage;
use pi_session::Entry;

impl AgentSession {
    /// Executes a command, and returns when it is done.
    pub async fn execute(&self, command: SessionCommand) -> CommandResult {
        Ok(match command {
            SessionCommand::Prompt(request) => {
                CommandOutcome::Accepted(self.prompt(request).await?)
            }
            SessionCommand::Queue {
                delivery,
                text,
                images,
            } => {
                self.queue(delivery, text, images).await?;
                CommandOutcome::Accepted(Accepted::queued())
            }
            SessionCommand::ClearQueue => {
                let (steering, follow_up) = self.clear_queue().await;
                CommandOutcome::Dequeued {
                    steering,
                    follow_up,
                }
            }
            SessionCommand::Abort => {
                let run = self.run_id();
                self.abort();
                self.wait_work_end(run).await;
                CommandOutcome::Done
            }
            SessionCommand::AbortRetry => {
                // The event for the end of the wait precedes the outcome.
                if self.abort_retry() {
                    self.wait_idle().await;
                }
                CommandOutcome::Done
            }
            SessionCommand::NewSession { parent } => {
                CommandOutcome::Switched(self.new_session(parent).await?)
            }
            SessionCommand::EnterSession(created) => {
                self.enter_session(*created).await?;
                CommandOutcome::Switched(true)
            }
            SessionCommand::SwitchSession { path, cwd } => {
                CommandOutcome::Switched(self.switch_session(&path, cwd.as_deref()).await?)
            }
            SessionCommand::ImportSession { path, cwd } => {
                CommandOutcome::Switched(self.import_jsonl(&path, cwd.as_deref()).await?)
            }
            SessionCommand::Fork { entry, position } => {
                CommandOutcome::Forked(self.fork(&entry, position).await?)
            }
            SessionCommand::CloneSession => CommandOutcome::Switched(self.clone_session().await?),
            SessionCommand::NavigateTree { target, options } => {
                CommandOutcome::Navigated(self.navigate(&target, options).await?)
            }
            SessionCommand::SetModel { model, source } => {
                CommandOutcome::Model(self.set_model(model, source).await?)
            }
            SessionCommand::CycleModel { backward } => {
                CommandOutcome::CycledModel(self.cycle_model(backward).await?)
            }
            SessionCommand::Compact { focus } => {
                CommandOutcome::Compacted(self.compact(focus.as_deref()).await?)
            }
            SessionCommand::UserCommand(request) => {
                CommandOutcome::UserCommand(self.user_commands.run(request).await?)
            }
            SessionCommand::SetName(name) => {
                self.set_session_name(&name).await?;
                CommandOutcome::Done
            }
            SessionCommand::ExportHtml { path } => {
                CommandOutcome::Exported(self.export_html(path.as_deref()).await?)
            }
            SessionCommand::Reload { release } => {
                CommandOutcome::Reloaded(self.reload_with(release.as_deref()).await?)
            }
            SessionCommand::AskTrust => CommandOutcome::Trust(self.ask_trust_anew().await?),
            SessionCommand::Immediate(command) => return self.execute_now(command),
        })
    }

    /// Executes a command that never waits. Its first events are emitted when this returns, unless
    /// the mode is slow.
    pub fn execute_now(&self, command: ImmediateCommand) -> CommandResult {
        match command {
            ImmediateCommand::Abort => self.abort(),
            ImmediateCommand::AbortRun => self.cancel_run(),
            ImmediateCommand::AbortRetry => _ = self.abort_retry(),
            ImmediateCommand::AbortUserCommand => self.user_commands.abort_last(),
            ImmediateCommand::AbortSummary => self.abort_summary(),
            ImmediateCommand::Shutdown => self.shutdown_request.send(),
            ImmediateCommand::SendMessage { message, options } => {
                self.send_message(message, options)?;
            }
            ImmediateCommand::SendUserMessage { content, options } => {
                self.send_user_message(content, options);
            }
            ImmediateCommand::QueueUserMessage {
                delivery,
                text,
                images,
            } => self.queue_user_message_now(delivery, &text, &images),
            ImmediateCommand::SetQueueMode { delivery, mode } => {
                self.set_queue_mode(delivery, mode);
            }
            ImmediateCommand::SetAutoCompaction(enabled) => self.set_auto_compaction(enabled),
            ImmediateCommand::SetAutoRetry(enabled) => self.set_auto_retry(enabled),
            ImmediateCommand::SetThinkingLevel(level) => self.set_thinking_level(level),
            ImmediateCommand::CycleThinkingLevel => {
                return Ok(CommandOutcome::CycledLevel(self.cycle_thinking_level()));
            }
            ImmediateCommand::SetScopedModels(models) => self.state.lock().scope = models,
            ImmediateCommand::SetActiveTools(names) => self.tools.activate(names),
            ImmediateCommand::SetTheme(name) => {
                let set = self.settings.set_theme(&name);
                set.map_err(|error| error.to_string())?;
            }
            ImmediateCommand::SetName(name) => self.set_session_name_now(&name)?,
            ImmediateCommand::AppendName(name) => {
                return Ok(CommandOutcome::Appended(self.rename(&name)?));
            }
            ImmediateCommand::AppendEntry { custom_type, data } => {
                let entry = {
                    let mut state = self.state.lock();
                    (state.writable()?).append_custom(&custom_type, data.as_ref())?
                };
                self.emit_entry_appended(&entry);
                return Ok(appended(&entry));
            }
            ImmediateCommand::AppendMessage(mut message) => {
                self.check_images(&mut message.content);
                let entry = self.state.lock().append_custom_message(&message)?;
                return Ok(appended(&entry));
            }
            ImmediateCommand::SetLabel { entry, label } => {
                let mut state = self.state.lock();
                let entry = (state.writable()?).append_label(&entry, label.as_deref())?;
                return Ok(appended(&entry));
            }
            ImmediateCommand::RecordUserCommand {
                command,
                result,
                exclude_from_context,
            } => (self.user_commands).record_result(&command, &result, exclude_from_context),
            ImmediateCommand::ReplaceMessages { known, messages } => {
                let messages: Vec<Arc<AgentMessage>> = messages.into_iter().map(Arc::new).collect();
                self.state.lock().replace_messages(known, messages);
            }
            ImmediateCommand::ExportJsonl { path } => {
                return Ok(CommandOutcome::Exported(
                    self.export_jsonl(path.as_deref())?,
                ));
            }
        }
        Ok(CommandOutcome::Done)
    }
}

fn appended(entry: &Entry) -> CommandOutcome {
    CommandOutcome::Appended(entry.id.clone())
}
