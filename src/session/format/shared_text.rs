//! The text of a file and of its lines. A line shares the memory of its file: copies would
//! double the memory of a long session.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memchr::memchr_iter;

/// A part of a shared text. Cloning is cheap; the whole file stays in memory as long as one
/// part does.
#[derive(Clone)]
pub struct SharedText {
    /// The file. At least `range` is UTF-8.
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl SharedText {
    /// Returns the bytes without checking that they are UTF-8.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

/// Checks on each call that the text is UTF-8, which takes less time than parsing it.
impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        simdutf8::basic::from_utf8(self.as_bytes()).expect("it was UTF-8 when it was made")
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self {
            range: 0..text.len(),
            bytes: Arc::new(text.into_bytes()),
        }
    }
}

impl From<&str> for SharedText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

/// A line that is not blank, without its line end.
pub(crate) struct Line {
    /// Line number, counted from 0, including blank lines.
    pub(crate) number: usize,
    pub(crate) raw: SharedText,
}

/// Splits a file into lines. Invalid UTF-8 is replaced; the second value is then the original
/// content.
pub(crate) fn lines(bytes: Vec<u8>) -> (Vec<Line>, Option<Vec<u8>>) {
    let (bytes, damaged) = match simdutf8::basic::from_utf8(&bytes) {
        Ok(_) => (bytes, None),
        Err(_) => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            (text.into_bytes(), Some(bytes))
        }
    };
    let bytes = Arc::new(bytes);
    let mut start = 0;
    let ends = memchr_iter(b'\n', &bytes).chain([bytes.len()]);
    let ranges = ends.map(|end| {
        let line = &bytes[start..end];
        // Some editors mark a file as UTF-8 with it, and concatenated files have it in the
        // middle.
        if line.starts_with("\u{feff}".as_bytes()) {
            start += "\u{feff}".len();
        }
        let line = &bytes[start..end];
        let range = start..start + line.strip_suffix(b"\r").unwrap_or(line).len();
        start = end + 1;
        range
    });
    let lines = ranges.enumerate().map(|(number, range)| Line {
        number,
        raw: SharedText {
            bytes: Arc::clone(&bytes),
            range,
        },
    });
    let lines = lines.filter(|line| !line.raw.as_bytes().trim_ascii_start().is_empty());
    (lines.collect(), damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_blank_ones_left_out() {
        let (lines, damaged) = lines("\u{feff}a\r\n\n \t\r\n\u{feff}b\r\r\n\u{e9}".into());
        let lines: Vec<_> = lines.iter().map(|line| (line.number, &*line.raw)).collect();
        assert_eq!(lines, [(0, "a"), (3, "b\r"), (4, "\u{e9}")]);
        assert_eq!(damaged, None);
    }

    #[test]
    fn invalid_utf8_is_replaced_and_original_kept() {
        let bytes = b"a\xff\nb".to_vec();
        let (lines, damaged) = lines(bytes.clone());
        let lines: Vec<&str> = lines.iter().map(|line| &*line.raw).collect();
        assert_eq!(lines, ["a\u{fffd}", "b"]);
        assert_eq!(damaged, Some(bytes));
    }
}
