//! Words of a shell line after quote removal. Parts that only the shell knows at run time stay
//! open.

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// An unquoted `~` at the beginning: the home folder.
    Tilde,
    /// `$HOME`, with its text in the line.
    Home(String),
    /// An expansion, with its text in the line. It may become any text, several words or none.
    Open(String),
}

/// A word of a command, such as `rm`, `"$file"` or `*.txt`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word(pub Vec<Piece>);

impl Word {
    /// Makes a word of known text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Piece::Text(text.into())])
    }

    /// Makes a word that only the shell knows. `source` is its text in the line.
    pub fn open(source: impl Into<String>) -> Self {
        Self(vec![Piece::Open(source.into())])
    }

    pub(super) fn push(&mut self, char: char) {
        match self.0.last_mut() {
            Some(Piece::Text(text)) => text.push(char),
            _ => self.0.push(Piece::Text(char.to_string())),
        }
    }

    pub(super) fn push_text(&mut self, more: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(text)) => text.push_str(more),
            // An empty text makes a word, too.
            _ => self.0.push(Piece::Text(more.to_owned())),
        }
    }

    /// Returns the text if no part is open. A tilde stays as it is.
    pub fn known(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Tilde => text.push('~'),
                Piece::Home(_) | Piece::Open(_) => return None,
            }
        }
        Some(text)
    }

    /// Returns the known text before the first open part.
    pub fn known_prefix(&self) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Tilde => text.push('~'),
                Piece::Home(_) | Piece::Open(_) => break,
            }
        }
        text
    }

    /// Returns whether a part of the word is open.
    pub fn is_open(&self) -> bool {
        self.known().is_none()
    }

    /// Returns the word without the first `count` bytes, which have to be known text.
    pub(super) fn without_prefix(&self, count: usize) -> Self {
        let mut left = count;
        let mut pieces = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) if left >= text.len() => left -= text.len(),
                Piece::Text(text) => {
                    pieces.push(Piece::Text(text.get(left..).unwrap_or_default().to_owned()));
                    left = 0;
                }
                Piece::Tilde if left > 0 => left -= 1,
                other => pieces.push(other.clone()),
            }
        }
        Self(pieces)
    }

    /// Returns the name of a program without its folder.
    pub(crate) fn base_name(&self) -> Self {
        let last = self.0.iter().rposition(|piece| match piece {
            Piece::Text(text) => text.contains('/'),
            _ => false,
        });
        let Some(last) = last else {
            return self.clone();
        };
        let mut pieces = self.0[last..].to_vec();
        if let Piece::Text(text) = &mut pieces[0]
            && let Some(slash) = text.rfind('/')
        {
            text.drain(..=slash);
        }
        Self(pieces)
    }

    /// Returns the word as one can write it in a shell line.
    pub(crate) fn quoted(&self) -> String {
        let mut line = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => line.push_str(&quote(text)),
                Piece::Tilde => line.push('~'),
                Piece::Home(source) | Piece::Open(source) => line.push_str(source),
            }
        }
        if line.is_empty() {
            line.push_str("''");
        }
        line
    }
}

impl Word {
    /// Returns the pattern of a rule that matches this word only. The pattern has the text of open
    /// parts, such as `$file`.
    pub(crate) fn as_pattern(&self) -> String {
        let mut pattern = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => pattern.push_str(&quote(text)),
                Piece::Tilde => pattern.push('~'),
                Piece::Home(source) | Piece::Open(source) => pattern.push_str(&quote(source)),
            }
        }
        if pattern.is_empty() {
            pattern.push_str("''");
        }
        pattern
    }
}

/// Puts quotes around `text` if a shell needs them.
pub(crate) fn quote(text: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "-_./=:,@%+".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
