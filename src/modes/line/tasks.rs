//! Tasks beside the client's loop: opening the session, prompts, slash commands and shell
//! commands.

use futures::FutureExt;
use tokio::task::{self, JoinError};

use super::client::Client;
use super::commands::{self, Command, CommandOutput};
use super::outcome::describe;
use super::sanitize::sanitize;
use pi_agent::queue::Delivery;
use pi_app::{
    Behavior, CommandOutcome, CommandResult, ErrorCode, PromptContent, PromptRequest,
    SessionCommand, Source, UserCommandRequest, UserCommandRunner,
};

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
    Command(CommandOutput),
    /// A prompt, a shell command, or queued messages that were taken back.
    Session(CommandResult),
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
            TaskOutcome::Session(session.execute(SessionCommand::Prompt(request)).await)
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
        let session = self.session.clone();
        let request = UserCommandRequest {
            command: command.to_string(),
            exclude_from_context: excluded,
            runner: UserCommandRunner::Extensions,
        };
        self.start(TaskKind::Bash, async move {
            TaskOutcome::Session(session.execute(SessionCommand::UserCommand(request)).await)
        });
    }

    /// Moves queued messages back to the prompt.
    pub(super) fn take_queue(&mut self) {
        if self.session.state().pending_message_count == 0 {
            return;
        }
        let session = self.session.clone();
        self.start(TaskKind::Queue, async move {
            TaskOutcome::Session(session.execute(SessionCommand::ClearQueue).await)
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
            Ok(TaskOutcome::Opened) => String::new(),
            Ok(TaskOutcome::Command(answer)) => match answer {
                Ok(text) if text.is_empty() => String::new(),
                Ok(text) => self.renderer.lines(&sanitize(&text)),
                Err(error) => self.renderer.error(&error),
            },
            Ok(TaskOutcome::Session(result)) => match result {
                Ok(outcome @ CommandOutcome::Dequeued { .. }) => {
                    if self.draft.is_empty() {
                        self.draft = describe(&self.session, outcome);
                    }
                    String::new()
                }
                // The run of a prompt begins when the outcome is dropped.
                Ok(outcome) => match describe(&self.session, outcome) {
                    text if text.is_empty() => String::new(),
                    text => self.renderer.lines(&text),
                },
                Err(error) if error.code == ErrorCode::Aborted => self.renderer.lines("Aborted."),
                Err(error) => self.renderer.error(&error.text),
            },
            Err(error) => self.renderer.error(&error.to_string()),
        };
        self.queue_output(&text);
    }
}
