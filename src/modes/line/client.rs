//! The conversation with the user. Nothing in here waits for the session: what
//! takes time is a job beside the loop, so that keys, dialogs and events are
//! always dealt with.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::{self, JoinSet};
use tokio::time::sleep_until;

use super::commands::{self, Command};
use super::dialog::{Dialog, Verdict};
use super::jobs::{Done, Job};
use super::screen::Screen;
use super::terminal::{Heard, Said, Terminal, Want};
use crate::agent::event::{Event, UiAnswer, UiMethod};
use crate::app::{AgentSession, PromptContent};

/// Within it a second Ctrl-C at the prompt quits.
const TWICE: Duration = Duration::from_secs(2);
/// How far the clocks of a question and of its dialog may be apart.
const CLOCKS: Duration = Duration::from_millis(250);
/// Bytes that may wait to be printed while the user types; then the agent waits.
const HELD: usize = 256 * 1024;

pub struct Client {
    pub session: Arc<AgentSession>,
    pub screen: Screen,
    pub terminal: Terminal,
    pub events: mpsc::Receiver<Arc<Event>>,
    pub console: mpsc::Receiver<String>,
    /// From the command line; said one after the other.
    pub prompts: VecDeque<PromptContent>,
    pub(super) jobs: JoinSet<Done>,
    pub(super) running: HashMap<task::Id, Job>,
    dialogs: VecDeque<Dialog>,
    /// There may be dialogs that nobody asks any more.
    withdrawn: watch::Receiver<u64>,
    /// The dialog whose answer is wanted, and the text that this began with.
    asked: Option<(String, String)>,
    /// What was typed of it when something had to be printed.
    answering: Option<String>,
    /// Printed as soon as the user does not type.
    out: String,
    /// What the next prompt begins with.
    pub(super) draft: String,
    /// A message is being typed while the agent works.
    typing: Option<String>,
    interrupted: Option<Instant>,
    leaving: Option<u8>,
}

impl Client {
    pub fn new(
        session: Arc<AgentSession>,
        screen: Screen,
        terminal: Terminal,
        events: mpsc::Receiver<Arc<Event>>,
        console: mpsc::Receiver<String>,
        prompts: Vec<PromptContent>,
    ) -> Self {
        Self {
            withdrawn: session.extensions().withdrawn_dialogs(),
            session,
            screen,
            terminal,
            events,
            console,
            prompts: prompts.into(),
            jobs: JoinSet::new(),
            running: HashMap::new(),
            dialogs: VecDeque::new(),
            asked: None,
            answering: None,
            out: String::new(),
            draft: String::new(),
            typing: None,
            interrupted: None,
            leaving: None,
        }
    }

    /// Returns the exit code when the user, or an extension, has had enough.
    pub async fn run(&mut self) -> io::Result<u8> {
        self.open();
        // One for all rounds: what comes between two of them counts.
        let interrupt = tokio::signal::ctrl_c();
        tokio::pin!(interrupt);
        loop {
            while self.out.len() < HELD
                && let Ok(event) = self.events.try_recv()
            {
                self.on_event(&event);
            }
            self.next_prompt();
            if let Some(code) = self.leaving {
                self.flush()?;
                return Ok(code);
            }
            self.settle().await?;
            let wake = self.wake();
            let busy = self.session.is_working();
            tokio::select! {
                Some(event) = self.events.recv(), if self.out.len() < HELD => {
                    self.on_event(&event);
                }
                Some(text) = self.console.recv(), if self.out.len() < HELD => self.on_console(&text),
                heard = self.terminal.heard() => self.on_heard(heard)?,
                Some(done) = self.jobs.join_next_with_id(), if !self.jobs.is_empty() => {
                    // It comes after what was told before it.
                    while let Ok(event) = self.events.try_recv() {
                        self.on_event(&event);
                    }
                    self.on_done(done);
                }
                Ok(()) = self.withdrawn.changed() => self.forget_dialogs(),
                () = self.session.wait_idle(), if busy => {}
                () = self.session.asked_to_leave() => self.leaving = Some(0),
                () = sleep_until(wake.unwrap_or_else(Instant::now).into()), if wake.is_some() => {
                    self.on_time();
                }
                Ok(()) = &mut interrupt => {
                    interrupt.set(tokio::signal::ctrl_c());
                    let heard = self.terminal.stop().await;
                    let wanted = heard.wanted.clone();
                    self.on_heard(heard)?;
                    // A terminal that edits lines by itself shows `^C`.
                    self.screen.prompted();
                    self.on_heard(Heard { wanted, said: Said::Interrupt })?;
                }
            }
        }
    }

    /// Asks the terminal for what is needed now, and prints what waits.
    async fn settle(&mut self) -> io::Result<()> {
        loop {
            if matches!(self.terminal.wanted(), None | Some(Want::Keys)) {
                self.flush()?;
            }
            let dialog = self.dialogs.front().map(|dialog| dialog.id.clone());
            let fits = match self.terminal.wanted() {
                None => false,
                Some(Want::Answer { many_lines, .. }) => {
                    // Whole lines are shown above the answer.
                    let holds = *many_lines && self.terminal.is_plain();
                    let asked = self.asked.as_ref().map(|(id, _)| id.clone());
                    dialog.is_some() && asked == dialog && (holds || !self.out.ends_with('\n'))
                }
                Some(Want::Message { .. }) => dialog.is_none(),
                Some(Want::Keys) => dialog.is_none() && self.typing.is_none() && self.is_working(),
                Some(Want::Prompt { .. }) => {
                    dialog.is_none()
                        && !self.is_working()
                        && self.out.is_empty()
                        && self.draft.is_empty()
                }
            };
            if fits {
                return Ok(());
            }
            if self.terminal.wanted().is_some() {
                let heard = self.terminal.stop().await;
                self.on_heard(heard)?;
                if self.leaving.is_some() {
                    return Ok(());
                }
                continue;
            }
            let want = self.next_want();
            self.flush()?;
            if want != Want::Keys {
                // Where the line editor begins; a dumb terminal's prompt follows.
                self.screen.entered();
            }
            let prompt = self.terminal.want(want);
            if !prompt.is_empty() {
                self.screen.prompted();
                print(&prompt)?;
            }
            return Ok(());
        }
    }

    fn next_want(&mut self) -> Want {
        let now = Instant::now();
        self.keep_answer();
        if let Some(dialog) = self.dialogs.front() {
            if self.asked.is_none() {
                self.asked = Some((dialog.id.clone(), dialog.prefill().to_string()));
                let text = self.screen.lines(&dialog.text(now));
                self.out += &text;
            }
            return Want::Answer {
                prompt: dialog.prompt(),
                text: self
                    .answering
                    .take()
                    .unwrap_or_else(|| dialog.prefill().to_string()),
                many_lines: dialog.many_lines(),
            };
        }
        if let Some(text) = self.typing.take() {
            self.out += &self.screen.start_line();
            return Want::Message { text };
        }
        if self.is_working() {
            return Want::Keys;
        }
        for note in self.session.take_notes() {
            self.out += &self.screen.note(&note);
        }
        self.out += &self.screen.settle();
        Want::Prompt {
            text: std::mem::take(&mut self.draft),
        }
    }

    /// What was typed for a dialog that is gone may have been meant for the model.
    fn keep_answer(&mut self) {
        let front = self.dialogs.front().map(|dialog| &dialog.id);
        if self.asked.as_ref().map(|(id, _)| id) == front {
            return;
        }
        let prefill = self.asked.take().map(|(_, prefill)| prefill);
        if let Some(text) = self.answering.take()
            && self.draft.is_empty()
            && Some(&text) != prefill.as_ref()
        {
            self.draft = text;
        }
    }

    fn is_working(&self) -> bool {
        self.session.is_working() || !self.running.is_empty()
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::ExtensionUiRequest(request) = event {
            if let Some(dialog) = Dialog::new(request, Instant::now()) {
                if self.session.extensions().has_dialog(&dialog.id) {
                    self.dialogs.push_back(dialog);
                }
                return;
            }
            if let UiMethod::SetEditorText { text } = &request.method {
                self.draft = super::text::clean(text);
            }
        }
        self.out += &self.screen.show(event, Instant::now());
    }

    fn on_console(&mut self, text: &str) {
        self.out += &self.screen.console(text);
    }

    fn on_heard(&mut self, heard: Heard) -> io::Result<()> {
        let Heard { wanted, said } = heard;
        if wanted != Want::Keys || matches!(said, Said::Line(_)) {
            match said {
                // The terminal that reads lines has shown a prompt.
                Said::Stopped(_) if self.terminal.is_plain() => {}
                Said::Interrupt if self.terminal.is_plain() => {}
                _ => self.screen.entered(),
            }
        }
        match (wanted, said) {
            (_, Said::Failed(error)) => self.on_failure(&error)?,
            (Want::Answer { .. }, said) => self.on_answer(said),
            (Want::Prompt { .. } | Want::Message { .. } | Want::Keys, Said::Line(line)) => {
                self.on_line(&line);
            }
            (Want::Prompt { .. }, Said::Interrupt) => self.on_interrupt(),
            (Want::Prompt { .. }, Said::End) => self.leaving = Some(0),
            (Want::Prompt { .. }, Said::Escape(text) | Said::Stopped(text)) => {
                // An extension may have put another text there just now.
                if self.draft.is_empty() {
                    self.draft = text;
                }
            }
            (Want::Message { .. }, Said::Stopped(text)) => self.typing = Some(text),
            (Want::Message { .. }, Said::Escape(text)) => {
                self.draft = text;
                self.abort();
            }
            (Want::Message { .. } | Want::Keys, Said::Interrupt | Said::Escape(_)) => self.abort(),
            (Want::Message { .. }, Said::End) => {}
            (Want::Keys, Said::End) => self.leaving = Some(0),
            (_, Said::Typed(text)) => self.typing = Some(text),
            (Want::Keys, Said::Stopped(_)) => {}
        }
        Ok(())
    }

    /// Where the line editor does not work, lines are read as they come.
    fn on_failure(&mut self, error: &str) -> io::Result<()> {
        if self.terminal.is_plain() {
            return Err(io::Error::other(error.to_string()));
        }
        super::editor::restore();
        self.terminal = Terminal::plain()?;
        self.out += &self.screen.note(&format!(
            "the line editor does not work on this terminal ({error}); going on without it. \
             Ctrl-C aborts"
        ));
        Ok(())
    }

    fn on_answer(&mut self, said: Said) {
        match said {
            Said::Line(line) => {
                let Some(dialog) = self.dialogs.front() else {
                    return;
                };
                match dialog.judge(&line) {
                    Verdict::Answer(answer) => self.answer(answer),
                    Verdict::Again(why) => self.out += &self.screen.lines(&why),
                }
            }
            Said::Escape(_) | Said::End => self.answer(UiAnswer::Cancelled),
            Said::Interrupt => {
                self.answer(UiAnswer::Cancelled);
                self.abort();
            }
            Said::Stopped(text) => self.answering = Some(text),
            Said::Typed(_) | Said::Failed(_) => {}
        }
    }

    fn answer(&mut self, answer: UiAnswer) {
        self.asked = None;
        let Some(dialog) = self.dialogs.pop_front() else {
            return;
        };
        if answer == UiAnswer::Cancelled {
            self.out += &self.screen.lines("(cancelled)");
        }
        if !self.session.extensions().answer_dialog(&dialog.id, answer) {
            self.out += &self.screen.lines("(nobody waits for this answer any more)");
        }
    }

    fn on_interrupt(&mut self) {
        if self.signs_in() {
            return self.abort();
        }
        let now = Instant::now();
        let again = self
            .interrupted
            .is_some_and(|before| now.saturating_duration_since(before) < TWICE);
        if again {
            self.leaving = Some(0);
            return;
        }
        self.interrupted = Some(now);
        let hint = self.screen.style.dim("(Ctrl-C again or Ctrl-D quits)");
        self.out += &self.screen.lines(&hint);
    }

    fn on_line(&mut self, line: &str) {
        let text = line.trim();
        if text.is_empty() {
            return;
        }
        if let Some(command) = text.strip_prefix('!') {
            let (command, excluded) = match command.strip_prefix('!') {
                Some(command) => (command, true),
                None => (command, false),
            };
            return self.run_bash(command.trim(), excluded);
        }
        match commands::parse(text) {
            Some(Command::Quit) => self.leaving = Some(0),
            Some(command) => self.run_command(command),
            None => {
                if !self.is_working() {
                    self.screen.typed(text);
                }
                self.prompt(PromptContent {
                    text: text.to_string(),
                    images: Vec::new(),
                });
            }
        }
    }

    /// The next one of the command line's, when there is nothing else to do.
    fn next_prompt(&mut self) {
        if self.is_working() || self.leaving.is_some() {
            return;
        }
        if let Some(prompt) = self.prompts.pop_front() {
            self.prompt(prompt);
        }
    }

    /// Stops the run, commands, and the wait for handlers.
    fn abort(&mut self) {
        self.session.abort();
        self.session.abort_bash();
        self.prompts.clear();
        self.take_queue();
    }

    /// When something has to be done even if nothing happens.
    fn wake(&self) -> Option<Instant> {
        let deadlines = self.dialogs.iter().filter_map(|dialog| dialog.deadline);
        deadlines.min()
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        let before = self.dialogs.len();
        self.dialogs
            .retain(|dialog| dialog.deadline.is_none_or(|deadline| deadline > now));
        if self.dialogs.len() < before {
            self.out += &self.screen.lines("(no answer in time)");
        }
    }

    /// Those that nobody asks any more go, but for those whose time is up.
    fn forget_dialogs(&mut self) {
        let soon = Instant::now() + CLOCKS;
        let extensions = self.session.extensions();
        self.dialogs.retain(|dialog| {
            extensions.has_dialog(&dialog.id)
                || dialog.deadline.is_some_and(|deadline| deadline <= soon)
        });
        let front = self.dialogs.front().map(|dialog| &dialog.id);
        if self.asked.as_ref().is_some_and(|(id, _)| Some(id) != front) {
            self.out += &self.screen.lines("(the question was withdrawn)");
        }
    }

    pub(super) fn say(&mut self, text: &str) {
        self.out += text;
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.out);
        match out.is_empty() {
            true => Ok(()),
            false => print(&out),
        }
    }

    /// The program ends: extensions have their last word, but cannot ask any
    /// more.
    pub async fn close(self, code: u8) -> u8 {
        let Self {
            session,
            mut screen,
            terminal,
            mut events,
            mut console,
            ..
        } = self;
        terminal.close().await;
        let shutdown = session.shutdown(code);
        tokio::pin!(shutdown);
        let code = loop {
            tokio::select! {
                code = &mut shutdown => break code,
                Some(event) = events.recv() => {
                    if let Event::ExtensionUiRequest(request) = &*event
                        && request.method.is_question()
                    {
                        session.answer_ui(&request.id, UiAnswer::Cancelled);
                        continue;
                    }
                    // The terminal may be gone.
                    let _ = print(&screen.show(&event, Instant::now()));
                }
                Some(text) = console.recv() => {
                    let _ = print(&screen.console(&text));
                }
                // Impatience is allowed.
                Ok(()) = tokio::signal::ctrl_c() => break code,
            }
        };
        while let Ok(text) = console.try_recv() {
            let _ = print(&screen.console(&text));
        }
        code
    }
}

/// In raw mode the terminal does not return to the beginning of a line by
/// itself; elsewhere a return more does no harm.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.replace('\n', "\r\n").as_bytes())?;
    out.flush()
}
