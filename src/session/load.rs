//! From the bytes of a session file to its tree, whatever state they are in.
//! Only reads; what has to be repaired is told to the caller.

use std::borrow::Cow;
use std::path::Path;

use serde::de::IgnoredAny;

use super::entry::Entry;
use super::error::{SessionError, Warning};
use super::header::{CURRENT_VERSION, Header};
use super::migrate::migrate;
use super::tree::Tree;

pub(super) struct Loaded {
    /// `None` if the file holds nothing yet.
    pub(super) session: Option<(Header, Tree)>,
    pub(super) tail: Tail,
    /// What the file has to hold instead.
    pub(super) migrated: Option<String>,
}

/// What stands after the last line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    Nothing,
    /// A whole record; only its line end is missing.
    Record,
    /// A part of a record, from this byte on.
    Torn(usize),
}

/// How the header of every session file begins, ours and the original's.
const HEADER_START: &[u8] = br#"{"type":"session""#;

pub(super) fn load(
    path: &Path,
    bytes: &[u8],
    warnings: &mut Vec<Warning>,
) -> Result<Loaded, SessionError> {
    let tail = Tail::of(bytes);
    let body = match tail {
        Tail::Torn(start) => &bytes[..start],
        Tail::Nothing | Tail::Record => bytes,
    };
    let text = String::from_utf8_lossy(body);
    if matches!(text, Cow::Owned(_)) {
        warnings.push(Warning::InvalidUtf8 {
            path: path.to_owned(),
        });
    }
    let mut lines = text
        .trim_start_matches('\u{feff}')
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .peekable();
    if lines.peek().is_none() {
        // Nothing, or the header of a session that got no further. Anything else
        // is somebody's text that we were pointed at by mistake.
        return match tail {
            Tail::Torn(start) if !bytes[start..].starts_with(HEADER_START) => {
                Err(SessionError::NotASession {
                    path: path.to_owned(),
                })
            }
            _ => Ok(Loaded {
                session: None,
                tail,
                migrated: None,
            }),
        };
    }
    let mut skipped = Skipped::default();
    let header = loop {
        let Some((number, line)) = lines.next() else {
            return Err(SessionError::NotASession {
                path: path.to_owned(),
            });
        };
        match serde_json::from_str::<IgnoredAny>(line) {
            Ok(_) => match Header::parse(line) {
                Some(header) => break header,
                None => {
                    return Err(SessionError::NotASession {
                        path: path.to_owned(),
                    });
                }
            },
            Err(error) => skipped.add(number, &error),
        }
    };

    let mut tree = Tree::default();
    let loaded = if header.version < CURRENT_VERSION {
        let mut old = vec![&*header.raw];
        old.extend(lines.map(|(_, line)| line));
        let lines = migrate(&old, header.version);
        for (number, line) in lines.iter().enumerate().skip(1) {
            read_line(&mut tree, &mut skipped, number, line);
        }
        warnings.push(Warning::Migrated {
            path: path.to_owned(),
            from: header.version,
        });
        let header = Header::parse(&lines[0]).unwrap_or(header);
        let migrated = Some(lines.join("\n") + "\n");
        Loaded {
            session: Some((header, tree)),
            tail,
            migrated,
        }
    } else {
        for (number, line) in lines {
            read_line(&mut tree, &mut skipped, number, line);
        }
        if header.version > CURRENT_VERSION {
            let version = header.version;
            warnings.push(Warning::NewerVersion {
                path: path.to_owned(),
                version,
            });
        }
        Loaded {
            session: Some((header, tree)),
            tail,
            migrated: None,
        }
    };
    skipped.warn(path, warnings);
    if let Some((_, tree)) = &loaded.session {
        warn_of_orphans(tree, path, warnings);
    }
    Ok(loaded)
}

fn read_line(tree: &mut Tree, skipped: &mut Skipped, number: usize, line: &str) {
    match Entry::parse(line) {
        Ok(entry) if entry.type_name() == "session" => {
            skipped.add(number, &"a second session header");
        }
        // Written a second time because the first time could be neither finished
        // nor taken back.
        Ok(entry) if tree.get(&entry.id).is_some_and(|e| e.raw == entry.raw) => {}
        Ok(entry) => {
            tree.insert(entry);
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

/// One warning for all the lines of a file: there may be thousands.
#[derive(Default)]
struct Skipped {
    count: usize,
    first: Option<(usize, String)>,
}

impl Skipped {
    fn add(&mut self, number: usize, reason: &dyn ToString) {
        self.count += 1;
        self.first
            .get_or_insert_with(|| (number + 1, reason.to_string()));
    }

    fn warn(self, path: &Path, warnings: &mut Vec<Warning>) {
        if let Some((line, reason)) = self.first {
            let (path, count) = (path.to_owned(), self.count);
            warnings.push(Warning::Malformed {
                path,
                count,
                line,
                reason,
            });
        }
    }
}

impl Tail {
    fn of(bytes: &[u8]) -> Self {
        let start = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let tail = bytes[start..].trim_ascii();
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
        let tails: [(&[u8], Tail); 8] = [
            (b"", Tail::Nothing),
            (b"{}\n", Tail::Nothing),
            (b"{}\n \r", Tail::Nothing),
            (b"{}", Tail::Record),
            (b"{}\n{\"a\":1}", Tail::Record),
            (b"{}\n{\"a\":1", Tail::Torn(3)),
            // A number cut off is still a number.
            (b"{}\n17", Tail::Torn(3)),
            (b"{}\n\0\0\0", Tail::Torn(3)),
        ];
        for (bytes, tail) in tails {
            assert_eq!(
                Tail::of(bytes),
                tail,
                "{:?}",
                bytes.escape_ascii().to_string()
            );
        }
    }
}
