//! Reads the complete text of a tool call's arguments.
//!
//! A text is read strictly first. If that fails, three mistakes of models inside strings are
//! repaired, because each has only one meaning: a raw control character is taken unchanged, a
//! backslash that begins no JSON escape stays a backslash, and a surrogate without its other half
//! becomes U+FFFD. Any other text is an error that shows the position, so that a tool never runs
//! with guessed arguments. `docs/tools.md` has the table of these rules. [`super::partial_json`]
//! reads texts that are still growing; its values are for showing only.

use serde_json::error::Category;
use serde_json::{Map, Value};

use super::partial_json;
use crate::json::surrogates::{ESCAPE, Unit, unit_at};

/// Characters shown on each side of the position of an error.
const CONTEXT_CHARS: usize = 40;
/// Separates the reason from the text of the model.
const RECEIVED_HEADING: &str = "\n\nReceived arguments:\n";

/// The reason why a text is not accepted as arguments, for the model and the user.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{sentence}")]
pub struct ArgumentsError {
    sentence: String,
    /// True if the text is the beginning of a JSON text.
    is_cut: bool,
}

/// Returns the object. A blank text gives an empty object, because a call of a tool without
/// parameters may come without any text.
pub fn read(text: &str) -> Result<Map<String, Value>, ArgumentsError> {
    if is_blank(text) {
        return Ok(Map::new());
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => return object(value),
        Err(error) => error,
    };
    let Some(repaired) = repair(text) else {
        return Err(malformed(text, text, &error, |offset| offset));
    };
    match serde_json::from_str(&repaired.text) {
        Ok(value) => object(value),
        Err(error) => Err(malformed(text, &repaired.text, &error, |offset| {
            repaired.original_offset(offset)
        })),
    }
}

/// Like [`read`], for a message: an invalid text gives no arguments, and the reason with the
/// text.
pub(crate) fn read_or_explain(text: &str) -> (Map<String, Value>, Option<String>) {
    match read(text) {
        Ok(arguments) => (arguments, None),
        Err(error) => (Map::new(), Some(error.with(text))),
    }
}

/// Returns the reason why a streamed call must not run: its text is cut off, and `arguments` are
/// empty or come from that text.
pub(crate) fn cut_text_error(text: &str, arguments: &Value) -> Option<String> {
    let error = read(text).err().filter(|error| error.is_cut)?;
    let is_empty = arguments.as_object().is_none_or(Map::is_empty);
    (is_empty || *arguments == partial_json::parse(text)).then(|| error.with(text))
}

impl ArgumentsError {
    fn with(&self, text: &str) -> String {
        format!("{self}{RECEIVED_HEADING}{text}")
    }
}

/// Returns the reason of [`read_or_explain`] without the text.
pub fn reason(error: &str) -> &str {
    error.split_once(RECEIVED_HEADING).map_or(error, |it| it.0)
}

/// Returns true for a blank text. `JSON.parse` of newer versions does not ignore a byte order
/// mark, but their test for a blank text does.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || c == '\u{feff}')
}

/// Returns true for `{}` with any white space.
pub(crate) fn is_empty_object(text: &str) -> bool {
    let inner = text.trim().strip_prefix('{');
    inner
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|inner| inner.trim().is_empty())
}

fn object(value: Value) -> Result<Map<String, Value>, ArgumentsError> {
    let kind = match value {
        Value::Object(members) => return Ok(members),
        Value::Array(_) => "an array",
        Value::String(_) => "a string",
        Value::Number(_) => "a number",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
    };
    Err(ArgumentsError {
        sentence: format!("The arguments must be a JSON object, and they are {kind}"),
        is_cut: false,
    })
}

/// `error` is about `parsed`; `original` converts an offset in `parsed` to one in `text`.
fn malformed(
    text: &str,
    parsed: &str,
    error: &serde_json::Error,
    original: impl Fn(usize) -> usize,
) -> ArgumentsError {
    let is_cut = error.classify() == Category::Eof;
    let offset = match is_cut {
        true => text.len(),
        false => original(offset_of(parsed, error)),
    };
    let offset = text.floor_char_boundary(offset);
    let (before, after) = text.split_at(offset);
    let number = before.chars().count();
    let message = error.to_string();
    let message = message
        .rsplit_once(" at line ")
        .map_or(&*message, |it| it.0);
    let before = last_characters(before);
    let sentence = match is_cut {
        true => {
            let inside = message.strip_prefix("EOF while parsing ").unwrap_or("JSON");
            format!(
                "The JSON is cut off at character {number}, in the middle of {inside}, after: {before}"
            )
        }
        false => {
            let after = first_characters(after);
            format!(
                "The JSON is wrong at character {number}: {message}, between: {before} and: {after}"
            )
        }
    };
    ArgumentsError { sentence, is_cut }
}

/// serde_json counts lines and bytes from 1.
fn offset_of(parsed: &str, error: &serde_json::Error) -> usize {
    let lines = parsed.split_inclusive('\n');
    let start: usize = lines
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    (start + error.column().saturating_sub(1)).min(parsed.len())
}

fn last_characters(text: &str) -> String {
    match text.char_indices().rev().nth(CONTEXT_CHARS) {
        Some((at, c)) => format!("…{}", &text[at + c.len_utf8()..]),
        None => text.to_owned(),
    }
}

fn first_characters(text: &str) -> String {
    match text.char_indices().nth(CONTEXT_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A repaired text, in which all strings are JSON strings.
pub(crate) struct Repaired {
    pub(crate) text: String,
    /// Pairs of offsets in the repaired text and in the original from which the two advance in
    /// step.
    steps: Vec<(usize, usize)>,
}

impl Repaired {
    fn original_offset(&self, offset: usize) -> usize {
        let after = self
            .steps
            .partition_point(|(repaired, _)| *repaired <= offset);
        let offset = match after.checked_sub(1).map(|last| self.steps[last]) {
            Some((repaired, original)) => original + (offset - repaired),
            None => offset,
        };
        // An offset within a replacement maps to the start of the replaced text.
        let next = self.steps.get(after);
        next.map_or(offset, |(_, original)| offset.min(*original))
    }
}

/// Escapes raw control characters in strings, doubles each backslash that begins no JSON escape,
/// and replaces lone surrogates. Returns `None` if there is nothing to repair.
pub(crate) fn repair(text: &str) -> Option<Repaired> {
    let bytes = text.as_bytes();
    let mut repaired = String::new();
    let mut steps = Vec::new();
    let (mut copied, mut at, mut in_string) = (0, 0, false);
    while let Some(&byte) = bytes.get(at) {
        let mut length = 1;
        let replacement = match byte {
            b'"' => {
                in_string = !in_string;
                None
            }
            b'\\' if in_string => match escape_length(&bytes[at..]) {
                None => Some("\\\\".to_owned()),
                Some(escape) => {
                    length = escape;
                    match unit_at(bytes, at) {
                        Unit::Pair => {
                            length = 2 * ESCAPE;
                            None
                        }
                        Unit::Half(_) => Some("\\ufffd".to_owned()),
                        Unit::Other => None,
                    }
                }
            },
            0..0x20 if in_string => Some(format!("\\u{byte:04x}")),
            _ => None,
        };
        if let Some(replacement) = replacement {
            repaired.push_str(&text[copied..at]);
            repaired.push_str(&replacement);
            copied = at + length;
            steps.push((repaired.len(), copied));
        }
        at += length;
    }
    (copied > 0).then(|| Repaired {
        text: repaired + &text[copied..],
        steps,
    })
}

/// Returns the length in bytes of the JSON escape at the start of `bytes`.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => {
            let digits = bytes.get(2..6)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(6)
        }
        _ => None,
    }
}

/// Checks properties for any text: the reader does not panic, it agrees with serde_json about
/// JSON objects, and the display of partial arguments shows the arguments that the tool gets.
pub fn fuzz_tool_arguments(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else {
        return;
    };
    let read = read(text);
    if let Ok(Value::Object(strict)) = serde_json::from_str(text) {
        assert_eq!(read.as_ref(), Ok(&strict), "{text}");
    }
    if let Some(repaired) = repair(text) {
        assert!(repair(&repaired.text).is_none(), "{text}");
        for offset in 0..=repaired.text.len() {
            assert!(repaired.original_offset(offset) <= text.len(), "{text}");
        }
    }
    if let Ok(members) = read
        && !is_blank(text)
    {
        let shown = partial_json::parse(text);
        assert_eq!(shown, Value::Object(members), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_ok(text: &str) -> Value {
        match read(text) {
            Ok(members) => Value::Object(members),
            Err(error) => panic!("{text}: {error}"),
        }
    }

    #[test]
    fn wrong_escapes_and_control_characters_stay() {
        for (text, expected) in [
            ("", json!({})),
            (" \n\u{feff}", json!({})),
            (
                r#"{"a":"\d+ \\d \. \' \"\x41"}"#,
                json!({"a": "\\d+ \\d \\. \\' \"\\x41"}),
            ),
            (r#"{"a":"\u12 \uzz \u"}"#, json!({"a": "\\u12 \\uzz \\u"})),
            (r#"{"\d":"\é"}"#, json!({"\\d": "\\é"})),
            ("{\"a\":\"1\n2\t3\u{1}\"}", json!({"a": "1\n2\t3\u{1}"})),
            ("{\"a\":\"\\\n\"}", json!({"a": "\\\n"})),
            (
                r#"{"a":"\ud83d\ude00 \ud83d \q"}"#,
                json!({"a": "😀 \u{fffd} \\q"}),
            ),
        ] {
            assert_eq!(read_ok(text), expected, "{text}");
        }
    }

    #[test]
    fn an_error_shows_the_place() {
        for (text, expected) in [
            (
                r#"{"command":"echo first && rm -rf /a/b"#,
                "The JSON is cut off at character 37, in the middle of a string, after: {\"command\":\"echo first && rm -rf /a/b",
            ),
            (
                r#"{"a":"\d","b"#,
                "The JSON is cut off at character 12, in the middle of a string, after: {\"a\":\"\\d\",\"b",
            ),
            (
                r#"{"a":[1,"#,
                "The JSON is cut off at character 8, in the middle of a value, after: {\"a\":[1,",
            ),
            (
                r#"{"a":1"#,
                "The JSON is cut off at character 6, in the middle of an object, after: {\"a\":1",
            ),
            (
                r#"{"é\d":1 "b":2}"#,
                "The JSON is wrong at character 9: expected `,` or `}`, between: {\"é\\d\":1  and: \"b\":2}",
            ),
            (
                "{\"a\":1,\n\"b\":x}",
                "The JSON is wrong at character 12: expected value, between: {\"a\":1,\n\"b\": and: x}",
            ),
            (
                "[1]",
                "The arguments must be a JSON object, and they are an array",
            ),
            (
                "\"{}\"",
                "The arguments must be a JSON object, and they are a string",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert_eq!(error, expected, "{text}");
        }
        let long = format!("{{\"a\":\"{}", "x".repeat(100));
        let error = read(&long).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("after: …{}", "x".repeat(CONTEXT_CHARS))),
            "{error}"
        );
    }

    #[test]
    fn nothing_is_guessed() {
        for text in [
            r#"{"a":1,}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":NaN}"#,
            r#"{a:1}"#,
            r#"{'a':1}"#,
            r#"{"a":1}{"a":2}"#,
            r#"{"a":1}x"#,
            r#"{"a":tru}"#,
            r#"{"a":"x}"#,
            r#"{"a":"\ud83d\"#,
            "\u{feff}{}",
            "nonsense",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_empty_object_is_known() {
        for text in ["{}", " { \n} "] {
            assert!(is_empty_object(text), "{text}");
        }
        for text in ["", "{", "{}{}", "{\"a\":1}"] {
            assert!(!is_empty_object(text), "{text}");
        }
    }
}
