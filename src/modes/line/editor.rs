//! The thread of the line editor, which blocks. While the agent works it only watches for keys.
//! The terminal is in raw mode as long as the thread lives.

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
use super::terminal::{InputEvent, InputRequest};

/// How often the stop flag is polled.
const KEY_POLL_INTERVAL: Duration = Duration::from_millis(25);
const COMPLETION_MENU: &str = "completions";
const ESCAPE_COMMAND: &str = "escape";

pub struct EditorSettings {
    pub history: SharedHistory,
    pub completions: Completions,
    pub colours: bool,
}

/// `$VISUAL` or `$EDITOR`, opened by Ctrl-O, also for answers of several lines. Its file is
/// removed on drop.
struct ExternalEditor {
    program: String,
    arguments: Vec<String>,
    file: TempPath,
}

impl ExternalEditor {
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
    settings: EditorSettings,
    requests: Receiver<InputRequest>,
    events: mpsc::Sender<InputEvent>,
    stop: Arc<AtomicBool>,
) -> io::Result<()> {
    std::thread::Builder::new()
        .name("keyboard".into())
        .spawn(move || {
            let _restore = Restore;
            let mut keyboard = Keyboard::new(settings, stop);
            while let Ok(request) = requests.recv() {
                let event = terminal::enable_raw_mode()
                    .map_err(|error| error.to_string())
                    .and_then(|()| keyboard.serve(request))
                    .unwrap_or_else(InputEvent::Failed);
                // The editor leaves raw mode when it returns.
                let failed =
                    matches!(event, InputEvent::Failed(_)) || terminal::enable_raw_mode().is_err();
                if events.blocking_send(event).is_err() || failed {
                    return;
                }
            }
        })?;
    Ok(())
}

/// Restores the terminal when the thread ends.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        restore();
    }
}

/// Resets the terminal to the state that the shell expects.
pub fn restore() {
    // Errors are ignored: there is no place to report them. The write comes last, because it may
    // wait.
    let _ = terminal::disable_raw_mode();
    let _ = execute!(io::stdout(), event::DisableBracketedPaste);
}

/// State of the keyboard thread.
struct Keyboard {
    settings: EditorSettings,
    external: Option<ExternalEditor>,
    stop: Arc<AtomicBool>,
}

impl Keyboard {
    fn new(settings: EditorSettings, stop: Arc<AtomicBool>) -> Self {
        Self {
            settings,
            external: ExternalEditor::find(),
            stop,
        }
    }

    fn serve(&mut self, request: InputRequest) -> Result<InputEvent, String> {
        let event = match request {
            InputRequest::Keys => {
                // Pasted text is one message, however many lines it has.
                execute!(io::stdout(), event::EnableBracketedPaste)
                    .and_then(|()| watch_keys(&self.stop))
                    .and_then(|event| {
                        execute!(io::stdout(), event::DisableBracketedPaste)?;
                        Ok(event)
                    })
            }
            InputRequest::Prompt { text } => {
                let mut editor = prompt_editor(&self.settings, &self.stop, self.external.as_ref());
                set_text(&mut editor, &text);
                read_line(&mut editor, "")
            }
            InputRequest::Message { text } => {
                let mut editor = self.answer_editor(false);
                set_text(&mut editor, &text);
                let event = read_line(&mut editor, "");
                if let Ok(InputEvent::Line(line)) = &event {
                    // A history that cannot be written is no reason to stop.
                    let _ =
                        (self.settings.history).save(HistoryItem::from_command_line(line.clone()));
                }
                event
            }
            InputRequest::Answer {
                prompt: before,
                text,
                multiline,
            } => {
                let mut editor = self.answer_editor(multiline);
                set_text(&mut editor, &text);
                read_line(&mut editor, before.trim_end_matches("> "))
            }
        };
        event.map_err(|error| error.to_string())
    }

    /// An editor for answers and messages: without history and completion, and with Escape as a
    /// command.
    fn answer_editor(&self, multiline: bool) -> Reedline {
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Esc,
            ReedlineEvent::ExecuteHostCommand(ESCAPE_COMMAND.to_string()),
        );
        let editor = base_editor(self.settings.colours, &self.stop)
            .with_edit_mode(Box::new(Emacs::new(keys)));
        match multiline {
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

fn read_line(editor: &mut Reedline, before: &str) -> io::Result<InputEvent> {
    let before = before.to_string();
    let signal = editor
        .read_line(&PromptPrefix(before))
        .map_err(io::Error::other)?;
    Ok(match signal {
        Signal::Success(line) => {
            // The prompt is saved at once, in case the process is killed.
            let _ = editor.sync_history();
            InputEvent::Line(line)
        }
        Signal::CtrlC => InputEvent::Interrupt,
        Signal::CtrlD => InputEvent::End,
        Signal::HostCommand(_) => {
            end_line()?;
            InputEvent::Escape(editor.current_buffer_contents().to_string())
        }
        Signal::ExternalBreak(text) => {
            erase_line()?;
            InputEvent::Stopped(text)
        }
        // The enum is non-exhaustive; other signals carry no input.
        _ => InputEvent::Stopped(String::new()),
    })
}

fn end_line() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(b"\r\n")?;
    out.flush()
}

/// Erases the prompt, which is printed again below the next output.
fn erase_line() -> io::Result<()> {
    execute!(
        io::stdout(),
        cursor::MoveToColumn(0),
        terminal::Clear(terminal::ClearType::FromCursorDown)
    )
}

/// Waits for the first key that has a meaning while the agent works.
fn watch_keys(stop: &AtomicBool) -> io::Result<InputEvent> {
    while !stop.load(Ordering::Relaxed) {
        if !event::poll(KEY_POLL_INTERVAL)? {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if let Some(event) = key_event(key) {
                    return Ok(event);
                }
            }
            Event::Paste(text) => return Ok(InputEvent::Typed(text)),
            _ => {}
        }
    }
    Ok(InputEvent::Stopped(String::new()))
}

fn key_event(key: KeyEvent) -> Option<InputEvent> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Esc => Some(InputEvent::Escape(String::new())),
        KeyCode::Char('c') if control => Some(InputEvent::Interrupt),
        KeyCode::Char(_) if control || key.modifiers.contains(KeyModifiers::ALT) => None,
        KeyCode::Char(sign) => Some(InputEvent::Typed(sign.to_string())),
        _ => None,
    }
}

fn prompt_editor(
    settings: &EditorSettings,
    stop: &Arc<AtomicBool>,
    external: Option<&ExternalEditor>,
) -> Reedline {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(COMPLETION_MENU.to_string()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys.add_binding(
        KeyModifiers::SHIFT,
        KeyCode::BackTab,
        ReedlineEvent::MenuPrevious,
    );
    let menu = ColumnarMenu::default()
        .with_name(COMPLETION_MENU)
        .with_marker("> ")
        .with_columns(1);
    let editor = base_editor(settings.colours, stop)
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_history(Box::new(settings.history.clone()))
        .with_completer(Box::new(settings.completions.clone()))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)));
    with_external(editor, external)
}

fn base_editor(colours: bool, stop: &Arc<AtomicBool>) -> Reedline {
    Reedline::create()
        .with_ansi_colors(colours)
        .use_bracketed_paste(true)
        .with_break_signal(stop.clone())
        .with_poll_interval(KEY_POLL_INTERVAL)
        .disable_hints()
}

fn with_external(editor: Reedline, external: Option<&ExternalEditor>) -> Reedline {
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

/// The text before the prompt's indicator.
struct PromptPrefix(String);

impl Prompt for PromptPrefix {
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
    fn keys_with_a_meaning_while_the_agent_works() {
        let key = |code, modifiers| key_event(KeyEvent::new(code, modifiers));
        let none = KeyModifiers::NONE;
        let typed = |text: &str| Some(InputEvent::Typed(text.into()));
        assert_eq!(
            key(KeyCode::Esc, none),
            Some(InputEvent::Escape(String::new()))
        );
        let interrupt = key(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(interrupt, Some(InputEvent::Interrupt));
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
