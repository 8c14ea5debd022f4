//! Reads the bytes of a session file, in whatever state, into a tree. Nothing is written; the
//! caller is told what has to be repaired.

use std::path::Path;
use std::sync::Arc;

use serde::de::IgnoredAny;

use crate::entry::Entry;
use crate::error::{SessionError, Warning};
use crate::format::header::{CURRENT_VERSION, Header};
use crate::format::migrate::migrate;
use crate::format::shared_text::{Line, lines};
use crate::parallel;
use crate::tree::Tree;

pub(crate) struct Loaded {
    /// The header and the tree; `None` if the file holds nothing yet.
    pub(crate) session: Option<(Header, Tree)>,
    pub(crate) tail: Tail,
    /// The bytes after the last line end, if they are an incomplete record.
    pub(crate) torn: Vec<u8>,
    /// The new content of the file, if a migration changed it.
    pub(crate) migrated: Option<String>,
    /// The complete lines as they were, if they were not UTF-8.
    pub(crate) damaged: Option<Vec<u8>>,
}

/// The end of a file after its last line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    Nothing,
    /// A complete record that only lacks its line end.
    Record,
    /// An incomplete record that starts at this byte.
    Torn(usize),
}

/// The first bytes of every session file, of pi and of the original.
const HEADER_START: &[u8] = br#"{"type":"session""#;

fn is_header_start(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    bytes.starts_with(HEADER_START)
}

pub(crate) fn load(
    path: &Path,
    mut bytes: Vec<u8>,
    warnings: &mut Vec<Warning>,
) -> Result<Loaded, SessionError> {
    let tail = Tail::from_bytes(&bytes);
    let torn = match tail {
        Tail::Torn(start) => bytes.split_off(start),
        Tail::Nothing | Tail::Record => Vec::new(),
    };
    let (lines, damaged) = lines(bytes);
    if damaged.is_some() {
        warnings.push(Warning::InvalidUtf8 {
            path: path.to_owned(),
        });
    }
    let mut loaded = Loaded {
        session: None,
        tail,
        torn,
        migrated: None,
        damaged,
    };
    let not_a_session = || SessionError::NotASession {
        path: path.to_owned(),
    };
    if lines.is_empty() {
        // The file is empty or holds the incomplete header of a session. Any other text is a
        // file of the user that was named by mistake.
        return match tail {
            Tail::Torn(_) if !is_header_start(&loaded.torn) => Err(not_a_session()),
            _ => Ok(loaded),
        };
    }
    let mut skipped = ProblemLines::default();
    let mut unusual = ProblemLines::default();
    let mut rest = lines.as_slice();
    let header = loop {
        let (first, others) = rest.split_first().ok_or_else(not_a_session)?;
        rest = others;
        match serde_json::from_str::<IgnoredAny>(&first.raw) {
            Ok(_) => {
                let (header, form) = Header::read(&first.raw).ok_or_else(not_a_session)?;
                unusual.add_form(first.number, form);
                break header;
            }
            Err(error) => skipped.add(first.number, &error),
        }
    };

    let mut tree = Tree::with_capacity(rest.len());
    let header = if header.version < CURRENT_VERSION {
        let mut old = vec![&*header.raw];
        old.extend(rest.iter().map(|line| &*line.raw));
        let lines = migrate(&old, header.version);
        for (number, line) in lines.iter().enumerate().skip(1) {
            let parsed = Entry::parse(&**line).map(|entry| (entry, None));
            add_entry(&mut tree, &mut skipped, &mut unusual, number, parsed);
        }
        warnings.push(Warning::Migrated {
            path: path.to_owned(),
            from: header.version,
        });
        loaded.migrated = Some(lines.join("\n") + "\n");
        Header::parse(&lines[0]).unwrap_or(header)
    } else {
        let size = |line: &Line| line.raw.as_bytes().len();
        let entries = parallel::map(rest, size, |line| Entry::read(line.raw.clone()));
        for (line, entry) in rest.iter().zip(entries) {
            add_entry(&mut tree, &mut skipped, &mut unusual, line.number, entry);
        }
        if header.version > CURRENT_VERSION {
            let version = header.version;
            warnings.push(Warning::NewerVersion {
                path: path.to_owned(),
                version,
            });
        }
        header
    };
    if let Some((line, reason)) = skipped.first {
        let (path, count) = (path.to_owned(), skipped.count);
        warnings.push(Warning::Malformed {
            path,
            count,
            line,
            reason,
        });
    }
    if let Some((line, form)) = unusual.first {
        let (path, count) = (path.to_owned(), unusual.count);
        warnings.push(Warning::UnusualForm {
            path,
            count,
            line,
            form,
        });
    }
    warn_of_orphans(&tree, path, warnings);
    loaded.session = Some((header, tree));
    Ok(loaded)
}

type Parsed = Result<(Entry, Option<String>), serde_json::Error>;

fn add_entry(
    tree: &mut Tree,
    skipped: &mut ProblemLines,
    unusual: &mut ProblemLines,
    number: usize,
    parsed: Parsed,
) {
    match parsed {
        Ok((entry, _)) if entry.type_name() == "session" => {
            skipped.add(number, &"a second session header");
        }
        Ok((entry, form)) => {
            unusual.add_form(number, form);
            // The record was written twice because the first write could be neither finished
            // nor undone.
            let is_again = |earlier: &Arc<Entry>| !entry.lacks_id() && earlier.raw == entry.raw;
            if !tree.get(&entry.id).is_some_and(is_again) {
                tree.insert(entry);
            }
        }
        Err(error) => skipped.add(number, &error),
    }
}

fn warn_of_orphans(tree: &Tree, path: &Path, warnings: &mut Vec<Warning>) {
    let mut orphans = tree.orphans();
    if let Some(first) = orphans.next() {
        warnings.push(Warning::Orphans {
            path: path.to_owned(),
            id: first.id.clone(),
            count: 1 + orphans.count(),
        });
    }
}

/// Lines that share one warning: there may be thousands.
#[derive(Default)]
struct ProblemLines {
    count: usize,
    /// Line number, counted from 1, and reason of the first one.
    first: Option<(usize, String)>,
}

impl ProblemLines {
    fn add(&mut self, number: usize, reason: &dyn ToString) {
        self.count += 1;
        self.first
            .get_or_insert_with(|| (number + 1, reason.to_string()));
    }

    fn add_form(&mut self, number: usize, form: Option<String>) {
        if let Some(form) = form {
            self.add(number, &form);
        }
    }
}

impl Tail {
    fn from_bytes(bytes: &[u8]) -> Self {
        let start = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let tail = bytes[start..].trim_ascii();
        let tail = tail.strip_prefix("\u{feff}".as_bytes()).unwrap_or(tail);
        if tail.is_empty() {
            Self::Nothing
        } else if tail.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(tail).is_ok() {
            Self::Record
        } else {
            Self::Torn(start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_what_follows_the_last_line_end() {
        let tails: [(&[u8], Tail); 9] = [
            (b"\xef\xbb\xbf{}", Tail::Record),
            (b"", Tail::Nothing),
            (b"{}\n", Tail::Nothing),
            (b"{}\n \r", Tail::Nothing),
            (b"{}", Tail::Record),
            (b"{}\n{\"a\":1}", Tail::Record),
            (b"{}\n{\"a\":1", Tail::Torn(3)),
            // A number that is cut off is still a number.
            (b"{}\n17", Tail::Torn(3)),
            (b"{}\n\0\0\0", Tail::Torn(3)),
        ];
        for (bytes, tail) in tails {
            assert_eq!(
                Tail::from_bytes(bytes),
                tail,
                "{:?}",
                bytes.escape_ascii().to_string()
            );
        }
    }
}
