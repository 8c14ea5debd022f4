//! Matches commands with the patterns of rules: `git status`, `npm run *`, `git push:*`. A `*`
//! stands for any text, also over several words; ` *` at the end also for no text.

use crate::shell::{Piece, Word};

/// A character of a pattern or of a command, or the end of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Symbol {
    Char(char),
    /// Between two words.
    Blank,
    /// In a pattern: any text.
    Star,
    /// In a command: an open part with its text in the line.
    Open(String),
}

/// The pattern of a rule about commands.
#[derive(Clone, Debug)]
pub(crate) struct CommandPattern {
    symbols: Vec<Symbol>,
    /// The number of words that have no wildcard in or before them.
    known_words: usize,
}

impl CommandPattern {
    /// Parses the text between the parentheses of a rule. Quotes and backslashes mean what they mean
    /// in a shell. The error is the reason why the pattern cannot be used.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        // Other agents write `:*` for ` *`.
        let (text, has_colon) = match text.strip_suffix(":*") {
            Some(start) => (start, true),
            None => (text, false),
        };
        let mut symbols = words(text)?;
        if symbols.is_empty() && !has_colon {
            return Err("the command is missing; without parentheses all commands match".into());
        }
        if has_colon {
            if !symbols.is_empty() {
                symbols.push(Symbol::Blank);
            }
            symbols.push(Symbol::Star);
        }
        let known = symbols.iter().take_while(|it| **it != Symbol::Star);
        let mut known_words = known.filter(|it| **it == Symbol::Blank).count();
        if !symbols.contains(&Symbol::Star) {
            known_words += 1;
        }
        Ok(Self {
            symbols,
            known_words,
        })
    }

    /// Returns whether no wildcard is in the pattern.
    pub fn is_exact(&self) -> bool {
        !self.symbols.contains(&Symbol::Star)
    }

    /// Returns whether the word at `index` is in the pattern as it is, without a wildcard.
    pub fn names_word(&self, index: usize) -> bool {
        index < self.known_words
    }

    /// Returns whether the command matches, whatever its open parts become.
    pub fn must_match(&self, words: &[Word]) -> bool {
        self.matches(&command_symbols(words), false)
    }

    /// Returns whether the command may match.
    pub fn may_match(&self, words: &[Word]) -> bool {
        self.matches(&command_symbols(words), true)
    }

    /// Compares the pattern with a command. With `may`, open parts may become any text. Fills a
    /// table: `at[j]` says whether the pattern up to here matches the first `j` symbols of the
    /// command.
    fn matches(&self, command: &[Symbol], may: bool) -> bool {
        let mut at = vec![false; command.len() + 1];
        at[0] = true;
        if may {
            skip_open(&mut at, command);
        }
        // An open part matches its own text, over several steps: (end of the part, text left).
        let mut within: Vec<(usize, String)> = Vec::new();
        let pattern = &self.symbols;
        let mut index = 0;
        let mut matches_without_tail = false;
        while index < pattern.len() {
            let symbol = &pattern[index];
            let mut next = vec![false; command.len() + 1];
            let mut next_within = Vec::new();
            // ` *` at the end also matches nothing.
            if index + 2 == pattern.len()
                && *symbol == Symbol::Blank
                && pattern[index + 1] == Symbol::Star
            {
                matches_without_tail = at[command.len()];
            }
            match symbol {
                Symbol::Star => {
                    let mut reached = false;
                    for (j, slot) in next.iter_mut().enumerate() {
                        reached |= at[j];
                        *slot = reached;
                    }
                }
                Symbol::Open(_) => {}
                Symbol::Char(_) | Symbol::Blank => {
                    for (j, have) in command.iter().enumerate() {
                        if !at[j] {
                            continue;
                        }
                        if have == symbol {
                            next[j + 1] = true;
                        }
                        if let Symbol::Open(source) = have {
                            if may {
                                next[j] = true;
                            }
                            if let Symbol::Char(char) = symbol {
                                step(source, *char, j + 1, &mut next, &mut next_within);
                            }
                        }
                    }
                    if let Symbol::Char(char) = symbol {
                        for (end, rest) in &within {
                            step(rest, *char, *end, &mut next, &mut next_within);
                        }
                    }
                    if may {
                        skip_open(&mut next, command);
                    }
                }
            }
            at = next;
            within = next_within;
            index += 1;
        }
        at[command.len()] || matches_without_tail
    }
}

/// Compares one character with the text of an open part that ends at `end`, and records whether the
/// part matches as a whole or goes on.
fn step(
    source: &str,
    char: char,
    end: usize,
    next: &mut [bool],
    within: &mut Vec<(usize, String)>,
) {
    let mut chars = source.chars();
    if chars.next() == Some(char) {
        match chars.as_str() {
            "" => next[end] = true,
            rest if within.len() < 1024 => within.push((end, rest.to_owned())),
            _ => {}
        }
    }
}

/// Records where the match may go on if open parts become nothing: behind each of them, and behind
/// the blank beside it.
fn skip_open(at: &mut [bool], command: &[Symbol]) {
    for j in 0..command.len() {
        if !at[j] {
            continue;
        }
        let is_open = |index: usize| matches!(command.get(index), Some(Symbol::Open(_)));
        if is_open(j) {
            at[j + 1] = true;
            if command.get(j + 1) == Some(&Symbol::Blank) {
                at[j + 2] = true;
            }
        }
        if command[j] == Symbol::Blank && is_open(j + 1) {
            at[j + 2] = true;
        }
    }
}

fn command_symbols(words: &[Word]) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            symbols.push(Symbol::Blank);
        }
        for piece in &word.0 {
            match piece {
                Piece::Text(text) => symbols.extend(text.chars().map(Symbol::Char)),
                Piece::Tilde => symbols.push(Symbol::Open("~".into())),
                Piece::Home(source) | Piece::Open(source) => {
                    symbols.push(Symbol::Open(source.clone()));
                }
            }
        }
    }
    symbols
}

/// Splits the text of a pattern into words, as a shell would.
fn words(text: &str) -> Result<Vec<Symbol>, String> {
    let mut symbols = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            ' ' | '\t' | '\n' => {
                while chars.next_if(|it| it.is_whitespace()).is_some() {}
                symbols.push(Symbol::Blank);
            }
            '*' => {
                if symbols.last() != Some(&Symbol::Star) {
                    symbols.push(Symbol::Star);
                }
            }
            '\\' => match chars.next() {
                Some(char) => symbols.push(Symbol::Char(char)),
                None => return Err("the pattern ends with a backslash".into()),
            },
            '\'' | '"' => loop {
                match chars.next() {
                    Some(end) if end == char => break,
                    Some('\\') if char == '"' => {
                        let escaped = chars.next_if(|it| matches!(it, '"' | '\\' | '$' | '`'));
                        symbols.push(Symbol::Char(escaped.unwrap_or('\\')));
                    }
                    Some(inside) => symbols.push(Symbol::Char(inside)),
                    None => return Err("a quote is not closed".into()),
                }
            },
            ';' | '|' | '&' | '<' | '>' => {
                return Err(format!(
                    "{char:?} joins commands, and each command is matched alone; put quotes \
                     around it if it belongs to a word"
                ));
            }
            char => symbols.push(Symbol::Char(char)),
        }
    }
    Ok(symbols)
}

#[cfg(test)]
mod tests;
