//! Dialogs while the session is loaded, before there is a prompt: whether the project is trusted,
//! and questions of extensions that are being loaded. They are answered in lines, which the
//! terminal edits.

use std::collections::VecDeque;
use std::io::BufRead;
use std::time::Instant;

use tokio::sync::oneshot;

use super::dialog::{Dialog, ParsedAnswer};
use pi_agent::event::{Event, UiAnswer};
use pi_app::AgentSession;

pub struct StartupDialogs<'a> {
    session: &'a AgentSession,
    waiting: VecDeque<Dialog>,
    /// The line that a thread reads. It outlives a dialog that was withdrawn.
    line: Option<oneshot::Receiver<Option<String>>>,
}

impl<'a> StartupDialogs<'a> {
    pub fn new(session: &'a AgentSession) -> Self {
        Self {
            session,
            waiting: VecDeque::new(),
            line: None,
        }
    }

    /// Returns the text to print if the event opens a dialog.
    pub fn open(&mut self, event: &Event) -> Option<String> {
        let Event::ExtensionUiRequest(request) = event else {
            return None;
        };
        let dialog = Dialog::new(request, Instant::now())?;
        self.waiting.push_back(dialog);
        Some(match self.waiting.len() {
            1 => self.ask(),
            _ => String::new(),
        })
    }

    /// Returns the next line of the user; `None` at the end of the input.
    pub async fn next_line(&mut self) -> Option<String> {
        match &mut self.line {
            Some(line) => {
                let read = line.await.ok().flatten();
                self.line = None;
                read
            }
            None => std::future::pending().await,
        }
    }

    /// Answers the first dialog and returns the text to print.
    pub fn answer(&mut self, line: Option<String>) -> String {
        let Some(dialog) = self.waiting.front() else {
            return String::new();
        };
        let answer = match &line {
            None => UiAnswer::Cancelled,
            Some(line) => match dialog.parse_answer(line.trim_end_matches(['\r', '\n'])) {
                ParsedAnswer::Answer(answer) => answer,
                ParsedAnswer::Invalid(hint) => {
                    self.read_line();
                    return format!("{hint}\n{}", dialog_prompt(self.waiting.front()));
                }
            },
        };
        self.session.extensions().answer_dialog(&dialog.id, answer);
        self.waiting.pop_front();
        self.ask()
    }

    /// Asks the first open dialog, if there is one.
    fn ask(&mut self) -> String {
        let extensions = self.session.extensions();
        self.waiting
            .retain(|dialog| extensions.has_dialog(&dialog.id));
        let Some(dialog) = self.waiting.front() else {
            return String::new();
        };
        let text = format!("{}\n{}", dialog.text(Instant::now()), dialog.prompt());
        self.read_line();
        text
    }

    fn read_line(&mut self) {
        if self.line.is_some() {
            return;
        }
        let (sender, line) = oneshot::channel();
        self.line = Some(line);
        let reader = std::thread::Builder::new().name("keyboard".into());
        // Without the thread the dialog counts as dismissed.
        let _ = reader.spawn(move || {
            let mut line = String::new();
            let read = std::io::stdin().lock().read_line(&mut line);
            let line = read.is_ok_and(|count| count > 0).then_some(line);
            // The session may have gone on without an answer.
            let _ = sender.send(line);
        });
    }
}

fn dialog_prompt(dialog: Option<&Dialog>) -> String {
    dialog.map(Dialog::prompt).unwrap_or_default()
}
