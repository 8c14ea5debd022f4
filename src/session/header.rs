//! The first line of a session file: which session it is and where it was held.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::Utc;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::paths;
use crate::ai::half_characters;

pub const CURRENT_VERSION: u64 = 3;

/// `raw` is the line itself, with members that we do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub id: String,
    /// 1 where the file says nothing: the first version had no number.
    pub version: u64,
    pub timestamp: String,
    /// Absent in some old files.
    pub cwd: Option<PathBuf>,
    pub parent_session: Option<PathBuf>,
    pub raw: Arc<str>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    r#type: String,
    #[serde(default = "first_version")]
    version: u64,
    id: String,
    #[serde(default)]
    timestamp: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_session: Option<String>,
}

fn first_version() -> u64 {
    1
}

impl Header {
    /// A header for a session that begins now. `id` is normally a fresh uuid v7.
    pub(super) fn new(id: Option<String>, cwd: &Path, parent_session: Option<&Path>) -> Self {
        let line = Line {
            r#type: "session".into(),
            version: CURRENT_VERSION,
            id: id.unwrap_or_else(|| Uuid::now_v7().to_string()),
            timestamp: paths::iso(Utc::now()),
            cwd: Some(cwd.to_string_lossy().into_owned()),
            parent_session: parent_session.map(|path| path.to_string_lossy().into_owned()),
        };
        let raw = serde_json::to_string(&line).expect("strings and a number are always JSON");
        Self::from_line(line, &raw)
    }

    /// `None` if the line is no session header.
    pub(super) fn parse(raw: &str) -> Option<Self> {
        let line: Line = half_characters::from_str(raw).ok()?;
        (line.r#type == "session").then(|| Self::from_line(line, raw))
    }

    fn from_line(line: Line, raw: &str) -> Self {
        Self {
            id: line.id,
            version: line.version,
            timestamp: line.timestamp,
            cwd: line.cwd.map(PathBuf::from),
            parent_session: line.parent_session.map(PathBuf::from),
            raw: raw.into(),
        }
    }

    pub(super) fn file_name(&self) -> String {
        paths::file_name(&self.timestamp, &self.id)
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
    fn what_is_no_header_is_none() {
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
}
