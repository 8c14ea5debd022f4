//! Reads simple commands: their words and variables, and the commands that they run.

use std::ops::Range;

use tree_sitter::Node;

use super::walk::{ScriptWalk, Stdin, check_index, children};
use super::word::{Piece, Word};
use super::wrappers::{self, Dialect, Inner};
use super::{Command, MAX_DEPTH, NotUnderstood, variables};

/// Words that begin no command where bash reads a name. The parser takes some of them for one, such
/// as the second `!` in `! ! rm`.
const RESERVED_WORDS: [&str; 20] = [
    "!", "[[", "]]", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "until", "while", "{", "}",
];

/// Commands that evaluate arguments as arithmetic, where an index may contain a substitution.
const ARITHMETIC_COMMANDS: [&str; 13] = [
    "[", "declare", "export", "let", "local", "mapfile", "printf", "read", "readonly", "test",
    "typeset", "unset", "wait",
];

impl ScriptWalk<'_, '_, '_> {
    /// Reads a simple command.
    pub fn command(&mut self, node: Node<'_>, stdin: &Stdin) -> Result<(), NotUnderstood> {
        let mut command = Command::default();
        let mut stdin = stdin.clone();
        // Ranges of words, with their nodes. Parts without a blank between them are one word.
        let mut words: Vec<(Range<usize>, Vec<Node<'_>>)> = Vec::new();
        let mut end = node.start_byte();
        for child in children(node) {
            self.check_gap(end..child.start_byte(), false)?;
            // A line that goes on in the next one ends no word.
            let gap = self.text(end..child.start_byte());
            let touches = gap.replace("\\\n", "").is_empty();
            end = child.end_byte();
            match child.kind() {
                "file_redirect" => self.file_redirect(child)?,
                "herestring_redirect" => stdin = self.herestring(child)?,
                "variable_assignment" if words.is_empty() => {
                    let assignment = self.assignment(child)?;
                    command.assignments.push(assignment);
                }
                "subshell" | "heredoc_redirect" | "array" => {
                    return Err(NotUnderstood::new(
                        "a command has a part that was not recognized",
                    ));
                }
                _ => match words.last_mut() {
                    Some((range, nodes)) if touches => {
                        range.end = child.end_byte();
                        nodes.push(child);
                    }
                    _ => words.push((child.byte_range(), vec![child])),
                },
            }
        }
        for (range, nodes) in words {
            let word = self.word(range, &nodes)?;
            command.words.push(word);
        }
        if node.kind() == "declaration_command" {
            self.declaration(&mut command);
        }
        self.finish_command(command, &stdin, true)
    }

    /// Marks `export` and the like as transparent if they set harmless variables only.
    fn declaration(&mut self, command: &mut Command) {
        let is_harmless = command.words.iter().skip(1).all(|word| {
            let text = word.known_prefix();
            let (name, value) = text.split_once('=').unwrap_or((&text, ""));
            // A flag may make a reference to another variable.
            !text.starts_with('-') && variables::is_harmless(name) && !value.is_empty()
        });
        command.is_transparent = is_harmless && command.words.len() > 1;
    }

    /// Adds a command, and finds what it runs. `is_direct` says that the shell runs it, not another
    /// program: then its name may be that of a function.
    fn finish_command(
        &mut self,
        mut command: Command,
        stdin: &Stdin,
        is_direct: bool,
    ) -> Result<(), NotUnderstood> {
        if command.words.is_empty() {
            for (name, value) in std::mem::take(&mut command.assignments) {
                self.set_variable(&name, &value, false)?;
            }
            return Ok(());
        }
        for (name, value) in &command.assignments {
            self.walk.values.add(name, value);
        }
        let name = command.words[0].known().unwrap_or_default();
        if RESERVED_WORDS.contains(&name.as_str()) {
            return Err(NotUnderstood::new(format!(
                "{name:?} was taken for a command"
            )));
        }
        if ARITHMETIC_COMMANDS.contains(&name.as_str()) {
            for word in &command.words[1..] {
                check_index(&word.quoted())?;
            }
        }
        for word in variables::set_by(&name, &command.words[1..]) {
            let Some(variable) = word.known() else {
                return Err(NotUnderstood::new(format!(
                    "{name} sets a variable without a name"
                )));
            };
            let variable = variable.split('[').next().unwrap_or_default().to_owned();
            self.set_variable(&variable, &Word::open("?"), true)?;
            self.walk.values.add_unknown(&variable);
            self.walk.variables.push(variable);
        }
        if ARITHMETIC_COMMANDS.contains(&name.as_str()) {
            let texts: Vec<String> = command.words[1..].iter().map(Word::quoted).collect();
            let declares = variables::DECLARING.contains(&name.as_str());
            for name in variables::set_in_arithmetic(&texts.join(" ")) {
                self.set_variable(&name, &Word::open("?"), true)?;
                if !declares {
                    self.walk.values.add_unknown(&name);
                }
            }
        }
        if command.words.len() > 1 && (name == "unset" || name == "unalias") {
            // The names of functions mean programs again.
            self.walk.functions.clear();
        }
        if is_direct && self.walk.functions.contains(&name) {
            command.is_transparent = true;
        }
        if matches!(name.as_str(), "cd" | "pushd" | "popd") {
            self.walk.change_folder(&command.words);
        }
        let is_function = command.is_transparent;
        let opened = self.run_by_open_name(&command, stdin)?;
        self.add_inner_commands(&mut command, stdin)?;
        command.is_transparent |= is_function && command.inner.is_empty();
        command.is_transparent &= !command.has_settings();
        command.inner.extend(opened);
        self.run_by_settings(&mut command)?;
        self.walk.files_of(&command);
        self.commands.push(command);
        Ok(())
    }

    /// Returns what may run because the name of the command is open: in `$X timeout 5 rm` nothing
    /// may be in the place of `$X`, and `env$X` may be a program that runs its arguments.
    fn run_by_open_name(
        &mut self,
        command: &Command,
        stdin: &Stdin,
    ) -> Result<Vec<Command>, NotUnderstood> {
        let name = command.words[0].base_name();
        if !name.is_open() {
            return Ok(Vec::new());
        }
        if !name.known_prefix().is_empty() {
            let all: Vec<String> = command.words.iter().map(Word::quoted).collect();
            return Ok(vec![open_command(&Word::open(all.join(" ")))]);
        }
        if command.words.len() == 1 {
            return Ok(Vec::new());
        }
        if self.walk.depth >= MAX_DEPTH {
            return Err(NotUnderstood::new("commands are nested too deep"));
        }
        self.walk.depth += 1;
        let rest = Inner::Words {
            assignments: Vec::new(),
            words: command.words[1..].to_vec(),
        };
        let found = self.inner(rest, stdin, self.walk.dialect);
        self.walk.depth -= 1;
        let mut found = found?;
        for inner in &mut found {
            make_uncertain(inner, &command.words[0]);
        }
        Ok(found)
    }

    /// Adds the commands that a command runs.
    fn add_inner_commands(
        &mut self,
        command: &mut Command,
        stdin: &Stdin,
    ) -> Result<(), NotUnderstood> {
        if self.walk.depth >= MAX_DEPTH {
            return Err(NotUnderstood::new("commands are nested too deep"));
        }
        let variables = self.walk.variables.clone();
        let is_assigned = |name: &str| variables.iter().any(|it| it == name);
        let Some(wrapped) = wrappers::unwrap_command(&command.words, &is_assigned) else {
            return Ok(());
        };
        let dialect = wrapped.dialect.unwrap_or(self.walk.dialect);
        command.inner_at = wrapped.at;
        command.is_transparent = wrapped.is_transparent;
        self.walk.depth += 1;
        for inner in wrapped.inner {
            let found = self.inner(inner, stdin, dialect)?;
            command.inner.extend(found);
        }
        self.walk.depth -= 1;
        Ok(())
    }

    /// Returns the commands of an inner command or script.
    pub fn inner(
        &mut self,
        inner: Inner,
        stdin: &Stdin,
        dialect: Dialect,
    ) -> Result<Vec<Command>, NotUnderstood> {
        match inner {
            Inner::Words { assignments, words } => {
                let mut commands = Vec::new();
                let command = Command {
                    assignments,
                    words,
                    ..Command::default()
                };
                let mut visit = ScriptWalk {
                    walk: &mut *self.walk,
                    source: self.source,
                    commands: &mut commands,
                };
                visit.finish_command(command, stdin, false)?;
                Ok(commands)
            }
            Inner::Script(word) => match word.known() {
                Some(script) => self.walk.commands_of(&script, dialect),
                None => {
                    // The open parts may be anything, but the known ones can be seen.
                    let seen = self.walk.commands_of(&as_script(&word), dialect);
                    let mut commands = seen.unwrap_or_default();
                    commands.push(open_command(&word));
                    Ok(commands)
                }
            },
            Inner::Stdin => match stdin {
                Stdin::Text {
                    text,
                    is_expanded: false,
                } => self.walk.commands_of(text, dialect),
                Stdin::Text { text, .. } => {
                    let mut commands = self.walk.commands_of(text, dialect)?;
                    commands.push(open_command(&Word::open("the text of a heredoc")));
                    Ok(commands)
                }
                Stdin::Unknown => Ok(vec![open_command(&Word::open(wrappers::STDIN))]),
            },
        }
    }
}

/// Returns the script in a word, with a variable in the place of each open part.
fn as_script(word: &Word) -> String {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Tilde => "~".to_owned(),
        Piece::Home(_) => "${HOME}".to_owned(),
        Piece::Open(_) => "${_}".to_owned(),
    };
    word.0.iter().map(text).collect()
}

/// Puts an open word before a command and before all that it runs: the word decides whether they
/// run.
fn make_uncertain(command: &mut Command, open: &Word) {
    if let Some(name) = command.words.first_mut() {
        *name = name.base_name();
    }
    command.words.insert(0, open.clone());
    command.inner_at = None;
    for inner in &mut command.inner {
        make_uncertain(inner, open);
    }
}

/// Makes a command of which only the text in the line is known.
pub(super) fn open_command(word: &Word) -> Command {
    Command {
        words: vec![Word::open(word.quoted())],
        ..Command::default()
    }
}
