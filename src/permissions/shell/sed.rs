//! Reads `sed` scripts for what they run and write.

use super::awk::Effects;
use super::options::{OptionName, value_at};
use super::runs::InnerCommands;
use super::word::{Piece, Word};

/// Returns the scripts in the arguments. Files with scripts count as unknown.
pub(super) fn scripts(args: &[Word], found: &mut InnerCommands) -> Vec<Word> {
    let mut scripts = Vec::new();
    let mut operand = None;
    let mut has_script = false;
    let mut all_operands = false;
    let mut index = 0;
    while let Some(word) = args.get(index) {
        let start = word.known_prefix();
        let this = index;
        index += 1;
        if all_operands || !start.starts_with('-') || start == "-" {
            operand = operand.or_else(|| Some(word.clone()));
            continue;
        }
        if start == "--" {
            all_operands = true;
            continue;
        }
        // The suffix of a copy may contain any letter: `-i.before`.
        if start.starts_with("-i") || start.starts_with("--in-place") {
            continue;
        }
        let value_of = |names: &[&str]| {
            let mut names = names.iter();
            names.find_map(|name| value_at(args, this, OptionName::of(name)))
        };
        if let Some((at, value)) = value_of(&["e", "expression"]) {
            has_script = true;
            scripts.push(value);
            index = at + 1;
        } else if let Some((at, value)) = value_of(&["f", "file"]) {
            has_script = true;
            found.unknown(at, &value);
            index = at + 1;
        } else if let Some((at, _)) = value_of(&["l", "line-length"]) {
            index = at + 1;
        }
    }
    if !has_script {
        scripts.extend(operand);
    }
    scripts
}

/// Reads a script. What cannot be read may run anything.
pub(super) fn read(script: &Word) -> Effects {
    let mut effects = Effects::default();
    let mut chars = Vec::new();
    for piece in &script.0 {
        match piece {
            Piece::Text(text) => chars.extend(text.chars()),
            Piece::Tilde => chars.push('~'),
            // A variable is taken for a text in an expression, not for a command.
            Piece::Home(_) | Piece::Open(_) => chars.push(VARIABLE),
        }
    }
    let is_chosen = |piece: &Piece| match piece {
        Piece::Open(text) => !text.starts_with('$') || text.starts_with("$("),
        _ => false,
    };
    let mut reader = Reader {
        chars,
        at: 0,
        effects: &mut effects,
    };
    if reader.script().is_none() || script.0.iter().any(is_chosen) {
        effects.runs.push(Word::open(script.quoted()));
    }
    effects
}

/// Stands for a variable in a script.
const VARIABLE: char = '\u{1}';

struct Reader<'e> {
    chars: Vec<char>,
    at: usize,
    effects: &'e mut Effects,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, is: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&is) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn rest_of_line(&mut self) -> String {
        self.take(|char| char == ' ' || char == '\t');
        self.take(|char| char != '\n')
    }

    /// Reads all commands. Returns `None` if one was not understood.
    fn script(&mut self) -> Option<()> {
        loop {
            self.take(|char| char.is_whitespace() || char == ';' || char == '}');
            if self.peek().is_none() {
                return Some(());
            }
            self.addresses()?;
            self.command()?;
        }
    }

    fn addresses(&mut self) -> Option<()> {
        loop {
            match self.peek()? {
                '/' => {
                    self.at += 1;
                    self.until('/')?;
                    self.take(|char| matches!(char, 'I' | 'M'));
                }
                '\\' => {
                    self.at += 1;
                    let end = self.peek()?;
                    self.at += 1;
                    self.until(end)?;
                    self.take(|char| matches!(char, 'I' | 'M'));
                }
                VARIABLE | '0'..='9' | '$' | ',' | '~' | '+' | '!' | ' ' | '\t' => self.at += 1,
                _ => return Some(()),
            }
        }
    }

    fn command(&mut self) -> Option<()> {
        let command = self.peek()?;
        self.at += 1;
        match command {
            '{' => return Some(()),
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            'l' | 'L' | 'q' | 'Q' => {
                self.take(|char| char == ' ' || char.is_ascii_digit());
            }
            '#' | 'a' | 'i' | 'c' => {
                // A text goes on behind a backslash at the end of a line.
                loop {
                    let line = self.rest_of_line();
                    let goes_on = line.ends_with('\\') && command != '#';
                    if !goes_on || self.peek().is_none() {
                        return Some(());
                    }
                    self.at += 1;
                }
            }
            'b' | 't' | 'T' | ':' | 'v' => {
                self.take(|char| !matches!(char, '\n' | ';' | '}'));
            }
            'r' | 'R' => _ = self.rest_of_line(),
            'w' | 'W' => self.write(),
            'e' => {
                let line = self.rest_of_line();
                self.effects
                    .runs
                    .push(match line.contains([VARIABLE, '\\']) || line.is_empty() {
                        true => Word::open("e"),
                        false => Word::text(line),
                    });
                return Some(());
            }
            's' | 'y' => {
                let end = self.peek()?;
                self.at += 1;
                self.until(end)?;
                self.until(end)?;
                let flags = self.take(|char| char.is_ascii_alphanumeric() && char != 'w');
                if flags.contains('e') {
                    self.effects.runs.push(Word::open("s///e"));
                }
                if self.peek() == Some('w') {
                    self.at += 1;
                    self.write();
                }
            }
            _ => return None,
        }
        self.take(|char| char == ' ' || char == '\t');
        match self.peek() {
            None | Some(';' | '\n' | '}' | '#') => Some(()),
            Some(_) => None,
        }
    }

    fn write(&mut self) {
        let name = self.rest_of_line();
        self.effects.writes.push(match name.contains(VARIABLE) {
            true => Word::open(name),
            false => Word::text(name),
        });
    }

    /// Moves behind the character that ends an expression. Returns `None` if that character is
    /// between brackets, where some versions of `sed` end the expression and others do not.
    fn until(&mut self, end: char) -> Option<()> {
        let mut is_in_brackets = false;
        loop {
            let char = self.peek()?;
            self.at += 1;
            match char {
                '\\' => self.at += 1,
                _ if char == end => return (!is_in_brackets).then_some(()),
                '[' => is_in_brackets = true,
                ']' => is_in_brackets = false,
                _ => {}
            }
        }
    }
}
