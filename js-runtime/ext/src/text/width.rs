//! Measures graphemes in columns, and cuts text at a column.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::ansi::{Piece, pieces};

/// Columns of a tab, at any position.
const TAB_COLUMNS: usize = 3;
const RESET: &str = "\x1b[0m";

/// Returns the columns of one grapheme cluster.
pub fn grapheme_width(grapheme: &str) -> usize {
    if let [byte] = grapheme.as_bytes() {
        return match byte {
            b'\t' => TAB_COLUMNS,
            0x20..=0x7e => 1,
            _ => 0,
        };
    }
    let Some(base) = grapheme.chars().find(|c| c.width().unwrap_or(0) > 0) else {
        // The cluster has only marks, joiners and controls. A letter without a base of its own
        // (Hangul vowels) is printed all the same, but its position cannot be known.
        return 0;
    };
    if is_emoji_sequence(grapheme, base) || matches!(base, '\u{1f1e6}'..='\u{1f1ff}') {
        return 2;
    }
    // Halfwidth voicing marks belong to the cluster but take a column of their own.
    let trailing: usize = grapheme
        .chars()
        .skip(1)
        .filter(|c| matches!(c, '\u{ff00}'..='\u{ffef}'))
        .map(|c| c.width().unwrap_or(0).max(1))
        .sum();
    base.width().unwrap_or(0) + trailing
}

/// Returns true for characters that are narrow alone but wide as an emoji: with a variation
/// selector, a skin tone, a joiner or a keycap.
fn is_emoji_sequence(grapheme: &str, base: char) -> bool {
    let joined = grapheme.chars().any(|c| {
        matches!(
            c,
            '\u{fe0f}' | '\u{200d}' | '\u{20e3}' | '\u{1f3fb}'..='\u{1f3ff}'
        )
    });
    joined
        && (!base.is_ascii() || grapheme.ends_with('\u{20e3}'))
        && (grapheme.width() >= 2 || grapheme.contains('\u{20e3}'))
}

/// Returns the columns of `text` on one line; escape sequences take none.
pub fn visible_width(text: &str) -> usize {
    width_until(text, usize::MAX)
}

/// Returns the width of `text`, or any width above `limit` if it exceeds that.
fn width_until(text: &str, limit: usize) -> usize {
    if is_printable_ascii(text) {
        return text.len();
    }
    let mut width = 0;
    for piece in pieces(text) {
        let Piece::Plain(plain) = piece else { continue };
        for grapheme in plain.graphemes(true) {
            width += grapheme_width(grapheme);
            if width > limit {
                return width;
            }
        }
    }
    width
}

fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
}

/// A part of a line and its columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    pub text: String,
    pub columns: usize,
}

/// Shortens `text` to `columns`, ending in `ellipsis` if something is missing, and
/// filled up with spaces if `pad` is set. Styles are reset before the ellipsis.
pub fn truncate_to_width(text: &str, columns: usize, ellipsis: &str, pad: bool) -> String {
    let fill = |used: usize| " ".repeat(if pad { columns.saturating_sub(used) } else { 0 });
    let width = width_until(text, columns);
    if width <= columns {
        return if columns == 0 {
            String::new()
        } else {
            format!("{text}{}", fill(width))
        };
    }
    let ellipsis_width = visible_width(ellipsis);
    if ellipsis_width >= columns {
        let ellipsis = head(ellipsis, columns);
        if ellipsis.columns == 0 {
            return fill(0);
        }
        return format!("{RESET}{}{RESET}{}", ellipsis.text, fill(ellipsis.columns));
    }
    let kept = head(text, columns - ellipsis_width);
    let end = if ellipsis.is_empty() { "" } else { RESET };
    format!(
        "{}{RESET}{ellipsis}{end}{}",
        kept.text,
        fill(kept.columns + ellipsis_width)
    )
}

/// Returns as many graphemes from the start as fit, without escape sequences after them.
fn head(text: &str, columns: usize) -> Slice {
    let mut kept = Slice::default();
    let mut waiting = String::new();
    for piece in pieces(text) {
        match piece {
            Piece::Escape(escape) => waiting += escape,
            Piece::Plain(plain) => {
                for grapheme in plain.graphemes(true) {
                    let width = grapheme_width(grapheme);
                    if kept.columns + width > columns {
                        return kept;
                    }
                    kept.text += &std::mem::take(&mut waiting);
                    kept.text += grapheme;
                    kept.columns += width;
                }
            }
        }
    }
    kept
}

/// Returns the part of `line` in `columns` columns from column `start`, with the escape sequences
/// that lead to it. If `strict` is set, a wide grapheme that begins in the range and ends after it
/// is left out.
pub fn slice_columns(line: &str, start: usize, columns: usize, strict: bool) -> Slice {
    let end = start.saturating_add(columns);
    let mut slice = Slice::default();
    let mut before = String::new();
    let mut column = 0;
    for piece in pieces(line) {
        if column >= end {
            break;
        }
        match piece {
            Piece::Escape(escape) if column < start => before += escape,
            Piece::Escape(escape) => slice.text += escape,
            Piece::Plain(plain) => {
                for grapheme in plain.graphemes(true) {
                    let width = grapheme_width(grapheme);
                    if column >= start && column < end && (!strict || column + width <= end) {
                        slice.text += &std::mem::take(&mut before);
                        slice.text += grapheme;
                        slice.columns += width;
                    }
                    column += width;
                    if column >= end {
                        break;
                    }
                }
            }
        }
    }
    slice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        let cases = [
            ("", 0),
            ("abc", 3),
            ("a\tb", 5),
            ("\x1b[31mred\x1b[0m", 3),
            ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", 4),
            ("日本語", 6),
            ("e\u{301}", 1),
            ("👍", 2),
            ("👍🏽", 2),
            ("☝🏽", 2),
            ("👨‍👩‍👧", 2),
            ("❤", 1),
            ("❤\u{fe0f}", 2),
            ("1\u{fe0f}\u{20e3}", 2),
            ("1\u{fe0f}", 1),
            ("🇩🇪", 2),
            ("🇩", 2),
            ("ｶﾞ", 2),
            ("\u{200b}", 0),
            ("─→✓○", 4),
            ("한글", 4),
        ];
        for (text, width) in cases {
            assert_eq!(visible_width(text), width, "{text:?}");
        }
    }

    #[test]
    fn truncation_resets_styles_before_the_ellipsis() {
        assert_eq!(truncate_to_width("hello", 5, "...", false), "hello");
        assert_eq!(truncate_to_width("hello", 7, "...", true), "hello  ");
        assert_eq!(
            truncate_to_width("hello world", 8, "...", false),
            "hello\x1b[0m...\x1b[0m"
        );
        assert_eq!(
            truncate_to_width("\x1b[31mhello\x1b[0m world", 6, "", true),
            "\x1b[31mhello\x1b[0m \x1b[0m"
        );
        assert_eq!(
            truncate_to_width("日本語", 4, "…", true),
            "日\x1b[0m…\x1b[0m "
        );
        assert_eq!(
            truncate_to_width("hello", 2, "...", false),
            "\x1b[0m..\x1b[0m"
        );
        assert_eq!(truncate_to_width("hello", 0, "...", true), "");
    }

    #[test]
    fn slices_keep_what_styles_them() {
        let line = "\x1b[31mab\x1b[0m日c";
        assert_eq!(slice_columns(line, 1, 2, false).text, "\x1b[31mb\x1b[0m日");
        assert_eq!(slice_columns(line, 1, 2, true).text, "\x1b[31mb\x1b[0m");
        assert_eq!(slice_columns(line, 4, 9, true).text, "\x1b[31m\x1b[0mc");
    }
}
