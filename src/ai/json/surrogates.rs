//! Reads JSON with lone surrogates and replaces them by U+FFFD. JavaScript strings may contain
//! them (`"\ud83d"`), for instance after a cut inside an emoji; Rust strings cannot.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use serde::de::DeserializeOwned;

use super::depth::{self, Origin};

const HIGH: std::ops::RangeInclusive<u16> = 0xd800..=0xdbff;
const LOW: std::ops::RangeInclusive<u16> = 0xdc00..=0xdfff;
/// Bytes of an escape `\uXXXX`.
pub(crate) const ESCAPE: usize = 6;

/// Like `serde_json::from_str`, without extra cost for JSON that serde_json accepts.
pub fn from_str<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    with_repair(json, |json| serde_json::from_str(json))
}

/// Like [`from_str`], for a line of a session file, which may be nested deeply.
pub fn from_session_line<T: DeserializeOwned>(line: &str) -> serde_json::Result<T> {
    with_repair(line, |line| depth::from_str(line, Origin::SessionLine))
}

fn with_repair<T>(
    json: &str,
    read: impl Fn(&str) -> serde_json::Result<T>,
) -> serde_json::Result<T> {
    read(json).or_else(|error| match replace_lone_surrogates(json) {
        Some(replaced) => read(&replaced),
        None => Err(error),
    })
}

/// Replaces lone surrogates in a JSON text; returns `None` if there are none.
pub fn replace_lone_surrogates(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut replaced = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        let escape = at + found;
        at = escape + 2;
        match unit_at(bytes, escape) {
            Unit::Pair => at = escape + 2 * ESCAPE,
            Unit::Half(_) => {
                at = escape + ESCAPE;
                replaced.push_str(&json[copied..escape]);
                replaced.push(REPLACEMENT);
                copied = at;
            }
            Unit::Other => {}
        }
    }
    (copied > 0).then(|| replaced + &json[copied..])
}

/// The kind of code unit that an escape stands for.
pub(crate) enum Unit {
    /// A surrogate pair, with the next escape.
    Pair,
    /// A surrogate without its other half.
    Half(u16),
    /// Any other character, or no escape.
    Other,
}

pub(crate) fn unit_at(bytes: &[u8], at: usize) -> Unit {
    match code_unit(bytes, at) {
        Some(unit) if HIGH.contains(&unit) => match code_unit(bytes, at + ESCAPE) {
            Some(next) if LOW.contains(&next) => Unit::Pair,
            _ => Unit::Half(unit),
        },
        Some(unit) if LOW.contains(&unit) => Unit::Half(unit),
        _ => Unit::Other,
    }
}

/// Returns the UTF-16 code unit of the escape at this byte.
fn code_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

const REPLACEMENT: char = '\u{fffd}';

/// The strings of one stream event that start or end with half of a surrogate pair; the other
/// half may be in the event before or after. In the parsed event each half is U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct EdgeSurrogates(Vec<Edges>);

#[derive(Debug, Default, PartialEq)]
struct Edges {
    text: String,
    /// A low surrogate at the start.
    first: Option<u16>,
    /// A high surrogate at the end.
    last: Option<u16>,
}

impl EdgeSurrogates {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds the halves in a JSON text.
    pub(crate) fn find(json: &str) -> Self {
        let bytes = json.as_bytes();
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(quote) = bytes.get(at..).and_then(|rest| memchr(b'"', rest)) {
            let start = at + quote + 1;
            let (end, last) = end_of_string(bytes, start);
            at = end + 1;
            let first = match unit_at(bytes, start) {
                Unit::Half(unit) if LOW.contains(&unit) => Some(unit),
                _ => None,
            };
            if (first.is_some() || last.is_some())
                && let Ok(text) = from_str(&json[start - 1..(end + 1).min(json.len())])
            {
                found.push(Edges { text, first, last });
            }
        }
        Self(found)
    }
}

/// Returns the end of a string, and the lone high surrogate before it, if there is one.
fn end_of_string(bytes: &[u8], start: usize) -> (usize, Option<u16>) {
    let (mut at, mut last) = (start, None);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        if found > 0 {
            last = None;
        }
        at += found;
        if bytes[at] == b'"' {
            return (at, last);
        }
        last = None;
        match unit_at(bytes, at) {
            Unit::Pair => at += 2 * ESCAPE,
            Unit::Half(unit) => {
                last = HIGH.contains(&unit).then_some(unit);
                at += ESCAPE;
            }
            Unit::Other => at += 2,
        }
    }
    (bytes.len(), None)
}

/// Joins characters that are split between two pieces of one text.
#[derive(Debug, Default)]
pub(crate) struct SurrogateJoiner {
    /// The high surrogate at the end of the text, not shown yet.
    waiting: Option<u16>,
}

impl SurrogateJoiner {
    /// Returns the text that a piece adds. A high surrogate at its end waits for the next piece.
    pub(crate) fn push<'a>(&mut self, piece: &'a str, halves: &mut EdgeSurrogates) -> Cow<'a, str> {
        let edges = halves.0.iter().position(|edges| edges.text == piece);
        let edges = edges.map(|index| halves.0.remove(index));
        if piece.is_empty() || (edges.is_none() && self.waiting.is_none()) {
            return Cow::Borrowed(piece);
        }
        let Edges { first, last, .. } = edges.unwrap_or_default();
        let (mut joined, mut rest) = (String::new(), piece);
        match (self.waiting.take(), first) {
            (Some(high), Some(low)) => {
                joined.extend(char::decode_utf16([high, low]).map(|c| c.unwrap_or(REPLACEMENT)));
                rest = rest.strip_prefix(REPLACEMENT).unwrap_or(rest);
            }
            (Some(_), None) => joined.push(REPLACEMENT),
            (None, _) => {}
        }
        if last.is_some() {
            self.waiting = last;
            rest = rest.strip_suffix(REPLACEMENT).unwrap_or(rest);
        }
        joined.push_str(rest);
        Cow::Owned(joined)
    }

    /// Returns U+FFFD if the text ends with half of a character, and otherwise nothing.
    pub(crate) fn end(&mut self) -> &'static str {
        match self.waiting.take() {
            Some(_) => "\u{fffd}",
            None => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn halves_are_replaced_and_all_else_is_left() {
        let read = |text: &str| from_str::<Value>(text).map_err(|error| error.to_string());
        for (text, expected) in [
            (r#""a \ud83d""#, json!("a \u{fffd}")),
            (
                r#""\uDE00\ud83d\uD83D\ude00""#,
                json!("\u{fffd}\u{fffd}\u{1f600}"),
            ),
            (
                r#"{"\udc00":"\\ud83d \\\ud83d"}"#,
                json!({"\u{fffd}": "\\ud83d \\\u{fffd}"}),
            ),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
        for whole in [r#""\ud83d\ude00 \\ud83d \u00e9""#, "\"\\", r#""\u12"#, ""] {
            assert_eq!(replace_lone_surrogates(whole), None, "{whole}");
        }
        for wrong in [r#"{"a":"\ud83d""#, r#""\ud83d\u12"#, r#""\ud83dé\""#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
    /// Joins pieces that come as stream events with one text each.
    fn joined(events: &[&str]) -> Vec<String> {
        let mut joiner = SurrogateJoiner::default();
        let mut seen: Vec<String> = events
            .iter()
            .map(|event| {
                let value: Value = from_str(event).unwrap();
                let mut halves = EdgeSurrogates::find(event);
                let piece = value["t"].as_str().unwrap();
                joiner.push(piece, &mut halves).into_owned()
            })
            .collect();
        seen.push(joiner.end().to_owned());
        seen
    }

    #[test]
    fn halves_in_two_pieces_are_joined() {
        let alone = "\u{fffd}";
        for (events, expected) in [
            (
                vec![r#"{"t":"a\ud83d","x":"\ud83d"}"#, r#"{"t":"\ude00b"}"#],
                vec!["a", "😀b", ""],
            ),
            (
                vec![
                    r#"{"t":"\ud83d"}"#,
                    r#"{"t":""}"#,
                    r#"{"t":"\ude00\ud83d"}"#,
                    r#"{"t":"\ude01"}"#,
                ],
                vec!["", "", "😀", "😁", ""],
            ),
            (vec![r#"{"t":"a\ud83d"}"#], vec!["a", alone]),
            (
                vec![r#"{"t":"a\ud83d"}"#, r#"{"t":"b"}"#],
                vec!["a", "\u{fffd}b", ""],
            ),
            (vec![r#"{"t":"\ude00"}"#], vec![alone, ""]),
            // A U+FFFD of the server is no half.
            (
                vec!["{\"t\":\"a\u{fffd}\"}", r#"{"t":"\ude00"}"#],
                vec!["a\u{fffd}", alone, ""],
            ),
            // An escaped backslash starts no escape.
            (
                vec![r#"{"t":"\\\ud83d"}"#, r#"{"t":"\ude00"}"#],
                vec!["\\", "😀", ""],
            ),
            (
                vec![r#"{"t":"\\ud83d"}"#, r#"{"t":"\ude00"}"#],
                vec!["\\ud83d", alone, ""],
            ),
        ] {
            assert_eq!(joined(&events), expected, "{events:?}");
        }
    }
}
