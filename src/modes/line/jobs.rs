//! What takes time and runs beside the conversation: prompts and commands on
//! their way, shell commands.

use futures::FutureExt;
use tokio::task::{self, JoinError};

use super::client::Client;
use super::commands::{self, Answer, Command};
use super::text::clean;
use crate::agent::queue::Delivery;
use crate::app::{
    Accepted, BashOutcome, Behavior, PromptContent, PromptError, PromptRequest, Source,
};

pub struct Job {
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Open,
    Prompt,
    /// One of ours: it ends by itself, and must not be cut off.
    Command(Command),
    Bash,
    Queue,
}

/// How a job ended.
pub enum Done {
    Opened,
    Prompt(Result<Accepted, PromptError>),
    Command(Answer),
    Bash(Result<BashOutcome, String>),
    /// Messages that the agent will not read.
    Queue(Vec<String>),
}

impl Client {
    /// `session_start` handlers may ask questions already.
    pub(super) fn open(&mut self) {
        let session = self.session.clone();
        self.start(Kind::Open, async move {
            session.open().await;
            Done::Opened
        });
    }

    pub(super) fn prompt(&mut self, prompt: PromptContent) {
        if self.runs(&Kind::Open) {
            self.prompts.push_back(prompt);
            return;
        }
        let session = self.session.clone();
        self.start(Kind::Prompt, async move {
            let request = PromptRequest {
                text: prompt.text,
                images: prompt.images,
                source: Source::Interactive,
                while_busy: Behavior::Queue(Delivery::Steer),
                commands: true,
            };
            Done::Prompt(session.prompt(request).await)
        });
    }

    pub(super) fn run_command(&mut self, command: Command) {
        let session = self.session.clone();
        let kind = Kind::Command(command.clone());
        self.start(kind, async move {
            Done::Command(commands::run(&session, command).await)
        });
    }

    pub(super) fn run_bash(&mut self, command: &str, excluded: bool) {
        if command.is_empty() {
            return;
        }
        if self.runs(&Kind::Bash) {
            let text = self
                .screen
                .error("a command is running already; Escape ends it");
            return self.say(&text);
        }
        let (session, command) = (self.session.clone(), command.to_string());
        self.start(Kind::Bash, async move {
            Done::Bash(session.user_bash(&command, excluded).await)
        });
    }

    /// What waits for the agent goes back to the user.
    pub(super) fn take_queue(&mut self) {
        if self.session.state().pending_message_count == 0 {
            return;
        }
        let session = self.session.clone();
        self.start(Kind::Queue, async move {
            let (steering, follow_up) = session.clear_queue().await;
            Done::Queue(steering.into_iter().chain(follow_up).collect())
        });
    }

    /// Begun at once, as far as it goes without waiting: an abort that comes right
    /// after it finds something to abort.
    fn start(&mut self, kind: Kind, work: impl Future<Output = Done> + Send + 'static) {
        let mut work = Box::pin(work);
        let done = (&mut work).now_or_never();
        let work = async move {
            match done {
                Some(done) => done,
                None => work.await,
            }
        };
        let id = self.jobs.spawn(work).id();
        self.running.insert(id, Job { kind });
    }

    /// A sign-in waits for the browser, or for a code to be typed in elsewhere.
    pub(super) fn signs_in(&self) -> bool {
        let is_login = |job: &Job| matches!(job.kind, Kind::Command(Command::Login(_)));
        self.running.values().any(is_login)
    }

    fn runs(&self, kind: &Kind) -> bool {
        self.running.values().any(|job| job.kind == *kind)
    }

    pub(super) fn on_done(&mut self, done: Result<(task::Id, Done), JoinError>) {
        let (id, done) = match done {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error)),
        };
        self.running.remove(&id);
        let text = match done {
            Ok(Done::Prompt(Ok(accepted))) => {
                drop(accepted);
                String::new()
            }
            Ok(Done::Prompt(Err(PromptError::Aborted))) => self.screen.lines("Aborted."),
            Ok(Done::Prompt(Err(error))) => self.screen.error(&error.to_string()),
            Ok(Done::Opened) => String::new(),
            Ok(Done::Command(answer)) => match answer {
                Ok(text) if text.is_empty() => String::new(),
                Ok(text) => self.screen.lines(&clean(&text)),
                Err(error) => self.screen.error(&error),
            },
            Ok(Done::Bash(Ok(outcome))) => self.screen.lines(&describe(&outcome)),
            Ok(Done::Bash(Err(error))) => self.screen.error(&error),
            Ok(Done::Queue(texts)) => {
                if self.draft.is_empty() {
                    self.draft = texts.join("\n\n");
                }
                String::new()
            }
            Err(error) => self.screen.error(&error.to_string()),
        };
        self.say(&text);
    }
}

fn describe(outcome: &BashOutcome) -> String {
    let mut lines = Vec::new();
    let output = clean(outcome.output.trim_end_matches('\n'));
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
    fn the_end_of_a_shell_command() {
        let outcome = |output: &str, exit_code, cancelled| BashOutcome {
            output: output.into(),
            exit_code,
            cancelled,
            truncated: false,
            full_output_path: None,
        };
        assert_eq!(describe(&outcome("a\n", Some(0), false)), "a");
        assert_eq!(describe(&outcome("", Some(0), false)), "(no output)");
        assert_eq!(describe(&outcome("a", Some(2), false)), "a\n(exit code 2)");
        assert_eq!(describe(&outcome("a", None, true)), "a\n(aborted)");
    }
}
