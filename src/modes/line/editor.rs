//! The line editor's thread. `reedline` blocks, so it has one of its own; while
//! the agent works it only watches for keys. The terminal is in raw mode as long
//! as the thread lives.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::{cursor, execute, terminal};
use reedline::{
    ColumnarMenu, EditCommand, Emacs, History, HistoryItem, MenuBuilder, Prompt, PromptEditMode,
    PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal, ValidationResult,
    Validator, default_emacs_keybindings,
};
use tempfile::TempPath;
use tokio::sync::mpsc;

use super::completion::Completions;
use super::history::SharedHistory;
use super::terminal::{Said, Want};

/// How soon a stop is noticed.
const POLL: Duration = Duration::from_millis(25);
const MENU: &str = "completions";
const ESCAPE: &str = "escape";

pub struct Settings {
    pub history: SharedHistory,
    pub completions: Completions,
    pub colours: bool,
}

/// `$VISUAL` or `$EDITOR`, opened by Ctrl-O, also for answers of many lines. The
/// file goes with it.
struct External {
    program: String,
    arguments: Vec<String>,
    file: TempPath,
}

impl External {
    fn find() -> Option<Self> {
        let variable = |name| std::env::var(name).ok();
        let set = |value: &String| !value.trim().is_empty();
        let line = variable("VISUAL")
            .filter(set)
            .or_else(|| variable("EDITOR").filter(set))?;
        let mut words = line.split_whitespace().map(str::to_string);
        let file = tempfile::Builder::new()
            .prefix("pi-editor-")
            .suffix(".md")
            .tempfile()
            .inspect_err(|error| tracing::warn!("no file for the external editor: {error}"))
            .ok()?;
        Some(Self {
            program: words.next()?,
            arguments: words.collect(),
            file: file.into_temp_path(),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(&self.file);
        command
    }
}

pub fn start(
    settings: Settings,
    wants: Receiver<Want>,
    say: mpsc::Sender<Said>,
    stop: Arc<AtomicBool>,
) -> io::Result<()> {
    std::thread::Builder::new()
        .name("keyboard".into())
        .spawn(move || {
            let _restore = Restore;
            let mut keyboard = Keyboard::new(settings, stop);
            while let Ok(want) = wants.recv() {
                let said = terminal::enable_raw_mode()
                    .map_err(|error| error.to_string())
                    .and_then(|()| keyboard.serve(want))
                    .unwrap_or_else(Said::Failed);
                // An editor leaves raw mode when it is done.
                let failed =
                    matches!(said, Said::Failed(_)) || terminal::enable_raw_mode().is_err();
                if say.blocking_send(said).is_err() || failed {
                    return;
                }
            }
        })?;
    Ok(())
}

/// Whatever way the thread ends.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        restore();
    }
}

/// The terminal as the shell wants it.
pub fn restore() {
    // There is nobody left who could be told of an error.
    let _ = execute!(io::stdout(), event::DisableBracketedPaste);
    let _ = terminal::disable_raw_mode();
}

/// What the thread has.
struct Keyboard {
    settings: Settings,
    external: Option<External>,
    stop: Arc<AtomicBool>,
}

impl Keyboard {
    fn new(settings: Settings, stop: Arc<AtomicBool>) -> Self {
        Self {
            settings,
            external: External::find(),
            stop,
        }
    }

    fn serve(&mut self, want: Want) -> Result<Said, String> {
        let said = match want {
            Want::Keys => {
                // What is pasted is one message, however many lines it has.
                execute!(io::stdout(), event::EnableBracketedPaste)
                    .and_then(|()| watch(&self.stop))
                    .and_then(|said| {
                        execute!(io::stdout(), event::DisableBracketedPaste)?;
                        Ok(said)
                    })
            }
            Want::Prompt { text } => {
                let mut editor = prompt_editor(&self.settings, &self.stop, self.external.as_ref());
                set_text(&mut editor, &text);
                read(&mut editor, "")
            }
            Want::Message { text } => {
                let mut editor = self.answer_editor(false);
                set_text(&mut editor, &text);
                let said = read(&mut editor, "");
                if let Ok(Said::Line(line)) = &said {
                    // A history that cannot be written costs nothing else.
                    let _ =
                        (self.settings.history).save(HistoryItem::from_command_line(line.clone()));
                }
                said
            }
            Want::Answer {
                prompt: before,
                text,
                many_lines,
            } => {
                let mut editor = self.answer_editor(many_lines);
                set_text(&mut editor, &text);
                read(&mut editor, before.trim_end_matches("> "))
            }
        };
        said.map_err(|error| error.to_string())
    }

    /// For answers and messages: no history, no completion, and Escape means
    /// something.
    fn answer_editor(&self, many_lines: bool) -> Reedline {
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Esc,
            ReedlineEvent::ExecuteHostCommand(ESCAPE.to_string()),
        );
        let editor =
            base(self.settings.colours, &self.stop).with_edit_mode(Box::new(Emacs::new(keys)));
        match many_lines {
            true => with_external(
                editor.with_validator(Box::new(UntilEmptyLine)),
                self.external.as_ref(),
            ),
            false => editor,
        }
    }
}

fn set_text(editor: &mut Reedline, text: &str) {
    editor.run_edit_commands(&[
        EditCommand::Clear,
        EditCommand::InsertString(text.to_string()),
    ]);
}

fn read(editor: &mut Reedline, before: &str) -> io::Result<Said> {
    let before = before.to_string();
    let signal = editor
        .read_line(&Before(before))
        .map_err(io::Error::other)?;
    Ok(match signal {
        Signal::Success(line) => {
            // What was typed is to survive whatever comes.
            let _ = editor.sync_history();
            Said::Line(line)
        }
        Signal::CtrlC => Said::Interrupt,
        Signal::CtrlD => Said::End,
        Signal::HostCommand(_) => {
            leave_line()?;
            Said::Escape(editor.current_buffer_contents().to_string())
        }
        Signal::ExternalBreak(text) => {
            erase_line()?;
            Said::Stopped(text)
        }
        // The enum is open; nothing of ours is lost with what is new.
        _ => Said::Stopped(String::new()),
    })
}

fn leave_line() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(b"\r\n")?;
    out.flush()
}

/// What was printed of the prompt is painted anew below what comes now.
fn erase_line() -> io::Result<()> {
    execute!(
        io::stdout(),
        cursor::MoveToColumn(0),
        terminal::Clear(terminal::ClearType::FromCursorDown)
    )
}

/// While the agent works: returns at the first key that means something.
fn watch(stop: &AtomicBool) -> io::Result<Said> {
    while !stop.load(Ordering::Relaxed) {
        if !event::poll(POLL)? {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if let Some(said) = meaning(key) {
                    return Ok(said);
                }
            }
            Event::Paste(text) => return Ok(Said::Typed(text)),
            _ => {}
        }
    }
    Ok(Said::Stopped(String::new()))
}

fn meaning(key: KeyEvent) -> Option<Said> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => Some(Said::Escape(String::new())),
        KeyCode::Char('c') if control => Some(Said::Interrupt),
        KeyCode::Char(_) if control || key.modifiers.contains(KeyModifiers::ALT) => None,
        KeyCode::Char(sign) => Some(Said::Typed(sign.to_string())),
        _ => None,
    }
}

fn prompt_editor(
    settings: &Settings,
    stop: &Arc<AtomicBool>,
    external: Option<&External>,
) -> Reedline {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_string()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys.add_binding(
        KeyModifiers::SHIFT,
        KeyCode::BackTab,
        ReedlineEvent::MenuPrevious,
    );
    let menu = ColumnarMenu::default()
        .with_name(MENU)
        .with_marker("> ")
        .with_columns(1);
    let editor = base(settings.colours, stop)
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_history(Box::new(settings.history.clone()))
        .with_completer(Box::new(settings.completions.clone()))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)));
    with_external(editor, external)
}

fn base(colours: bool, stop: &Arc<AtomicBool>) -> Reedline {
    Reedline::create()
        .with_ansi_colors(colours)
        .use_bracketed_paste(true)
        .with_break_signal(stop.clone())
        .with_poll_interval(POLL)
        .disable_hints()
}

fn with_external(editor: Reedline, external: Option<&External>) -> Reedline {
    match external {
        Some(external) => {
            editor.with_buffer_editor(external.command(), external.file.to_path_buf())
        }
        None => editor,
    }
}

/// The text is complete when its last line is empty.
struct UntilEmptyLine;

impl Validator for UntilEmptyLine {
    fn validate(&self, text: &str) -> ValidationResult {
        match text.is_empty() || text.ends_with('\n') {
            true => ValidationResult::Complete,
            false => ValidationResult::Incomplete,
        }
    }
}

/// What stands before the line; the indicator is always the same.
struct Before(String);

impl Prompt for Before {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(history: {})> ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_mean_something_while_the_agent_works() {
        let key = |code, modifiers| meaning(KeyEvent::new(code, modifiers));
        let none = KeyModifiers::NONE;
        let typed = |text: &str| Some(Said::Typed(text.into()));
        assert_eq!(key(KeyCode::Esc, none), Some(Said::Escape(String::new())));
        let interrupt = key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(interrupt, Some(Said::Interrupt));
        assert_eq!(key(KeyCode::Char('c'), none), typed("c"));
        assert_eq!(key(KeyCode::Char('Ä'), KeyModifiers::SHIFT), typed("Ä"));
        assert_eq!(key(KeyCode::Char('d'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Enter, none), None);
    }

    #[test]
    fn a_text_ends_with_an_empty_line() {
        let complete = |text| matches!(UntilEmptyLine.validate(text), ValidationResult::Complete);
        assert_eq!(
            ["", "a", "a\nb", "a\n"].map(complete),
            [true, false, false, true]
        );
    }
}
