//! Summary of a session for lists, read in one pass over its file. A list reads thousands of
//! files, so most lines (tool results, data of extensions) are recognized by their first bytes
//! and never parsed.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::format::header::Header;
use crate::format::members::Scalar;
use crate::paths;
use pi_ai::json::surrogates;

/// Summary of a session for lists. Times are milliseconds since the epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    pub path: PathBuf,
    pub id: String,
    /// The working directory; empty for sessions of versions that did not store it.
    pub cwd: PathBuf,
    pub name: Option<String>,
    pub parent_session: Option<PathBuf>,
    pub created: i64,
    /// Time of the last message of the user or the model.
    pub modified: i64,
    pub message_count: usize,
    pub first_message: String,
    /// Texts of the user and the model, for searching.
    pub all_messages_text: String,
}

/// Reads the summary; `None` if the file cannot be read or is not a session.
pub(crate) fn read(path: &Path) -> Option<SessionInfo> {
    let bytes = pi_base::regular_file::read(path).ok()?;
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| {
        let line = line.trim_ascii();
        line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
    });
    let header = Header::find(
        lines
            .by_ref()
            .map(|line| String::from_utf8_lossy(line).into_owned()),
    )?;
    let mut summary = SummaryBuilder::default();
    for line in lines {
        summary.add(line);
    }
    let created = match paths::millis(&header.timestamp) {
        0 => file_time(path),
        created => created,
    };
    Some(SessionInfo {
        path: path.to_owned(),
        id: header.id,
        cwd: header.cwd.unwrap_or_default(),
        name: summary.name,
        parent_session: header.parent_session,
        created,
        modified: summary.modified.unwrap_or(created),
        message_count: summary.message_count,
        first_message: summary
            .first_message
            .unwrap_or_else(|| "(no messages)".into()),
        all_messages_text: summary.texts,
    })
}

fn file_time(path: &Path) -> i64 {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = modified
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

#[derive(Default)]
struct SummaryBuilder {
    name: Option<String>,
    modified: Option<i64>,
    message_count: usize,
    first_message: Option<String>,
    texts: String,
}

/// Class of a line, found by its first bytes.
#[derive(Debug, PartialEq, Eq)]
enum LineKind {
    /// The line has nothing that a list shows.
    NotListed,
    /// The line is a message of neither the user nor the model.
    OtherMessage,
    /// The line has to be parsed.
    NeedsParsing,
}

impl LineKind {
    fn from_prefix(line: &[u8]) -> Self {
        let Some(rest) = line.strip_prefix(br#"{"type":""#) else {
            return Self::NeedsParsing;
        };
        // Complete lines only: a line that was cut off is not an entry.
        let (Some(end), true) = (position(rest, b'"'), line.ends_with(b"}")) else {
            return Self::NeedsParsing;
        };
        match &rest[..end] {
            b"session_info" => Self::NeedsParsing,
            b"message" => match role(&rest[end..]) {
                Some(b"user" | b"assistant") | None => Self::NeedsParsing,
                Some(_) => Self::OtherMessage,
            },
            _ => Self::NotListed,
        }
    }
}

/// Returns the role if it is the first member of the message and no other object comes before
/// the message.
fn role(line: &[u8]) -> Option<&[u8]> {
    const MESSAGE: &[u8] = br#""message":{"role":""#;
    let brace = position(line, b'{')?;
    let start = (brace + 1).checked_sub(br#""message":{"#.len())?;
    let rest = line[start..].strip_prefix(MESSAGE)?;
    position(rest, b'"').map(|end| &rest[..end])
}

fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.iter().position(|other| *other == byte)
}

impl SummaryBuilder {
    fn add(&mut self, line: &[u8]) {
        match LineKind::from_prefix(line) {
            LineKind::NotListed => {}
            LineKind::OtherMessage => self.message_count += 1,
            LineKind::NeedsParsing => {
                // Unreadable lines are reported when the session is opened.
                let text = String::from_utf8_lossy(line);
                if let Ok(line) = serde_json::from_str::<Line<'_>>(&text) {
                    self.add_line(line);
                } else if let Some(mended) = surrogates::replace_lone_surrogates(&text)
                    && let Ok(line) = serde_json::from_str::<Line<'_>>(&mended)
                {
                    self.add_line(line);
                } else if let Ok(line) = serde_json::from_str::<TypeOnly>(&text)
                    && line.r#type == "message"
                {
                    self.message_count += 1;
                }
            }
        }
    }

    fn add_line(&mut self, line: Line<'_>) {
        if line.r#type.is("session_info") {
            let name = line.name.into_id();
            let name = name.as_deref().map(str::trim);
            self.name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        } else if line.r#type.is("message") {
            self.message_count += 1;
            if let Some(message) = line.message {
                self.add_message(message, &line.timestamp);
            }
        }
    }

    fn add_message(&mut self, message: Message<'_>, entry_time: &Scalar<'_>) {
        let Some(Text(text)) = message.content else {
            return;
        };
        let is_user = message.role.is("user");
        if !is_user && !message.role.is("assistant") {
            return;
        }
        let time = match (&message.timestamp, entry_time) {
            (Scalar::Number(time), _) | (_, Scalar::Number(time)) => Some(*time as i64),
            (_, Scalar::Text(time)) => Some(paths::millis(time)),
            _ => None,
        };
        self.modified = self.modified.max(time.filter(|time| *time > 0));
        if text.is_empty() {
            return;
        }
        if !self.texts.is_empty() {
            self.texts.push(' ');
        }
        self.texts.push_str(&text);
        if is_user && self.first_message.is_none() {
            self.first_message = Some(text);
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Scalar<'a>,
    #[serde(borrow)]
    name: Scalar<'a>,
    #[serde(borrow)]
    timestamp: Scalar<'a>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
}

/// A line whose message has an unexpected type.
#[derive(Deserialize)]
struct TypeOnly {
    r#type: String,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    role: Scalar<'a>,
    content: Option<Text>,
    #[serde(borrow, default)]
    timestamp: Scalar<'a>,
}

/// The text of a message; texts of blocks are joined by spaces.
struct Text(String);

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Content;

        impl<'de> Visitor<'de> for Content {
            type Value = Text;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text or blocks")
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<Text, A::Error> {
                let mut texts = Vec::new();
                while let Some(block) = blocks.next_element::<Block<'de>>()? {
                    if block.r#type == "text" {
                        texts.extend(block.text);
                    }
                }
                Ok(Text(texts.join(" ")))
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Text(String::new()))
            }
        }

        deserializer.deserialize_any(Content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_lines_are_classified_by_their_prefix() {
        let lines = [
            (
                r#"{"type":"custom","customType":"c","data":{}}"#,
                LineKind::NotListed,
            ),
            (r#"{"type":"mood","id":"a"}"#, LineKind::NotListed),
            (
                r#"{"type":"message","id":"a","parentId":null,"timestamp":"T","message":{"role":"toolResult","x":1}}"#,
                LineKind::OtherMessage,
            ),
            (
                r#"{"type":"message","id":"a","parentId":null,"timestamp":"T","message":{"role":"user","content":"x"}}"#,
                LineKind::NeedsParsing,
            ),
            // These have another object before the message, another order of members, or other
            // spaces.
            (
                r#"{"type":"message","x":{"role":"toolResult"},"message":{"role":"user"}}"#,
                LineKind::NeedsParsing,
            ),
            (
                r#"{"type":"message","message":{"content":"","role":"toolResult"}}"#,
                LineKind::NeedsParsing,
            ),
            (r#"{ "type": "message" }"#, LineKind::NeedsParsing),
            (
                r#"{"type":"message","id":"a","message":{"role":"toolRes"#,
                LineKind::NeedsParsing,
            ),
            (
                r#"{"type":"session_info","name":"n"}"#,
                LineKind::NeedsParsing,
            ),
            ("", LineKind::NeedsParsing),
        ];
        for (line, expected) in lines {
            assert_eq!(LineKind::from_prefix(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn unusual_messages_are_counted() {
        let mut summary = SummaryBuilder::default();
        for line in [
            r#"{"type":"message","message":{"role":"user","content":7}}"#,
            r#"{"type":"message","message":{"role":"user","content":{"a":1},"timestamp":3}}"#,
            r#"{"type":"message","message":{"role":"user","content":[{"type":"text","text":7}]}}"#,
            r#"{"type":"message"}"#,
            r#"{"type":"message","message":{"role":"toolResu"#,
        ] {
            summary.add(line.as_bytes());
        }
        assert_eq!((summary.message_count, &*summary.texts), (4, ""));
    }
}
