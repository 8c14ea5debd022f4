//! Removes quotes from one word. The parser has found where the word and its expansions are;
//! the quotes are read here once more, so that a mistake of the parser shows as a character
//! that cannot be inside a word.

use std::collections::BTreeMap;

use super::NotUnderstood;
use super::word::{Piece, Word};

/// Characters that end a word unless they are quoted.
const ENDS_WORD: &[char] = &[' ', '\t', '\n', '\r', ';', '|', '&', '<', '>', '(', ')'];

/// Reads the word in `source[start..end]`. `expansions` maps the starts of expansions to their
/// ends. Other shells than bash may not know `$'…'`.
pub(super) fn read_word(
    source: &str,
    start: usize,
    end: usize,
    expansions: &BTreeMap<usize, usize>,
    is_bash: bool,
) -> Result<Word, NotUnderstood> {
    let mut lexer = Lexer {
        source,
        at: start,
        end,
        expansions,
        is_bash,
        word: Word::default(),
    };
    lexer.unquoted()?;
    Ok(lexer.word)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    end: usize,
    expansions: &'a BTreeMap<usize, usize>,
    is_bash: bool,
    word: Word,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.source.get(self.at..self.end).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.rest().chars().next()?;
        self.at += char.len_utf8();
        Some(char)
    }

    /// Reads an expansion if one begins here. Returns whether one does.
    fn expansion(&mut self) -> bool {
        let Some(&end) = self.expansions.get(&self.at) else {
            return false;
        };
        let end = end.min(self.end);
        let text = self.source.get(self.at..end).unwrap_or_default().to_owned();
        self.word.0.push(match text.as_str() {
            "$HOME" | "${HOME}" => Piece::Home(text),
            _ => Piece::Open(text),
        });
        self.at = end;
        true
    }

    /// Reads the whole word.
    fn unquoted(&mut self) -> Result<(), NotUnderstood> {
        let start = self.at;
        // The start of a set such as `[a-z]`, and the pieces before it.
        let mut set: Option<(usize, Word)> = None;
        loop {
            if self.at < self.end && self.expansion() {
                continue;
            }
            let here = self.at;
            let Some(char) = self.next() else {
                if let Some((at, before)) = set {
                    let text = self.source.get(at..self.end).unwrap_or_default();
                    self.word = before;
                    self.word.0.push(Piece::Open(text.to_owned()));
                }
                return Ok(());
            };
            match char {
                '\\' => match self.next() {
                    Some('\n') => {}
                    Some(char) => self.word.push(char),
                    None => return Err(NotUnderstood::new("a line ends with a backslash")),
                },
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '$' if self.rest().starts_with('\'') => {
                    self.at += 1;
                    let before = self.word.clone();
                    self.ansi_c()?;
                    if !self.is_bash {
                        let text = self.source.get(here..self.at).unwrap_or_default();
                        self.word = before;
                        self.word.0.push(Piece::Open(text.to_owned()));
                    }
                }
                '$' if self.rest().starts_with('"') => {
                    // The text may be translated.
                    self.at += 1;
                    self.word.0.push(Piece::Open("$\"".into()));
                    self.double_quoted()?;
                }
                '$' if self.rest().starts_with(begins_expansion) => {
                    return Err(NotUnderstood::new("an expansion was not recognized"));
                }
                '`' => return Err(NotUnderstood::new("a backquote was not recognized")),
                '~' if here == start => {
                    // `~user` is the home folder of another user.
                    if matches!(self.rest().chars().next(), None | Some('/')) {
                        self.word.0.push(Piece::Tilde);
                    } else {
                        self.word.0.push(Piece::Open("~".into()));
                    }
                }
                '{' if may_expand(self.rest()) => {
                    let text = self.source.get(start..self.end).unwrap_or_default();
                    self.word = Word::open(text);
                    self.at = self.end;
                }
                '*' | '?' => self.word.0.push(Piece::Open(char.to_string())),
                '[' if set.is_none() && self.rest().contains(']') => {
                    set = Some((here, self.word.clone()));
                    self.word.push(char);
                }
                char if ENDS_WORD.contains(&char) => {
                    return Err(NotUnderstood::new(format!("{char:?} was not recognized")));
                }
                char => self.word.push(char),
            }
        }
    }

    /// Reads the rest of a text in single quotes.
    fn single_quoted(&mut self) -> Result<(), NotUnderstood> {
        let Some(length) = self.rest().find('\'') else {
            return Err(NotUnderstood::new("a single quote is not closed"));
        };
        let text = self.rest()[..length].to_owned();
        self.word.push_text(&text);
        self.at += length + 1;
        Ok(())
    }

    /// Reads the rest of a text in double quotes.
    fn double_quoted(&mut self) -> Result<(), NotUnderstood> {
        self.word.push_text("");
        loop {
            if self.at < self.end && self.expansion() {
                continue;
            }
            match self.next() {
                Some('"') => return Ok(()),
                Some('\\') => match self.next() {
                    Some('\n') => {}
                    Some(char @ ('$' | '`' | '"' | '\\')) => self.word.push(char),
                    Some(char) => {
                        self.word.push('\\');
                        self.word.push(char);
                    }
                    None => break,
                },
                Some('$') if self.rest().starts_with(begins_expansion) => {
                    return Err(NotUnderstood::new("an expansion was not recognized"));
                }
                Some('`') => return Err(NotUnderstood::new("a backquote was not recognized")),
                Some(char) => self.word.push(char),
                None => break,
            }
        }
        Err(NotUnderstood::new("a double quote is not closed"))
    }

    /// Reads the rest of `$'…'`, where a backslash begins an escape as in C.
    fn ansi_c(&mut self) -> Result<(), NotUnderstood> {
        self.word.push_text("");
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some('\\') => {
                    let Some(char) = self.next() else { break };
                    let decoded = match char {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'a' => '\x07',
                        'b' => '\x08',
                        'e' | 'E' => '\x1b',
                        'f' => '\x0c',
                        'v' => '\x0b',
                        '\\' | '\'' | '"' | '?' => char,
                        'x' => self.number(16, 2)?,
                        'u' => self.number(16, 4)?,
                        'U' => self.number(16, 8)?,
                        '0'..='7' => {
                            self.at -= 1;
                            self.number(8, 3)?
                        }
                        _ => return Err(NotUnderstood::new(r"an escape in $'…' is unknown")),
                    };
                    self.word.push(decoded);
                }
                Some(char) => self.word.push(char),
                None => break,
            }
        }
        Err(NotUnderstood::new("a single quote is not closed"))
    }

    /// Reads a character by its number. Fails for bytes above 127, which may be a part of a
    /// character, and for NUL, which ends the text.
    fn number(&mut self, radix: u32, digits: usize) -> Result<char, NotUnderstood> {
        let rest = self.rest();
        let length = rest
            .chars()
            .take(digits)
            .take_while(|it| it.is_digit(radix));
        let text: String = length.collect();
        self.at += text.len();
        let number = u32::from_str_radix(&text, radix).ok();
        let char = number.filter(|it| (1..128).contains(it) || digits > 3);
        char.and_then(char::from_u32)
            .filter(|it| *it != '\0')
            .ok_or_else(|| NotUnderstood::new(r"an escape in $'…' is no character"))
    }
}

fn begins_expansion(char: char) -> bool {
    char.is_alphanumeric() || "{([_@*#?$!-".contains(char)
}

/// Returns whether the shell may make several words of a brace before `rest`: `{a,b}`, `{1..9}`.
fn may_expand(rest: &str) -> bool {
    rest.contains('}') && (rest.contains(',') || rest.contains(".."))
}
