//! Limits tool output for models: whole lines up to a line and a byte limit, from the head or
//! from the tail, with a record of what was left out. The field names of [`Truncation`] are wire
//! names.

use pi_base::utf16;
use serde::{Deserialize, Serialize};

pub const MAX_LINES: usize = 2000;
pub const MAX_BYTES: usize = 50 * 1024;
/// Longest line that search results show, in UTF-16 units.
pub const MAX_LINE_LENGTH: usize = 500;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    pub content: String,
    pub truncated: bool,
    pub truncated_by: Option<TruncatedBy>,
    /// Number of lines in the whole text. A trailing newline counts as one more, empty line.
    pub total_lines: usize,
    pub total_bytes: usize,
    /// Number of lines in `content`.
    pub output_lines: usize,
    pub output_bytes: usize,
    /// True if `content` is only the end of a line that is too long.
    pub last_line_partial: bool,
    /// True if the first line alone exceeds the limit; `content` is then empty.
    pub first_line_exceeds_limit: bool,
    pub max_lines: usize,
    pub max_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TruncatedBy {
    Lines,
    Bytes,
}

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub lines: usize,
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            lines: MAX_LINES,
            bytes: MAX_BYTES,
        }
    }
}

/// Returns the first lines that fit.
pub fn head(text: &str, limits: Limits) -> Truncation {
    let mut scanner = HeadScanner::new(limits);
    scanner.push(text);
    scanner.finish()
}

/// Returns the last lines that fit, or the end of a last line that is too long.
pub fn tail(text: &str, limits: Limits) -> Truncation {
    let total_lines = count_lines(text);
    let mut record = Truncation {
        content: String::new(),
        truncated: false,
        truncated_by: None,
        total_lines,
        total_bytes: text.len(),
        output_lines: total_lines,
        output_bytes: text.len(),
        last_line_partial: false,
        first_line_exceeds_limit: false,
        max_lines: limits.lines,
        max_bytes: limits.bytes,
    };
    if total_lines <= limits.lines && text.len() <= limits.bytes {
        record.content = text.to_owned();
        return record;
    }

    let mut start = None;
    let mut lines = 0;
    let mut by = TruncatedBy::Lines;
    let mut end = text.len();
    while lines < limits.lines {
        let line_start = text[..end].rfind('\n').map_or(0, |newline| newline + 1);
        if text.len() - line_start > limits.bytes {
            by = TruncatedBy::Bytes;
            break;
        }
        start = Some(line_start);
        lines += 1;
        if line_start == 0 {
            break;
        }
        end = line_start - 1;
    }
    let start = start.unwrap_or_else(|| {
        if by == TruncatedBy::Bytes {
            record.last_line_partial = true;
            lines = 1;
            text.ceil_char_boundary(text.len() - limits.bytes)
        } else {
            text.len()
        }
    });
    record.content = text[start..].to_owned();
    record.truncated = true;
    record.truncated_by = Some(by);
    record.output_lines = lines;
    record.output_bytes = record.content.len();
    record
}

/// Cuts one line of a search result at `max` UTF-16 units. The flag is true if it was cut.
pub fn line(text: &str, max: usize) -> (String, bool) {
    match utf16::byte_index(text, max) {
        end if end < text.len() => (format!("{}... [truncated]", &text[..end]), true),
        _ => (text.to_owned(), false),
    }
}

/// Formats a size: `1023B`, `50.0KB`, `1.5MB`.
pub fn format_size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    // Rust rounds an exact half to even; the wire format rounds it up.
    let tenths = |unit: u64| {
        let whole = bytes / unit;
        let tenths = ((bytes % unit) * 10 + unit / 2) / unit;
        (whole + tenths / 10, tenths % 10)
    };
    match bytes {
        0..KIB => format!("{bytes}B"),
        KIB..MIB => {
            let (whole, tenth) = tenths(KIB);
            format!("{whole}.{tenth}KB")
        }
        _ => {
            let (whole, tenth) = tenths(MIB);
            format!("{whole}.{tenth}MB")
        }
    }
}

pub(crate) fn count_lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Like [`head`], for text that arrives in pieces and may exceed memory: text that does not fit
/// is counted and dropped.
pub struct HeadScanner {
    limits: Limits,
    content: String,
    /// End of the last complete line in `content`.
    complete: Option<usize>,
    complete_lines: usize,
    by: Option<TruncatedBy>,
    newlines: usize,
    total_bytes: usize,
    first_line_bytes: usize,
}

impl HeadScanner {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            content: String::new(),
            complete: None,
            complete_lines: 0,
            by: None,
            newlines: 0,
            total_bytes: 0,
            first_line_bytes: 0,
        }
    }

    pub fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            let ends = piece.ends_with('\n');
            if self.newlines == 0 {
                self.first_line_bytes += piece.len() - usize::from(ends);
            }
            self.total_bytes += piece.len();
            self.newlines += usize::from(ends);
            if self.by.is_none() {
                self.keep(piece, ends);
            }
        }
    }

    fn keep(&mut self, piece: &str, ends: bool) {
        if self.complete_lines == self.limits.lines {
            self.by = Some(TruncatedBy::Lines);
            return;
        }
        let line = piece.strip_suffix('\n').unwrap_or(piece);
        if self.content.len() + line.len() > self.limits.bytes {
            self.by = Some(TruncatedBy::Bytes);
            return;
        }
        self.content.push_str(line);
        if ends {
            self.complete = Some(self.content.len());
            self.complete_lines += 1;
            // This may exceed the limit by one byte: it is dropped again unless the text ends
            // here, and then it counts.
            self.content.push('\n');
        }
    }

    /// Returns the length of the first line, which may exceed any limit.
    pub fn first_line_bytes(&self) -> usize {
        self.first_line_bytes
    }

    pub fn finish(mut self) -> Truncation {
        let total_lines = self.newlines + 1;
        let fits = total_lines <= self.limits.lines && self.total_bytes <= self.limits.bytes;
        let (output_lines, by) = if fits {
            (total_lines, None)
        } else if self.by.is_none() && self.complete_lines < self.limits.lines {
            // All text was kept. The excess is the newline before an empty last line that does
            // not fit.
            self.content.truncate(self.complete.unwrap_or(0));
            (self.complete_lines, Some(TruncatedBy::Bytes))
        } else {
            self.content.truncate(self.complete.unwrap_or(0));
            let by = match self.by {
                Some(by) if self.complete_lines < self.limits.lines => by,
                _ => TruncatedBy::Lines,
            };
            (self.complete_lines, Some(by))
        };
        Truncation {
            truncated: by.is_some(),
            truncated_by: by,
            total_lines,
            total_bytes: self.total_bytes,
            output_lines,
            output_bytes: self.content.len(),
            last_line_partial: false,
            first_line_exceeds_limit: by.is_some() && self.first_line_bytes > self.limits.bytes,
            max_lines: self.limits.lines,
            max_bytes: self.limits.bytes,
            content: self.content,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(lines: usize, bytes: usize) -> Limits {
        Limits { lines, bytes }
    }

    fn brief(record: &Truncation) -> (&str, Option<TruncatedBy>, usize, usize) {
        (
            &record.content,
            record.truncated_by,
            record.output_lines,
            record.total_lines,
        )
    }

    #[test]
    fn text_within_the_limits_is_untouched() {
        for text in ["", "a", "a\n", "a\nb\n", "\n"] {
            let record = head(text, limits(3, 10));
            assert_eq!(
                brief(&record),
                (text, None, count_lines(text), count_lines(text))
            );
            assert_eq!(record, tail(text, limits(3, 10)));
        }
    }

    #[test]
    fn head_keeps_whole_lines() {
        use TruncatedBy::{Bytes, Lines};
        let cases = [
            ("a\nb\nc", 2, 100, ("a\nb", Some(Lines), 2, 3)),
            ("aaaa\nbbbb\nc", 9, 6, ("aaaa", Some(Bytes), 1, 3)),
            ("aaaa\nbbbb", 9, 8, ("aaaa", Some(Bytes), 1, 2)),
            ("aaaa\n", 9, 4, ("aaaa", Some(Bytes), 1, 2)),
            ("aaaa\n\n", 9, 4, ("aaaa", Some(Bytes), 1, 3)),
            ("a\n", 1, 100, ("a", Some(Lines), 1, 2)),
        ];
        for (text, lines, bytes, expected) in cases {
            assert_eq!(
                brief(&head(text, limits(lines, bytes))),
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_first_line_too_long_leaves_nothing() {
        let record = head("aaaaaa\nb", limits(9, 5));
        assert_eq!(
            record,
            Truncation {
                content: String::new(),
                truncated: true,
                truncated_by: Some(TruncatedBy::Bytes),
                total_lines: 2,
                total_bytes: 8,
                output_lines: 0,
                output_bytes: 0,
                last_line_partial: false,
                first_line_exceeds_limit: true,
                max_lines: 9,
                max_bytes: 5,
            }
        );
    }

    #[test]
    fn pieces_give_the_result_of_the_whole_text() {
        let text = "one\ntwo\n\nthree ééé\nfour";
        for bytes in 0..=text.len() + 1 {
            for lines in 1..=6 {
                let whole = head(text, limits(lines, bytes));
                let mut scanner = HeadScanner::new(limits(lines, bytes));
                for sign in text.chars() {
                    scanner.push(sign.encode_utf8(&mut [0; 4]));
                }
                assert_eq!(scanner.finish(), whole, "{lines} lines, {bytes} bytes");
            }
        }
    }

    #[test]
    fn tail_keeps_whole_lines_or_the_end_of_one() {
        use TruncatedBy::{Bytes, Lines};
        let cases = [
            ("a\nb\nc", 2, 100, ("b\nc", Some(Lines), 2, 3)),
            ("a\nb\n", 2, 100, ("b\n", Some(Lines), 2, 3)),
            ("aaaa\nbbbb", 9, 6, ("bbbb", Some(Bytes), 1, 2)),
            ("a\nééé", 9, 5, ("éé", Some(Bytes), 1, 2)),
            ("aaaa\nbbb\n", 9, 3, ("", Some(Bytes), 1, 3)),
        ];
        for (text, lines, bytes, expected) in cases {
            assert_eq!(
                brief(&tail(text, limits(lines, bytes))),
                expected,
                "{text:?}"
            );
        }
        assert!(tail("a\nééé", limits(9, 5)).last_line_partial);
        assert!(!tail("aaaa\nbbb\n", limits(9, 3)).last_line_partial);
    }

    #[test]
    fn sizes() {
        let cases = [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0KB"),
            (51200, "50.0KB"),
            (1280, "1.3KB"),
            (1024 * 1024 - 1, "1024.0KB"),
            (1024 * 1024, "1.0MB"),
            (3 * 1024 * 1024 / 2, "1.5MB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(format_size(bytes), expected);
        }
    }

    #[test]
    fn long_lines_are_cut_in_utf16_units() {
        assert_eq!(line("abc", 3), ("abc".to_owned(), false));
        assert_eq!(line("abcd", 3), ("abc... [truncated]".to_owned(), true));
        assert_eq!(line("a😀b", 3), ("a😀... [truncated]".to_owned(), true));
    }

    #[test]
    fn wire_names() {
        assert_eq!(
            serde_json::to_value(head("a\nb", limits(1, 9))).unwrap(),
            serde_json::json!({
                "content": "a", "truncated": true, "truncatedBy": "lines",
                "totalLines": 2, "totalBytes": 3, "outputLines": 1, "outputBytes": 1,
                "lastLinePartial": false, "firstLineExceedsLimit": false,
                "maxLines": 1, "maxBytes": 9,
            })
        );
    }
}
