//! The text of a file and of its lines. A line that was read shares the memory of
//! its file: a copy of each would double what a long session takes.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memchr::memchr_iter;

/// Cheap to clone. The file that it is a part of is in memory as long as it is.
#[derive(Clone)]
pub struct Raw {
    /// UTF-8, at least in `range`.
    bytes: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Raw {
    /// For those who look at it as UTF-8 themselves.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }
}

/// Looks at all of it every time, which takes less than parsing it.
impl Deref for Raw {
    type Target = str;

    fn deref(&self) -> &str {
        simdutf8::basic::from_utf8(self.as_bytes()).expect("it was UTF-8 when it was made")
    }
}

impl From<String> for Raw {
    fn from(text: String) -> Self {
        Self {
            range: 0..text.len(),
            bytes: Arc::new(text.into_bytes()),
        }
    }
}

impl From<&str> for Raw {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

/// A line that is not blank, without its line end.
pub(super) struct Line {
    /// Counted from 0, with those that are blank.
    pub(super) number: usize,
    pub(super) raw: Raw,
}

/// The lines of a file. If it was not UTF-8, what was wrong is replaced, and the
/// second value is what it was.
pub(super) fn lines(bytes: Vec<u8>) -> (Vec<Line>, Option<Vec<u8>>) {
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
        // Some editors mark a file as UTF-8 with it, and files are put together.
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
        raw: Raw {
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
    fn what_is_not_utf8_is_replaced_and_kept() {
        let bytes = b"a\xff\nb".to_vec();
        let (lines, damaged) = lines(bytes.clone());
        let lines: Vec<&str> = lines.iter().map(|line| &*line.raw).collect();
        assert_eq!(lines, ["a\u{fffd}", "b"]);
        assert_eq!(damaged, Some(bytes));
    }
}
