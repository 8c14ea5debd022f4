//! Splits a line around columns that something else is drawn over.

use unicode_segmentation::UnicodeSegmentation;

use super::ansi::{Piece, Style, pieces};
use super::width::{Slice, grapheme_width};

/// Returns the text before column `start`, and the text in the `columns` columns from column `end`
/// on. The second part begins with the styles that extend into it.
pub fn around_columns(line: &str, start: usize, end: usize, columns: usize) -> (Slice, Slice) {
    let last = end.saturating_add(columns);
    let done = if columns == 0 { start } else { last };
    let (mut before, mut after) = (Slice::default(), Slice::default());
    let mut style = Style::default();
    // Sequences without following text style nothing.
    let mut waiting = String::new();
    let mut column = 0;
    for piece in pieces(line) {
        if column >= done {
            break;
        }
        match piece {
            Piece::Escape(escape) => {
                style.apply(escape);
                if column < start {
                    waiting += escape;
                } else if column >= end && !after.text.is_empty() {
                    after.text += escape;
                }
            }
            Piece::Plain(plain) => {
                for grapheme in plain.graphemes(true) {
                    let width = grapheme_width(grapheme);
                    if column < start {
                        before.text += &std::mem::take(&mut waiting);
                        before.text += grapheme;
                        before.columns += width;
                    } else if column >= end && column + width <= last {
                        if after.text.is_empty() {
                            after.text = style.start();
                        }
                        after.text += grapheme;
                        after.columns += width;
                    }
                    column += width;
                    if column >= done {
                        break;
                    }
                }
            }
        }
    }
    (before, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_reach_over_the_gap() {
        let (before, after) = around_columns("a\x1b[31mbcdef\x1b[0m", 2, 4, 10);
        assert_eq!(before.text, "a\x1b[31mb");
        assert_eq!(after.text, "\x1b[31mef\x1b[0m");
        assert_eq!((before.columns, after.columns), (2, 2));
    }

    #[test]
    fn wide_characters_cross_only_the_first_edge() {
        let (before, after) = around_columns("日本語x日", 3, 6, 2);
        assert_eq!((before.text.as_str(), before.columns), ("日本", 4));
        assert_eq!((after.text.as_str(), after.columns), ("x", 1));
        let (before, after) = around_columns("short", 10, 20, 5);
        assert_eq!((before.text.as_str(), after.text.as_str()), ("short", ""));
    }
}
