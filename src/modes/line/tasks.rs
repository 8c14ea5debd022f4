//! Tasks beside the client's loop: opening the session, prompts, slash commands and shell
//! commands.

use futures::FutureExt;
use tokio::task::{self, JoinError};

use super::client::Client;
use super::commands::{self, Command, CommandOutput};
use super::sanitize::sanitize;
use pi_agent::queue::Delivery;
use pi_app::{Accepted, BashOutcome, Behavior, PromptContent, PromptError, PromptRequest, Source};

pub struct Task {
    kind: TaskKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TaskKind {
    Open,
    Prompt,
    /// A slash command of line mode. It ends by itself and must not be cancelled.
    Command(Command),
    Bash,
    Queue,
}

/// How a task ended.
pub enum TaskOutcome {
    Opened,
    Prompt(Result<Accepted, PromptError>),
    Command(CommandOutput),
    Bash(Result<BashOutcome, String>),
    /// Queued messages that were taken back.
    Queue(Vec<String>),
}

impl Client {
    /// Opens the session as a task, because `session_start` handlers may open dialogs.
    pub(super) fn open(&mut self) {
        let session = self.session.clone();
        self.start(TaskKind::Open, async move {
            session.open().await;
            TaskOutcome::Opened
        });
    }

    pub(super) fn prompt(&mut self, prompt: PromptContent) {
        if self.is_running(&TaskKind::Open) {
            self.prompts.push_back(prompt);
            return;
        }
        let session = self.session.clone();
        self.start(TaskKind::Prompt, async move {
            let request = PromptRequest {
                text: prompt.text,
                images: prompt.images,
                source: Source::Interactive,
                while_busy: Behavior::Queue(Delivery::Steer),
                commands: true,
            };
            TaskOutcome::Prompt(session.prompt(request).await)
        });
    }

    pub(super) fn run_command(&mut self, command: Command) {
        let session = self.session.clone();
        let kind = TaskKind::Command(command.clone());
        self.start(kind, async move {
            TaskOutcome::Command(commands::run(&session, command).await)
        });
    }

    pub(super) fn run_bash(&mut self, command: &str, excluded: bool) {
        if command.is_empty() {
            return;
        }
        if self.is_running(&TaskKind::Bash) {
            let text = self
                .renderer
                .error("a command is running already; Escape ends it");
            return self.queue_output(&text);
        }
        let (session, command) = (self.session.clone(), command.to_string());
        self.start(TaskKind::Bash, async move {
            TaskOutcome::Bash(session.user_bash(&command, excluded).await)
        });
    }

    /// Moves queued messages back to the prompt.
    pub(super) fn take_queue(&mut self) {
        if self.session.state().pending_message_count == 0 {
            return;
        }
        let session = self.session.clone();
        self.start(TaskKind::Queue, async move {
            let (steering, follow_up) = session.clear_queue().await;
            TaskOutcome::Queue(steering.into_iter().chain(follow_up).collect())
        });
    }

    /// Starts a task. It is polled at once, so that an abort right after it finds something to
    /// abort.
    fn start(&mut self, kind: TaskKind, work: impl Future<Output = TaskOutcome> + Send + 'static) {
        let mut work = Box::pin(work);
        let done = (&mut work).now_or_never();
        let work = async move {
            match done {
                Some(done) => done,
                None => work.await,
            }
        };
        let id = self.tasks.spawn(work).id();
        self.running.insert(id, Task { kind });
    }

    /// Whether a sign-in waits for the browser, or for a code typed elsewhere.
    pub(super) fn is_signing_in(&self) -> bool {
        let is_login = |task: &Task| matches!(task.kind, TaskKind::Command(Command::Login(_)));
        self.running.values().any(is_login)
    }

    fn is_running(&self, kind: &TaskKind) -> bool {
        self.running.values().any(|task| task.kind == *kind)
    }

    pub(super) fn on_task_end(&mut self, done: Result<(task::Id, TaskOutcome), JoinError>) {
        let (id, done) = match done {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error)),
        };
        self.running.remove(&id);
        let text = match done {
            Ok(TaskOutcome::Prompt(Ok(accepted))) => {
                drop(accepted);
                String::new()
            }
            Ok(TaskOutcome::Prompt(Err(PromptError::Aborted))) => self.renderer.lines("Aborted."),
            Ok(TaskOutcome::Prompt(Err(error))) => self.renderer.error(&error.to_string()),
            Ok(TaskOutcome::Opened) => String::new(),
            Ok(TaskOutcome::Command(answer)) => match answer {
                Ok(text) if text.is_empty() => String::new(),
                Ok(text) => self.renderer.lines(&sanitize(&text)),
                Err(error) => self.renderer.error(&error),
            },
            Ok(TaskOutcome::Bash(Ok(outcome))) => self.renderer.lines(&describe_bash(&outcome)),
            Ok(TaskOutcome::Bash(Err(error))) => self.renderer.error(&error),
            Ok(TaskOutcome::Queue(texts)) => {
                if self.draft.is_empty() {
                    self.draft = texts.join("\n\n");
                }
                String::new()
            }
            Err(error) => self.renderer.error(&error.to_string()),
        };
        self.queue_output(&text);
    }
}

fn describe_bash(outcome: &BashOutcome) -> String {
    let mut lines = Vec::new();
    let output = sanitize(outcome.output.trim_end_matches('\n'));
    if !output.is_empty() {
        lines.push(output);
    }
    if outcome.truncated
        && let Some(path) = &outcome.full_output_path
    {
        lines.push(format!("(cut; all of it: {path})"));
    }
    match outcome.exit_code {
        _ if outcome.cancelled => lines.push("(aborted)".to_string()),
        Some(0) if lines.is_empty() => lines.push("(no output)".to_string()),
        Some(0) => {}
        Some(code) => lines.push(format!("(exit code {code})")),
        None => lines.push("(no exit code)".to_string()),
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_command_ends_with_its_outcome() {
        let outcome = |output: &str, exit_code, cancelled| BashOutcome {
            output: output.into(),
            exit_code,
            cancelled,
            truncated: false,
            full_output_path: None,
        };
        assert_eq!(describe_bash(&outcome("a\n", Some(0), false)), "a");
        assert_eq!(describe_bash(&outcome("", Some(0), false)), "(no output)");
        assert_eq!(
            describe_bash(&outcome("a", Some(2), false)),
            "a\n(exit code 2)"
        );
        assert_eq!(describe_bash(&outcome("a", None, true)), "a\n(aborted)");
    }
}
