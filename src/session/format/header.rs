//! The first line of a session file: id, version and working directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::Utc;
use serde::Serialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use crate::format::members::{Members, Scalar};
use crate::paths;

pub const CURRENT_VERSION: u64 = 3;

/// The header of a session. `raw` is the line itself, including unknown members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub id: String,
    /// Version of the format; 1 if the line has none, as the first version had no number.
    pub version: u64,
    pub timestamp: String,
    /// The working directory; absent in some old files.
    pub cwd: Option<PathBuf>,
    pub parent_session: Option<PathBuf>,
    pub raw: Arc<str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    r#type: &'static str,
    version: u64,
    id: String,
    timestamp: String,
    cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_session: Option<String>,
}

impl Header {
    /// Makes the header of a new session. `id` is normally a new UUID v7.
    pub(crate) fn new(id: Option<String>, cwd: &Path, parent_session: Option<&Path>) -> Self {
        let line = Line {
            r#type: "session",
            version: CURRENT_VERSION,
            id: id.unwrap_or_else(|| Uuid::now_v7().to_string()),
            timestamp: paths::iso(Utc::now()),
            cwd: cwd.to_string_lossy().into_owned(),
            parent_session: parent_session.map(|path| path.to_string_lossy().into_owned()),
        };
        let raw = serde_json::to_string(&line).expect("strings and a number are always JSON");
        Self {
            id: line.id,
            version: line.version,
            timestamp: line.timestamp,
            cwd: Some(PathBuf::from(line.cwd)),
            parent_session: line.parent_session.map(PathBuf::from),
            raw: raw.into(),
        }
    }

    /// Parses the header; `None` if the line is not a session header.
    pub(crate) fn parse(raw: &str) -> Option<Self> {
        Self::read(raw).map(|(header, _)| header)
    }

    /// Like [`Self::parse`]; also returns a description of the first member that is not in the
    /// form that pi writes.
    pub(crate) fn read(raw: &str) -> Option<(Self, Option<String>)> {
        let members = Members::read(raw.as_bytes()).ok()?;
        if !members.r#type.is("session") {
            return None;
        }
        let unusual = members.unusual_in_header();
        let header = Self {
            version: version(&members.version),
            timestamp: members.time(),
            id: members.id.into_id()?,
            cwd: members.cwd.into_text().map(PathBuf::from),
            parent_session: members.parent_session.into_text().map(PathBuf::from),
            raw: raw.into(),
        };
        Some((header, unusual))
    }

    /// Finds the header in the first lines of a file: it is the first line that is JSON.
    pub(crate) fn find(lines: impl IntoIterator<Item = String>) -> Option<Self> {
        let is_json = |line: &str| serde_json::from_str::<IgnoredAny>(line).is_ok();
        let mut lines = lines.into_iter();
        let first = lines.find(|line| is_json(without_mark(line)))?;
        Self::parse(without_mark(&first).trim_end())
    }

    pub(crate) fn file_name(&self) -> String {
        paths::file_name(&self.timestamp, &self.id)
    }
}

/// Removes the byte order mark that some editors put before the line.
fn without_mark(line: &str) -> &str {
    line.strip_prefix('\u{feff}').unwrap_or(line)
}

/// Returns the version as JavaScript compares it. A value that is not a number counts as the
/// current version, so that the file is not rewritten.
fn version(member: &Scalar<'_>) -> u64 {
    let number = match member {
        Scalar::Missing | Scalar::Null => 1.0,
        Scalar::Number(number) => *number,
        Scalar::Text(text) => text.trim().parse().unwrap_or(f64::NAN),
        Scalar::Bool(_) | Scalar::Nested => f64::NAN,
    };
    match number.is_nan() {
        true => CURRENT_VERSION,
        false => number as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_header_is_written_as_the_original_writes_it() {
        let header = Header::new(
            Some("x".into()),
            Path::new("/w"),
            Some(Path::new("/p.jsonl")),
        );
        assert_eq!(
            *header.raw,
            *format!(
                r#"{{"type":"session","version":3,"id":"x","timestamp":"{}","cwd":"/w","parentSession":"/p.jsonl"}}"#,
                header.timestamp
            )
        );
        assert_eq!(Header::parse(&header.raw), Some(header));
    }

    #[test]
    fn invalid_headers_are_none() {
        for line in [
            "",
            "{}",
            "[]",
            r#"{"type":"session"}"#,
            r#"{"type":"message","id":"x"}"#,
        ] {
            assert_eq!(Header::parse(line), None, "{line}");
        }
    }

    #[test]
    fn an_old_header_has_version_one_and_may_lack_the_rest() {
        let raw = r#"{"type":"session","id":"x","provider":"anthropic"}"#;
        let expected = Header {
            id: "x".into(),
            version: 1,
            timestamp: String::new(),
            cwd: None,
            parent_session: None,
            raw: raw.into(),
        };
        assert_eq!(Header::parse(raw), Some(expected));
    }

    #[test]
    fn members_of_another_type_do_not_lose_the_header() {
        for (version, number) in [
            ("\"3\"", 3),
            ("\" 2 \"", 2),
            ("3.0", 3),
            ("null", 1),
            ("\"new\"", CURRENT_VERSION),
            ("[]", CURRENT_VERSION),
        ] {
            let raw = format!(
                r#"{{"type":"session","version":{version},"id":7,"timestamp":1700000000007,"cwd":null}}"#
            );
            let header = Header::parse(&raw).unwrap();
            assert_eq!(header.version, number, "{raw}");
            assert_eq!(header.id, "7");
            assert_eq!(header.timestamp, "2023-11-14T22:13:20.007Z");
            assert_eq!((header.cwd, &*header.raw), (None, &*raw));
        }
    }
}
