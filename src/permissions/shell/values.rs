//! Finds what the variables of a line stand for, where the line itself sets them.

use std::collections::BTreeMap;

use super::word::{Piece, Word};

/// Number of words that one word may stand for.
const MAX_WORDS: usize = 64;
/// Depth of variables within the values of variables.
const MAX_DEPTH: usize = 4;

/// The values of variables, whatever the order in which a line sets and uses them.
#[derive(Default)]
pub(super) struct Values {
    /// `None` for a variable that may be anything.
    known: BTreeMap<String, Option<Vec<Word>>>,
    /// Whether all variables may be anything.
    is_lost: bool,
}

impl Values {
    /// Adds a value that a variable may have.
    pub fn add(&mut self, name: &str, value: &Word) {
        // The shell splits unquoted variables at other characters then.
        self.is_lost |= name == "IFS";
        let known = self.known.entry(name.to_owned());
        let known = known.or_insert_with(|| Some(Vec::new()));
        match known {
            Some(values) if values.contains(value) => {}
            Some(values) if values.len() < MAX_WORDS => values.push(value.clone()),
            // A long list is not searched.
            _ => *known = None,
        }
    }

    /// Records that a variable may be anything.
    pub fn add_unknown(&mut self, name: &str) {
        self.is_lost |= name.is_empty();
        self.known.insert(name.to_owned(), None);
    }

    /// Records the variable that `${NAME:=value}` or `${NAME=value}` sets.
    pub fn set_by_expansion(&mut self, text: &str) {
        let text = text.trim_start_matches("${");
        let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
        let end = text.find(|char| !is_name(char)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        if rest.starts_with('=') || rest.starts_with(":=") {
            self.add_unknown(name);
        }
    }

    /// Records what `export`, `declare` and the like set with these arguments.
    pub fn declare(&mut self, words: &[Word]) {
        let starts = || words.iter().map(Word::known_prefix);
        // Flags make references, or change letters.
        let has_flag = starts().any(|start| start.starts_with(['-', '+']));
        for word in words {
            let start = word.known_prefix();
            if start.starts_with(['-', '+']) {
                continue;
            }
            let Some((name, _)) = start.split_once('=') else {
                // Without a name all variables may be meant.
                if word.is_open() || has_flag {
                    self.add_unknown(if word.is_open() { "" } else { &start });
                }
                continue;
            };
            let is_plain = !has_flag && !name.ends_with(['+', ']']);
            match is_plain {
                true => self.add(name, &word.without_prefix(name.len() + 1)),
                false => {
                    let name = name.trim_end_matches('+').split('[').next();
                    self.add_unknown(name.unwrap_or_default());
                }
            }
        }
    }

    /// Returns the words that a word may stand for. Their open parts are wildcards. `None` if the line
    /// does not tell.
    pub fn expand(&self, word: &Word) -> Option<Vec<Word>> {
        self.expand_within(word, 0)
    }

    fn expand_within(&self, word: &Word, depth: usize) -> Option<Vec<Word>> {
        let mut found = vec![Word::default()];
        for piece in &word.0 {
            let Piece::Open(source) = piece else {
                found.iter_mut().for_each(|word| append(word, piece));
                continue;
            };
            if !source.starts_with(['$', '`', '<', '>', '~']) {
                found.iter_mut().for_each(|word| append(word, piece));
                continue;
            }
            let values = self.values_of(source, depth)?;
            let mut next = Vec::new();
            for before in &found {
                for value in &values {
                    let mut word = before.clone();
                    value.0.iter().for_each(|piece| append(&mut word, piece));
                    next.push(word);
                }
            }
            found = next;
            if found.len() > MAX_WORDS {
                return None;
            }
        }
        Some(found)
    }

    /// Returns the values of `$NAME` or `${NAME}`.
    fn values_of(&self, source: &str, depth: usize) -> Option<Vec<Word>> {
        let name = source.strip_prefix('$')?;
        let name = match name.strip_prefix('{') {
            Some(rest) => rest.strip_suffix('}')?,
            None => name,
        };
        if self.is_lost || depth >= MAX_DEPTH {
            return None;
        }
        let mut found = Vec::new();
        for value in self.known.get(name)?.as_ref()? {
            if !value.0.iter().all(is_one_word) {
                return None;
            }
            found.extend(self.expand_within(value, depth + 1)?);
        }
        Some(found)
    }
}

/// Returns whether the shell makes no other words of the part if it is the value of a variable.
fn is_one_word(piece: &Piece) -> bool {
    match piece {
        Piece::Text(text) => {
            !text.contains(|char: char| char.is_whitespace() || "*?[\\".contains(char))
        }
        Piece::Tilde | Piece::Home(_) | Piece::Open(_) => true,
    }
}

fn append(word: &mut Word, piece: &Piece) {
    match piece {
        Piece::Text(text) => word.push_text(text),
        other => word.0.push(other.clone()),
    }
}
