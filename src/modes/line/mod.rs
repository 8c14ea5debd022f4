//! `pi` on a terminal: a conversation line by line. What is printed only ever
//! goes on, so that dumb terminals and screen readers can follow it.
//!
//! Where the terminal can draw, `reedline` edits the lines. While the agent works
//! it does not read; the first key of a message opens a prompt, what happens
//! meanwhile is printed after Enter, and the message is queued for after the
//! turn. On a dumb terminal lines are read as the terminal edits them; Ctrl-C
//! stands for Escape there.

mod ambient;
mod client;
mod commands;
mod completion;
mod dialog;
mod editor;
mod history;
mod jobs;
mod plain;
mod screen;
mod session_commands;
mod shortcuts;
mod sign_in;
mod style;
mod terminal;
pub(crate) mod text;
mod tool_line;
mod tree;

pub use commands::is_own_command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use reedline::FileBackedHistory;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::client::{Client, print};
use self::completion::Completions;
use self::screen::Screen;
use self::style::Style;
use self::terminal::Terminal;
use super::complain;
use super::signals::{self, Interrupt};
use crate::agent::event::Event;
use crate::app::{AgentSession, AppConfig, EventSink, PromptContent};
use crate::extensions::ConsoleSink;

/// Events that may wait to be shown.
const EVENTS: usize = 256;
/// Lines of extensions' console output that may; what is more is lost.
const CONSOLE: usize = 1024;
/// Prompts that are remembered.
const HISTORY: usize = 1000;

/// The session waits while the user types, but not for a client that is gone.
struct Sink {
    events: mpsc::Sender<Arc<Event>>,
    gone: CancellationToken,
}

#[async_trait]
impl EventSink for Sink {
    async fn send(&self, event: Arc<Event>) {
        tokio::select! {
            // An error means that nobody listens any more.
            _ = self.events.send(event) => {}
            () = self.gone.cancelled() => {}
        }
    }
}

/// Returns the exit code.
pub async fn run(mut config: AppConfig, prompts: Vec<PromptContent>) -> u8 {
    let style = Style::of_terminal();
    // A dumb terminal turns Ctrl-C into it.
    let ended = signals::ended(match style.dumb {
        true => Interrupt::IsAKey,
        false => Interrupt::Ends,
    });
    tokio::pin!(ended);
    let edits = restore_on_panic();
    let (events, mut shown) = mpsc::channel(EVENTS);
    let (console, printed) = mpsc::channel(CONSOLE);
    config.console = also_to(console, config.console);
    let gone = CancellationToken::new();
    let _gone = gone.clone().drop_guard();
    let history = config.paths.agent_dir.join("history");
    let mut screen = Screen::new(style);
    let starting = AgentSession::start(config, Arc::new(Sink { events, gone }));
    tokio::pin!(starting);
    let session = loop {
        tokio::select! {
            started = &mut starting => match started {
                Ok(session) => break session,
                Err(error) => {
                    complain(&format!("Error: {error}"));
                    return 1;
                }
            },
            code = &mut ended => return code,
            Some(event) = shown.recv() => {
                // A terminal that is gone is noticed below.
                let _ = print(&screen.show(&event, std::time::Instant::now()));
            }
        }
    };
    screen.hide_thinking = session.settings().values().hide_thinking_block;
    let (terminal, problem) = match open_terminal(&session, style, history) {
        Ok(opened) => opened,
        Err(error) => {
            complain(&format!("Error: cannot read from the terminal: {error}"));
            session.shutdown(1).await;
            return 1;
        }
    };
    edits.store(!terminal.is_plain(), Ordering::Relaxed);
    let greeting = greeting(&session, &mut screen, problem);
    let mut client = Client::new(session, screen, terminal, shown, printed, prompts);
    let code = match print(&greeting) {
        Err(error) => Err(error),
        Ok(()) => tokio::select! {
            code = client.run() => code,
            code = ended => Ok(code),
        },
    };
    let code = code.unwrap_or_else(|error| {
        tracing::warn!("the terminal: {error}");
        1
    });
    client.close(code).await
}

/// Also what goes wrong with the history, which costs nothing else.
fn open_terminal(
    session: &Arc<AgentSession>,
    style: Style,
    history: std::path::PathBuf,
) -> std::io::Result<(Terminal, Option<String>)> {
    if style.dumb {
        return Ok((Terminal::plain()?, None));
    }
    let (history, problem) = match FileBackedHistory::with_file(HISTORY, history.clone()) {
        Ok(history) => (history, None),
        Err(error) => {
            let problem = format!("no history: {}: {error}", history.display());
            (FileBackedHistory::default(), Some(problem))
        }
    };
    let terminal = Terminal::editor(editor::Settings {
        history: history::SharedHistory::new(history),
        completions: Completions::new(session),
        colours: style.colours,
    })?;
    Ok((terminal, problem))
}

/// One line of what there is, then what is wrong with it.
fn greeting(session: &AgentSession, screen: &mut Screen, problem: Option<String>) -> String {
    let header = screen.style.bold(&commands::header(session));
    let mut text = screen.lines(&header);
    let cwd = std::env::current_dir().unwrap_or_default();
    let folder = cwd.file_name().unwrap_or_default().to_string_lossy();
    text += &screen.title(&format!("pi - {folder}"));
    for note in session
        .take_notes()
        .into_iter()
        .chain(problem)
        .chain(shortcuts::notes(session))
    {
        text += &screen.note(&note);
    }
    if session.model().is_none() {
        text += &screen.lines(&session.models().no_model_text());
    }
    text
}

/// Extensions' console output is for whoever writes them: it is shown as well.
fn also_to(console: mpsc::Sender<String>, before: ConsoleSink) -> ConsoleSink {
    Arc::new(move |level, text| {
        before(level, text);
        // JavaScript does not wait for the screen.
        let _ = console.try_send(text.to_string());
    })
}

/// The message of a panic is to be readable, and the shell usable, if the terminal is read
/// key by key. Before there are extensions: the thread of one that is stopped may stand
/// still in a hook, and then no other can be set.
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
