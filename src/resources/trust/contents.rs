//! The files of a record: one line each, with the key and the rest as JSON, sorted by the key. A line
//! is parsed when its file is asked for, and all of them when all are wanted.

use std::cmp::Ordering;
use std::sync::OnceLock;

use serde_json::Deserializer;

use super::file_set::{Files, TrustedFile};

#[derive(Clone, Debug)]
pub struct Contents {
    text: String,
    /// Where the first line of a file begins.
    start: usize,
    /// Where each of these lines begins.
    lines: OnceLock<Vec<usize>>,
    files: OnceLock<Files>,
}

impl From<Files> for Contents {
    fn from(files: Files) -> Self {
        Self {
            text: String::new(),
            start: 0,
            lines: OnceLock::new(),
            files: OnceLock::from(files),
        }
    }
}

impl Contents {
    /// Takes the lines from `start` on. Returns `None` if they have another length.
    pub fn of_lines(text: String, start: usize, length: usize) -> Option<Self> {
        (start.checked_add(length)? == text.len()).then_some(Self {
            text,
            start,
            lines: OnceLock::new(),
            files: OnceLock::new(),
        })
    }

    fn lines(&self) -> &[usize] {
        self.lines.get_or_init(|| {
            let text = self.text.get(self.start..).unwrap_or_default();
            let mut next = self.start;
            let lines = text.split_inclusive('\n');
            let starts = lines.map(|line| {
                let start = next;
                next += line.len();
                start
            });
            starts.collect()
        })
    }

    pub fn all(&self) -> &Files {
        self.files.get_or_init(|| {
            let lines = self.lines().iter();
            lines.filter_map(|&start| self.file_at(start)).collect()
        })
    }

    pub fn get(&self, key: &str) -> Option<TrustedFile> {
        if let Some(files) = self.files.get() {
            return files.get(key).cloned();
        }
        // A line that is damaged is a file that is not known.
        let order = |start: &usize| match self.key_at(*start) {
            Some((found, _)) => found.as_str().cmp(key),
            None => Ordering::Less,
        };
        let lines = self.lines();
        let found = lines.binary_search_by(order).ok()?;
        self.file_at(lines[found]).map(|(_, file)| file)
    }

    /// Returns the key of a line, and where the rest begins.
    fn key_at(&self, start: usize) -> Option<(String, usize)> {
        let mut values = Deserializer::from_str(&self.text[start..]).into_iter::<String>();
        let key = values.next()?.ok()?;
        Some((key, start + values.byte_offset()))
    }

    fn file_at(&self, start: usize) -> Option<(String, TrustedFile)> {
        let (key, rest) = self.key_at(start)?;
        let line = self.text[rest..].split('\n').next()?;
        Some((key, serde_json::from_str(line).ok()?))
    }
}

/// Returns the text from which [`Contents::of_lines`] makes the files.
pub(super) fn lines_of(files: &Files) -> serde_json::Result<String> {
    let mut text = String::new();
    for (key, file) in files {
        text += &serde_json::to_string(key)?;
        text.push(' ');
        text += &serde_json::to_string(file)?;
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::file_set::FileRole;
    use super::*;

    fn file(sha256: &str) -> TrustedFile {
        TrustedFile {
            role: FileRole::Skill,
            sha256: sha256.to_owned(),
            state: None,
            searched: Vec::new(),
        }
    }

    #[test]
    fn each_file_is_found_in_the_text() {
        let names = [
            "./a", "./a\n./b", "./a\"", "./\u{e9}", "./\\", "/x", "link:./a",
        ];
        let files: Files = names.map(|name| (name.to_owned(), file(name))).into();
        let text = lines_of(&files).unwrap();
        let with_header = format!("header\n{text}");
        let contents = Contents::of_lines(with_header, 7, text.len()).unwrap();
        for name in names {
            assert_eq!(contents.get(name), Some(file(name)), "{name:?}");
        }
        assert_eq!(contents.get("./b"), None);
        assert_eq!(contents.get(""), None);
        assert_eq!(*contents.all(), files);
        assert_eq!(contents.get("/x"), Some(file("/x")));
        assert!(Contents::of_lines(text, 7, 3).is_none());
        let damaged = Contents::of_lines("x\n\ny".to_owned(), 0, 4).unwrap();
        assert_eq!((damaged.get("x"), damaged.all().len()), (None, 0));
    }
}
