//! Word wrapping that carries styles and links over line breaks.

use unicode_segmentation::UnicodeSegmentation;

use super::ansi::{Piece, Style, pieces};
use super::width::{grapheme_width, visible_width};

/// Breaks `text` into lines of at most `columns` columns, at spaces where possible.
/// Lines are not padded. A grapheme wider than `columns` gets a line of its own.
pub fn wrap_text(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut style = Style::default();
    for (number, line) in text.split('\n').enumerate() {
        let carried = if number > 0 {
            style.start()
        } else {
            String::new()
        };
        wrap_line(&format!("{carried}{line}"), columns, &mut lines);
        style.follow(line);
    }
    lines
}

fn wrap_line(line: &str, columns: usize, lines: &mut Vec<String>) {
    if visible_width(line) <= columns {
        lines.push(line.to_string());
        return;
    }
    let mut wrapper = Wrapper {
        columns,
        style: Style::default(),
        line: String::new(),
        used: 0,
        lines,
    };
    for word in words(line) {
        wrapper.add(&word);
    }
    if !wrapper.line.is_empty() {
        let last = wrapper.line.trim_end().to_string();
        wrapper.lines.push(last);
    }
}

struct Wrapper<'a> {
    columns: usize,
    /// Active styles at the end of `line`.
    style: Style,
    line: String,
    used: usize,
    lines: &'a mut Vec<String>,
}

impl Wrapper<'_> {
    fn add(&mut self, word: &str) {
        let width = visible_width(word);
        let is_space = word.trim().is_empty();
        if width > self.columns && !is_space {
            return self.add_in_parts(word);
        }
        if self.used > 0 && self.used + width > self.columns {
            self.line.truncate(self.line.trim_end().len());
            self.end_line();
            if !is_space {
                self.line += word;
                self.used = width;
            }
        } else {
            self.line += word;
            self.used += width;
        }
        self.style.follow(word);
    }

    /// Adds a word that is longer than a line: it starts on a line of its own and is cut between
    /// graphemes.
    fn add_in_parts(&mut self, word: &str) {
        if !self.line.is_empty() {
            self.end_line();
        } else {
            self.line = self.style.start();
        }
        for piece in pieces(word) {
            match piece {
                Piece::Escape(escape) => {
                    self.line += escape;
                    self.style.apply(escape);
                }
                Piece::Plain(plain) => {
                    for grapheme in plain.graphemes(true) {
                        let width = grapheme_width(grapheme);
                        if self.used > 0 && self.used + width > self.columns {
                            self.end_line();
                        }
                        self.line += grapheme;
                        self.used += width;
                    }
                }
            }
        }
    }

    /// Closes the line; the next one starts with the styles of this one.
    fn end_line(&mut self) {
        let mut line = std::mem::replace(&mut self.line, self.style.start());
        line += &self.style.line_end();
        self.lines.push(line.trim_end().to_string());
        self.used = 0;
    }
}

/// Returns runs of spaces and of other characters, each with the escape sequences before it; the
/// last one also has those after it.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last_was_space = None;
    let mut waiting = String::new();
    for piece in pieces(line) {
        let plain = match piece {
            Piece::Escape(escape) => {
                waiting += escape;
                continue;
            }
            Piece::Plain(plain) => plain,
        };
        for c in plain.chars() {
            let is_space = c == ' ';
            if last_was_space != Some(is_space) {
                words.push(String::new());
                last_was_space = Some(is_space);
            }
            if let Some(word) = words.last_mut() {
                word.push_str(&std::mem::take(&mut waiting));
                word.push(c);
            }
        }
    }
    match words.last_mut() {
        Some(word) => word.push_str(&waiting),
        None => words.push(waiting),
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_move_to_the_next_line_whole() {
        assert_eq!(wrap_text("hello wide world", 11), ["hello wide", "world"]);
        assert_eq!(wrap_text("a\n\nb", 5), ["a", "", "b"]);
        assert_eq!(wrap_text("", 5), [""]);
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(wrap_text("ab abcdefgh c", 4), ["ab", "abcd", "efgh", "c"]);
        assert_eq!(wrap_text("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap_text("日本", 1), ["日", "本"]);
    }

    #[test]
    fn styles_and_links_continue() {
        assert_eq!(
            wrap_text("\x1b[4;31mone two\nthree\x1b[0m four", 5),
            [
                "\x1b[4;31mone\x1b[24m",
                "\x1b[4;31mtwo",
                "\x1b[4;31mthree\x1b[24m",
                // A styled space counts as a word.
                "\x1b[4;31m\x1b[0m four"
            ]
        );
        let link = "\x1b]8;;http://x\x1b\\aa bb\x1b]8;;\x1b\\";
        assert_eq!(
            wrap_text(link, 3),
            [
                "\x1b]8;;http://x\x1b\\aa\x1b]8;;\x1b\\",
                "\x1b]8;;http://x\x1b\\bb\x1b]8;;\x1b\\"
            ]
        );
    }
}
