//! Line mode: `pi` on a terminal, as a conversation line by line. Printed text is never
//! changed, so that dumb terminals and screen readers can follow it.
//!
//! Where the terminal can draw, `reedline` edits the lines. While the agent works no line is
//! edited; the first key of a message opens a prompt, output waits until Enter, and the
//! message is queued for after the turn. On a dumb terminal lines are read as the terminal
//! edits them; there Ctrl-C stands for Escape.

mod client;
mod commands;
mod completion;
mod dialog;
mod dumb_terminal;
pub(crate) mod editor;
mod history;
mod outcome;
mod render;
pub mod sanitize;
mod session_commands;
mod shortcuts;
mod sign_in;
mod startup_dialogs;
mod style;
mod tasks;
mod terminal;
mod tool_line;
mod tree;
mod widgets;

pub use commands::is_own_command;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reedline::FileBackedHistory;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::client::{Client, print};
use self::completion::Completions;
use self::render::Renderer;
use self::startup_dialogs::StartupDialogs;
use self::style::Style;
use self::terminal::Terminal;
use super::print_stderr;
use super::signals::{self, Interrupt};
use pi_agent::event::Event;
use pi_app::{AgentSession, AppConfig, EventSink, PromptContent};
use pi_base::regular_file;
use pi_extensions::ConsoleSink;

/// Maximum number of events that wait to be shown; then the session waits.
const EVENT_CAPACITY: usize = 256;
/// Maximum number of console lines of extensions that wait to be shown; further lines are
/// lost.
const CONSOLE_CAPACITY: usize = 1024;
/// Number of prompts in the history.
const HISTORY_SIZE: usize = 1000;

/// Passes events to the client. The session waits while the user types, but not for a client
/// that has ended.
struct ClientEvents {
    events: mpsc::Sender<Arc<Event>>,
    gone: CancellationToken,
}

#[async_trait]
impl EventSink for ClientEvents {
    async fn send(&self, event: Arc<Event>) {
        tokio::select! {
            // An error means that the client has ended.
            _ = self.events.send(event) => {}
            () = self.gone.cancelled() => {}
        }
    }
}

/// Runs the mode and returns the exit code.
pub async fn run(mut config: AppConfig, prompts: Vec<PromptContent>) -> u8 {
    let style = Style::for_terminal();
    // A dumb terminal sends SIGINT for Ctrl-C.
    let exit_signal = signals::exit_signal(match style.dumb {
        true => Interrupt::IsKey,
        false => Interrupt::Exits,
    });
    let exit = async move {
        tokio::select! {
            code = exit_signal => code,
            () = terminal::hang_up() => signals::HANG_UP_EXIT_CODE,
        }
    };
    tokio::pin!(exit);
    let edits = restore_on_panic();
    let (events, mut shown) = mpsc::channel(EVENT_CAPACITY);
    let (console, printed) = mpsc::channel(CONSOLE_CAPACITY);
    config.console = tee_console(console, config.console);
    let gone = CancellationToken::new();
    let _gone = gone.clone().drop_guard();
    let history = config.paths.agent_dir.join("history");
    let mut renderer = Renderer::new(style);
    let session = match AgentSession::open_unloaded(config, Arc::new(ClientEvents { events, gone }))
    {
        Ok(session) => session,
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            return 1;
        }
    };
    let loaded = {
        let loading = session.load();
        tokio::pin!(loading);
        let mut dialogs = StartupDialogs::new(&session);
        loop {
            tokio::select! {
                loaded = &mut loading => break loaded,
                code = &mut exit => return code,
                Some(event) = shown.recv() => {
                    let text = match dialogs.open(&event) {
                        Some(text) => text,
                        None => renderer.show(&event, std::time::Instant::now()),
                    };
                    // A closed terminal is noticed below.
                    let _ = print(&text);
                }
                line = dialogs.next_line() => {
                    let _ = print(&dialogs.answer(line));
                }
            }
        }
    };
    if let Err(error) = loaded {
        print_stderr(&format!("Error: {error}"));
        return 1;
    }
    renderer.hide_thinking = session.settings().values().hide_thinking_block;
    let (terminal, problem) = match open_terminal(&session, style, &history) {
        Ok(opened) => opened,
        Err(error) => {
            print_stderr(&format!("Error: cannot read from the terminal: {error}"));
            session.shutdown(1).await;
            return 1;
        }
    };
    edits.store(!terminal.is_dumb(), Ordering::Relaxed);
    let welcome = welcome_text(&session, &mut renderer, problem);
    let mut client = Client::new(session, renderer, terminal, shown, printed, prompts);
    let code = match print(&welcome) {
        Err(error) => Err(error),
        Ok(()) => tokio::select! {
            code = client.run() => code,
            code = exit => Ok(code),
        },
    };
    let code = match code {
        // A closed terminal ends the input and fails each write before its SIGHUP arrives.
        Ok(0) | Err(_) if terminal::has_hung_up() => signals::HANG_UP_EXIT_CODE,
        Ok(code) => code,
        Err(error) => {
            tracing::warn!("the terminal: {error}");
            1
        }
    };
    client.close(code).await
}

/// Opens the terminal. Also returns what is wrong with the history, which is no reason to stop.
fn open_terminal(
    session: &Arc<AgentSession>,
    style: Style,
    history: &Path,
) -> std::io::Result<(Terminal, Option<String>)> {
    if style.dumb {
        return Ok((Terminal::dumb()?, None));
    }
    let (history, problem) = open_history(history);
    let terminal = Terminal::editor(editor::EditorSettings {
        history: history::SharedHistory::new(history),
        completions: Completions::new(session),
        colours: style.colours,
    })?;
    Ok((terminal, problem))
}

/// Opens the history of prompts. With a problem, which is returned for the user, the history is in
/// memory only, and the file stays as it is.
fn open_history(file: &Path) -> (FileBackedHistory, Option<String>) {
    let opened = check_history(file).and_then(|()| {
        let history = FileBackedHistory::with_file(HISTORY_SIZE, file.to_owned());
        history.map_err(|error| error.to_string())
    });
    match opened {
        Ok(history) => (history, None),
        Err(why) => {
            let problem = format!("prompts are not stored in {}: {why}", file.display());
            (FileBackedHistory::default(), Some(problem))
        }
    }
}

/// Fails if the history is neither missing nor a regular file: reading a pipe would block the start.
fn check_history(file: &Path) -> Result<(), String> {
    if file.is_dir() {
        return Err("it is a folder; pi wants a file there".to_owned());
    }
    match regular_file::check(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Formats a line about the session, then the notes about it.
fn welcome_text(
    session: &AgentSession,
    renderer: &mut Renderer,
    problem: Option<String>,
) -> String {
    let header = renderer.style.bold(&commands::header(session));
    let mut text = renderer.lines(&header);
    let cwd = std::env::current_dir().unwrap_or_default();
    let folder = cwd.file_name().unwrap_or_default().to_string_lossy();
    text += &renderer.title(&format!("pi - {folder}"));
    for note in session.take_warnings().into_iter().chain(problem) {
        text += &renderer.note(&note);
    }
    if session.model().is_none() {
        text += &renderer.lines(&session.models().no_model_text());
    }
    text
}

/// Also shows the console output of extensions, for their authors.
fn tee_console(console: mpsc::Sender<String>, before: ConsoleSink) -> ConsoleSink {
    Arc::new(move |level, text| {
        before(level, text);
        // JavaScript does not wait for the terminal.
        let _ = console.try_send(text.to_string());
    })
}

/// Restores the terminal before a panic is reported, if it is read key by key. The hook is set
/// before extensions start: the thread of a stopped extension may hang inside a hook, and then
/// no other can be set.
fn restore_on_panic() -> Arc<AtomicBool> {
    let edits = Arc::<AtomicBool>::default();
    let (before, edited) = (std::panic::take_hook(), edits.clone());
    std::panic::set_hook(Box::new(move |panic| {
        if edited.load(Ordering::Relaxed) {
            editor::restore();
        }
        before(panic);
    }));
    edits
}
