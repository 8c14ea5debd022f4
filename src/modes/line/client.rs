//! The event loop of the conversation with the user. It never waits for the session:
//! everything that takes time is a task beside the loop, so that keys, dialogs and events are
//! always handled.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use tokio::task::{self, JoinSet};
use tokio::time::sleep_until;

use super::commands::{self, Command};
use super::dialog::{Dialog, ParsedAnswer};
use super::render::Renderer;
use super::tasks::{Task, TaskOutcome};
use super::terminal::{InputEvent, InputRequest, InputResult, Terminal};
use pi_agent::event::{Event, UiAnswer, UiMethod};
use pi_app::{AgentSession, ImmediateCommand, PromptContent};

/// Time in which a second Ctrl-C at the prompt quits.
const QUIT_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum difference between the deadlines of an extension's dialog here and in the session.
const DEADLINE_TOLERANCE: Duration = Duration::from_millis(250);
/// Bytes of output that may wait while the user types; then the agent waits.
const MAX_PENDING_BYTES: usize = 256 * 1024;

pub struct Client {
    pub session: Arc<AgentSession>,
    pub renderer: Renderer,
    pub terminal: Terminal,
    pub events: mpsc::Receiver<Arc<Event>>,
    pub console: mpsc::Receiver<String>,
    /// Prompts of the command line that are still to be sent, in order.
    pub prompts: VecDeque<PromptContent>,
    pub(super) tasks: JoinSet<TaskOutcome>,
    pub(super) running: HashMap<task::Id, Task>,
    dialogs: VecDeque<Dialog>,
    /// Changes when extensions withdraw dialogs.
    withdrawn: watch::Receiver<u64>,
    /// Id and prefilled text of the dialog that the user is answering.
    current_dialog: Option<(String, String)>,
    /// The unfinished answer, while other output is printed.
    answer_draft: Option<String>,
    /// Output that is printed as soon as the user does not type.
    pending_output: String,
    /// The text that the next prompt begins with.
    pub(super) draft: String,
    /// The unfinished message that the user types while the agent works.
    message_draft: Option<String>,
    last_interrupt: Option<Instant>,
    exit_code: Option<u8>,
}

impl Client {
    pub fn new(
        session: Arc<AgentSession>,
        renderer: Renderer,
        terminal: Terminal,
        events: mpsc::Receiver<Arc<Event>>,
        console: mpsc::Receiver<String>,
        prompts: Vec<PromptContent>,
    ) -> Self {
        Self {
            withdrawn: session.extensions().withdrawn_dialogs(),
            session,
            renderer,
            terminal,
            events,
            console,
            prompts: prompts.into(),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            dialogs: VecDeque::new(),
            current_dialog: None,
            answer_draft: None,
            pending_output: String::new(),
            draft: String::new(),
            message_draft: None,
            last_interrupt: None,
            exit_code: None,
        }
    }

    /// Runs the loop until the user or an extension ends it, and returns the exit code.
    pub async fn run(&mut self) -> io::Result<u8> {
        self.open();
        // One future for all rounds, so that a Ctrl-C between two rounds counts.
        let interrupt = tokio::signal::ctrl_c();
        tokio::pin!(interrupt);
        loop {
            while self.pending_output.len() < MAX_PENDING_BYTES
                && let Ok(event) = self.events.try_recv()
            {
                self.on_event(&event);
            }
            self.next_prompt();
            if let Some(code) = self.exit_code {
                self.flush()?;
                return Ok(code);
            }
            self.update_input().await?;
            let deadline = self.next_deadline();
            let busy = self.session.is_working();
            tokio::select! {
                Some(event) = self.events.recv(), if self.pending_output.len() < MAX_PENDING_BYTES => {
                    self.on_event(&event);
                }
                Some(text) = self.console.recv(), if self.pending_output.len() < MAX_PENDING_BYTES => self.on_console(&text),
                input = self.terminal.next_input() => self.on_input(input)?,
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    // Events from before the end of the task are shown first.
                    while let Ok(event) = self.events.try_recv() {
                        self.on_event(&event);
                    }
                    self.on_task_end(ended);
                }
                Ok(()) = self.withdrawn.changed() => self.remove_withdrawn_dialogs(),
                () = self.session.wait_idle(), if busy => {}
                () = self.session.wait_shutdown_request() => self.exit_code = Some(0),
                () = sleep_until(deadline.unwrap_or_else(Instant::now).into()), if deadline.is_some() => {
                    self.on_deadline();
                }
                Ok(()) = &mut interrupt => {
                    interrupt.set(tokio::signal::ctrl_c());
                    let input = self.terminal.stop().await;
                    let request = input.request.clone();
                    self.on_input(input)?;
                    // A terminal that edits lines itself shows `^C`.
                    self.renderer.prompted();
                    self.on_input(InputResult { request, event: InputEvent::Interrupt })?;
                }
            }
        }
    }

    /// Requests the input that is needed now, and prints the output that waits.
    async fn update_input(&mut self) -> io::Result<()> {
        loop {
            if matches!(
                self.terminal.pending_request(),
                None | Some(InputRequest::Keys)
            ) {
                self.flush()?;
            }
            let dialog = self.dialogs.front().map(|dialog| dialog.id.clone());
            let fits = match self.terminal.pending_request() {
                None => false,
                Some(InputRequest::Answer { multiline, .. }) => {
                    // Whole lines are printed above the answer.
                    let holds = *multiline && self.terminal.is_dumb();
                    let current = self.current_dialog.as_ref().map(|(id, _)| id.clone());
                    dialog.is_some()
                        && current == dialog
                        && (holds || !self.pending_output.ends_with('\n'))
                }
                Some(InputRequest::Message { .. }) => dialog.is_none(),
                Some(InputRequest::Keys) => {
                    dialog.is_none() && self.message_draft.is_none() && self.is_working()
                }
                Some(InputRequest::Prompt { .. }) => {
                    dialog.is_none()
                        && !self.is_working()
                        && self.pending_output.is_empty()
                        && self.draft.is_empty()
                }
            };
            if fits {
                return Ok(());
            }
            if self.terminal.pending_request().is_some() {
                let input = self.terminal.stop().await;
                self.on_input(input)?;
                if self.exit_code.is_some() {
                    return Ok(());
                }
                continue;
            }
            let request = self.next_request();
            self.flush()?;
            if request != InputRequest::Keys {
                // The line editor begins here; a dumb terminal prints a prompt.
                self.renderer.entered();
            }
            let prompt = self.terminal.request(request);
            if !prompt.is_empty() {
                self.renderer.prompted();
                print(&prompt)?;
            }
            return Ok(());
        }
    }

    fn next_request(&mut self) -> InputRequest {
        let now = Instant::now();
        self.save_answer_draft();
        if let Some(dialog) = self.dialogs.front() {
            if self.current_dialog.is_none() {
                self.current_dialog = Some((dialog.id.clone(), dialog.prefill().to_string()));
                let text = self.renderer.lines(&dialog.text(now));
                self.pending_output += &text;
            }
            return InputRequest::Answer {
                prompt: dialog.prompt(),
                text: self
                    .answer_draft
                    .take()
                    .unwrap_or_else(|| dialog.prefill().to_string()),
                multiline: dialog.multiline(),
            };
        }
        if let Some(text) = self.message_draft.take() {
            self.pending_output += &self.renderer.start_line();
            return InputRequest::Message { text };
        }
        if self.is_working() {
            return InputRequest::Keys;
        }
        for note in self.session.take_warnings() {
            self.pending_output += &self.renderer.note(&note);
        }
        self.pending_output += &self.renderer.settle();
        InputRequest::Prompt {
            text: std::mem::take(&mut self.draft),
        }
    }

    /// Moves the unfinished answer of a dialog that was withdrawn to the prompt: it may be meant
    /// for the model.
    fn save_answer_draft(&mut self) {
        let front = self.dialogs.front().map(|dialog| &dialog.id);
        if self.current_dialog.as_ref().map(|(id, _)| id) == front {
            return;
        }
        let prefill = self.current_dialog.take().map(|(_, prefill)| prefill);
        if let Some(text) = self.answer_draft.take()
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
                self.draft = super::sanitize::sanitize(text);
            }
        }
        self.pending_output += &self.renderer.show(event, Instant::now());
    }

    fn on_console(&mut self, text: &str) {
        self.pending_output += &self.renderer.console(text);
    }

    fn on_input(&mut self, input: InputResult) -> io::Result<()> {
        let InputResult { request, event } = input;
        if request != InputRequest::Keys || matches!(event, InputEvent::Line(_)) {
            match event {
                // A dumb terminal has printed a prompt.
                InputEvent::Stopped(_) if self.terminal.is_dumb() => {}
                InputEvent::Interrupt if self.terminal.is_dumb() => {}
                _ => self.renderer.entered(),
            }
        }
        match (request, event) {
            (_, InputEvent::Failed(error)) => self.on_failure(&error)?,
            (InputRequest::Answer { .. }, event) => self.on_answer(event),
            (
                InputRequest::Prompt { .. } | InputRequest::Message { .. } | InputRequest::Keys,
                InputEvent::Line(line),
            ) => {
                self.on_line(&line);
            }
            (InputRequest::Prompt { .. }, InputEvent::Interrupt) => self.on_interrupt(),
            (InputRequest::Prompt { .. }, InputEvent::End) => self.exit_code = Some(0),
            (InputRequest::Prompt { .. }, InputEvent::Escape(text) | InputEvent::Stopped(text)) => {
                // An extension may have set another text in the meantime.
                if self.draft.is_empty() {
                    self.draft = text;
                }
            }
            (InputRequest::Message { .. }, InputEvent::Stopped(text)) => {
                self.message_draft = Some(text)
            }
            (InputRequest::Message { .. }, InputEvent::Escape(text)) => {
                self.draft = text;
                self.abort();
            }
            (
                InputRequest::Message { .. } | InputRequest::Keys,
                InputEvent::Interrupt | InputEvent::Escape(_),
            ) => self.abort(),
            (InputRequest::Message { .. }, InputEvent::End) => {}
            (InputRequest::Keys, InputEvent::End) => self.exit_code = Some(0),
            (_, InputEvent::Typed(text)) => self.message_draft = Some(text),
            (InputRequest::Keys, InputEvent::Stopped(_)) => {}
        }
        Ok(())
    }

    /// Continues without the line editor if it does not work on this terminal.
    fn on_failure(&mut self, error: &str) -> io::Result<()> {
        if self.terminal.is_dumb() {
            return Err(io::Error::other(error.to_string()));
        }
        super::editor::restore();
        self.terminal = Terminal::dumb()?;
        self.pending_output += &self.renderer.note(&format!(
            "the line editor does not work on this terminal ({error}); going on without it. \
             Ctrl-C aborts"
        ));
        Ok(())
    }

    fn on_answer(&mut self, event: InputEvent) {
        match event {
            InputEvent::Line(line) => {
                let Some(dialog) = self.dialogs.front() else {
                    return;
                };
                match dialog.parse_answer(&line) {
                    ParsedAnswer::Answer(answer) => self.answer(answer),
                    ParsedAnswer::Invalid(why) => self.pending_output += &self.renderer.lines(&why),
                }
            }
            InputEvent::Escape(_) | InputEvent::End => self.answer(UiAnswer::Cancelled),
            InputEvent::Interrupt => {
                self.answer(UiAnswer::Cancelled);
                self.abort();
            }
            InputEvent::Stopped(text) => self.answer_draft = Some(text),
            InputEvent::Typed(_) | InputEvent::Failed(_) => {}
        }
    }

    fn answer(&mut self, answer: UiAnswer) {
        self.current_dialog = None;
        let Some(dialog) = self.dialogs.pop_front() else {
            return;
        };
        if answer == UiAnswer::Cancelled {
            self.pending_output += &self.renderer.lines("(cancelled)");
        }
        if !self.session.extensions().answer_dialog(&dialog.id, answer) {
            self.pending_output += &self
                .renderer
                .lines("(the dialog was cancelled; your answer was not used)");
        }
    }

    fn on_interrupt(&mut self) {
        if self.is_signing_in() {
            return self.abort();
        }
        let now = Instant::now();
        let again = self
            .last_interrupt
            .is_some_and(|before| now.saturating_duration_since(before) < QUIT_INTERVAL);
        if again {
            self.exit_code = Some(0);
            return;
        }
        self.last_interrupt = Some(now);
        let hint = self.renderer.style.dim("(Ctrl-C again or Ctrl-D quits)");
        self.pending_output += &self.renderer.lines(&hint);
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
            Some(Command::Quit) => self.exit_code = Some(0),
            Some(command) => self.run_command(command),
            None => {
                if !self.is_working() {
                    self.renderer.typed(text);
                }
                self.prompt(PromptContent {
                    text: text.to_string(),
                    images: Vec::new(),
                });
            }
        }
    }

    /// Sends the next prompt of the command line when nothing else runs.
    fn next_prompt(&mut self) {
        if self.is_working() || self.exit_code.is_some() {
            return;
        }
        if let Some(prompt) = self.prompts.pop_front() {
            self.prompt(prompt);
        }
    }

    /// Aborts the run, commands and the wait for handlers.
    fn abort(&mut self) {
        for command in [ImmediateCommand::Abort, ImmediateCommand::AbortUserCommand] {
            // An abort does not fail.
            let _ = self.session.execute_now(command);
        }
        self.prompts.clear();
        self.take_queue();
    }

    /// The next deadline of a dialog.
    fn next_deadline(&self) -> Option<Instant> {
        let deadlines = self.dialogs.iter().filter_map(|dialog| dialog.deadline);
        deadlines.min()
    }

    fn on_deadline(&mut self) {
        let now = Instant::now();
        let before = self.dialogs.len();
        self.dialogs
            .retain(|dialog| dialog.deadline.is_none_or(|deadline| deadline > now));
        if self.dialogs.len() < before {
            self.pending_output += &self.renderer.lines("(no answer in time)");
        }
    }

    /// Removes dialogs that were withdrawn, except those whose deadline has passed here: they get
    /// the message for that.
    fn remove_withdrawn_dialogs(&mut self) {
        let soon = Instant::now() + DEADLINE_TOLERANCE;
        let extensions = self.session.extensions();
        self.dialogs.retain(|dialog| {
            extensions.has_dialog(&dialog.id)
                || dialog.deadline.is_some_and(|deadline| deadline <= soon)
        });
        let front = self.dialogs.front().map(|dialog| &dialog.id);
        if self
            .current_dialog
            .as_ref()
            .is_some_and(|(id, _)| Some(id) != front)
        {
            self.pending_output += &self.renderer.lines("(the question was withdrawn)");
        }
    }

    pub(super) fn queue_output(&mut self, text: &str) {
        self.pending_output += text;
    }

    fn flush(&mut self) -> io::Result<()> {
        let out = std::mem::take(&mut self.pending_output);
        match out.is_empty() {
            true => Ok(()),
            false => print(&out),
        }
    }

    /// Shuts the session down while printing the last output of extensions. Their dialogs are
    /// cancelled.
    pub async fn close(self, code: u8) -> u8 {
        let Self {
            session,
            mut renderer,
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
                        && request.method.is_dialog()
                    {
                        session.answer_ui(&request.id, UiAnswer::Cancelled);
                        continue;
                    }
                    // The terminal may be closed.
                    let _ = print(&renderer.show(&event, Instant::now()));
                }
                Some(text) = console.recv() => {
                    let _ = print(&renderer.console(&text));
                }
                // A further Ctrl-C ends the process without waiting.
                Ok(()) = tokio::signal::ctrl_c() => break code,
            }
        };
        while let Ok(text) = console.try_recv() {
            let _ = print(&renderer.console(&text));
        }
        code
    }
}

/// Prints text. In raw mode a terminal does not return to the beginning of the line by itself;
/// elsewhere an additional carriage return has no effect.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.replace('\n', "\r\n").as_bytes())?;
    out.flush()
}
