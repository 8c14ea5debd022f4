//! Parses a growing JSON text into changes of the object that it stands for so far, for showing
//! only. The arguments that a tool gets are read by [`super::tool_arguments`] when the text is
//! complete.
//!
//! The parser is incremental: a call of 100 kB that arrives in 25,000 pieces does not cost 25,000
//! parses, because each piece costs only its own length. All readers of the arguments apply the
//! same changes, so the text is parsed once. No crate does this on `serde_json::Value`; existing
//! partial parsers start again for each piece.

use serde::Serialize;
use serde_json::{Map, Number, Value};

/// The maximum depth of serde_json; dropping a deeper value could exhaust the stack.
const MAX_SHOWN_DEPTH: usize = 128;

/// A change of the value at its open end. `key` is the name of a new member of an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ValueEdit {
    /// Adds an empty container to the innermost open one, and opens it.
    Open { key: Option<String>, array: bool },
    /// Closes the innermost container.
    Close,
    /// Adds a text, number or word to the innermost container.
    Add { key: Option<String>, value: Value },
    /// Appends to the text that was added last.
    Append(String),
    /// Replaces the number or word that was added last.
    Replace(Value),
}

/// Keeps the position in the text.
#[derive(Debug, Default)]
pub struct PartialJson {
    state: State,
    /// The open containers, outermost first.
    open: Vec<Container>,
    /// An incomplete key, number or word.
    token: String,
    /// The value that the incomplete number or word has in its container.
    shown: Option<Value>,
    escape: Escape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Before the outermost `{`.
    #[default]
    Start,
    /// In an object: a key or `}`.
    KeyOrEnd,
    Key,
    Colon,
    /// In an array: a value or `]`.
    ValueOrEnd,
    Value,
    /// In a string, which is part of the value already and grows there.
    String,
    /// In a number, `true`, `false`, `null` or one of [`NON_JSON_NUMBERS`].
    Word,
    /// `,` or the end of the container.
    CommaOrEnd,
    /// The text is complete, or is no JSON from here on; the rest is ignored.
    Done,
}

#[derive(Clone, Debug)]
enum Container {
    /// An object, with the key of its last member.
    Object(String),
    Array,
}

/// An escape in a string.
#[derive(Debug, Default)]
enum Escape {
    #[default]
    None,
    Backslash,
    /// The hexadecimal digits so far.
    Unicode(String),
}

/// Parses a text of any kind at once, which may be cut off anywhere. Returns an empty object if
/// nothing can be read yet.
pub fn parse(text: &str) -> Value {
    let mut edits = Vec::new();
    let mut parser = PartialJson::default();
    parser.push("{\"\":", &mut edits);
    parser.push(text, &mut edits);
    let mut root = apply(&edits);
    let value = root.as_object_mut().and_then(|root| root.remove(""));
    value.unwrap_or_else(|| Value::Object(Map::new()))
}

/// Returns the value that the edits make of an empty object.
pub fn apply(edits: &[ValueEdit]) -> Value {
    let mut edited = Edited {
        root: Value::Object(Map::new()),
        open: Vec::new(),
    };
    for edit in edits {
        edited.apply(edit);
    }
    edited.root
}

struct Edited {
    root: Value,
    /// The open containers, outermost first.
    open: Vec<Container>,
}

impl Edited {
    fn apply(&mut self, edit: &ValueEdit) {
        match edit {
            ValueEdit::Open { key, array } => {
                let (value, container) = match array {
                    true => (Value::Array(Vec::new()), Container::Array),
                    false => (Value::Object(Map::new()), Container::Object(String::new())),
                };
                self.add(key.as_ref(), value);
                self.open.push(container);
            }
            ValueEdit::Close => {
                self.open.pop();
            }
            ValueEdit::Add { key, value } => self.add(key.as_ref(), value.clone()),
            ValueEdit::Append(text) => {
                if let Some(Value::String(string)) = self.last() {
                    string.push_str(text);
                }
            }
            ValueEdit::Replace(value) => {
                if let Some(last) = self.last() {
                    *last = value.clone();
                }
            }
        }
    }

    /// Returns the innermost open container.
    fn container(&mut self) -> Option<&mut Value> {
        let parents = self.open.len().saturating_sub(1);
        self.open[..parents]
            .iter()
            .try_fold(&mut self.root, last_of)
    }

    /// Returns the value that was added last to the innermost container.
    fn last(&mut self) -> Option<&mut Value> {
        let innermost = self.open.last()?.clone();
        last_of(self.container()?, &innermost)
    }

    fn add(&mut self, key: Option<&String>, value: Value) {
        let Some(innermost) = self.open.last_mut() else {
            self.root = value;
            return;
        };
        if let (Container::Object(last), Some(key)) = (innermost, key) {
            last.clone_from(key);
        }
        match (self.container(), key) {
            (Some(Value::Object(map)), Some(key)) => {
                map.insert(key.clone(), value);
            }
            (Some(Value::Array(array)), None) => array.push(value),
            // The parser names the members of objects only.
            _ => {}
        }
    }
}

impl PartialJson {
    /// Adds the next piece of the text, and its changes to `edits`.
    pub fn push(&mut self, piece: &str, edits: &mut Vec<ValueEdit>) {
        let edits = &mut NewEdits {
            before: edits.len(),
            edits,
        };
        let mut rest = piece;
        while let Some(c) = rest.chars().next() {
            let used = match self.state {
                State::Done => return,
                State::Key | State::String => self.push_in_string(edits, rest, c),
                State::Word => self.push_in_word(edits, rest),
                _ => {
                    self.push_between(edits, c);
                    c.len_utf8()
                }
            };
            rest = &rest[used..];
        }
        if self.state == State::Word
            && let Some(value) = word_so_far(&self.token)
        {
            self.show_word(edits, value);
        }
    }

    /// Returns true if the value is complete or the text is no JSON: further text is ignored.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Handles white space, punctuation, and the first character of a value.
    fn push_between(&mut self, edits: &mut NewEdits<'_>, c: char) {
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            return;
        }
        self.state = match (self.state, c) {
            (State::Start, '{') => {
                self.open(edits, false);
                State::KeyOrEnd
            }
            (State::KeyOrEnd, '"') => {
                self.token.clear();
                State::Key
            }
            (State::KeyOrEnd | State::CommaOrEnd, '}')
            | (State::ValueOrEnd | State::CommaOrEnd, ']') => self.close(edits, c),
            (State::Colon, ':') => State::Value,
            (State::Value | State::ValueOrEnd, _) => self.begin_value(edits, c),
            // A comma before the end is accepted.
            (State::CommaOrEnd, ',') => match self.open.last() {
                Some(Container::Array) => State::ValueOrEnd,
                _ => State::KeyOrEnd,
            },
            _ => State::Done,
        };
    }

    fn begin_value(&mut self, edits: &mut NewEdits<'_>, c: char) -> State {
        match c {
            '"' => {
                self.add(edits, Value::String(String::new()));
                State::String
            }
            '{' | '[' if self.open.len() == MAX_SHOWN_DEPTH => State::Done,
            '{' => {
                self.open(edits, false);
                State::KeyOrEnd
            }
            '[' => {
                self.open(edits, true);
                State::ValueOrEnd
            }
            '-' | '0'..='9' | 't' | 'f' | 'n' | 'N' | 'I' => {
                self.token.clear();
                self.token.push(c);
                self.shown = None;
                State::Word
            }
            _ => State::Done,
        }
    }

    fn close(&mut self, edits: &mut NewEdits<'_>, c: char) -> State {
        match (self.open.pop(), c) {
            (Some(Container::Object(_)), '}') | (Some(Container::Array), ']') => {
                edits.edits.push(ValueEdit::Close);
                match self.open.is_empty() {
                    true => State::Done,
                    false => State::CommaOrEnd,
                }
            }
            _ => State::Done,
        }
    }

    /// Consumes a run of plain characters, or one special character. Returns the number of bytes.
    fn push_in_string(&mut self, edits: &mut NewEdits<'_>, rest: &str, c: char) -> usize {
        match std::mem::take(&mut self.escape) {
            Escape::None => match rest.find(['"', '\\']) {
                Some(0) if c == '"' => {
                    self.end_string();
                    1
                }
                Some(0) => {
                    self.escape = Escape::Backslash;
                    1
                }
                end => {
                    let run = &rest[..end.unwrap_or(rest.len())];
                    self.append(edits, run);
                    run.len()
                }
            },
            Escape::Backslash => {
                match c {
                    'u' => self.escape = Escape::Unicode(String::new()),
                    'n' => self.append(edits, "\n"),
                    't' => self.append(edits, "\t"),
                    'r' => self.append(edits, "\r"),
                    'b' => self.append(edits, "\u{8}"),
                    'f' => self.append(edits, "\u{c}"),
                    '"' | '\\' | '/' => self.append(edits, c.encode_utf8(&mut [0; 4])),
                    // This is no escape: the backslash is text, and the character is read again.
                    _ => {
                        self.append(edits, "\\");
                        return 0;
                    }
                }
                c.len_utf8()
            }
            Escape::Unicode(digits) => self.in_unicode_escape(edits, digits, c),
        }
    }

    /// `digits` are those of one escape, or of a high surrogate and the text after it, such as
    /// `d83e\\udd`.
    fn in_unicode_escape(
        &mut self,
        edits: &mut NewEdits<'_>,
        mut digits: String,
        c: char,
    ) -> usize {
        let expected = match digits.len() {
            4 => c == '\\',
            5 => c == 'u',
            _ => c.is_ascii_hexdigit(),
        };
        if !expected {
            // The character is read again by the rules outside this escape.
            match digits.get(4..) {
                None => self.append(edits, &format!("\\u{digits}")),
                Some(after) => {
                    self.append(edits, "\u{fffd}");
                    match after {
                        "" => {}
                        "\\" => self.escape = Escape::Backslash,
                        more => self.append(edits, more),
                    }
                }
            }
            return 0;
        }
        digits.push(c);
        let is_high = |unit: Option<u16>| matches!(unit, Some(0xd800..=0xdbff));
        let first = utf16_unit(&digits, 0);
        let second = utf16_unit(&digits, 6);
        match (first, second) {
            (Some(_), None) if is_high(first) => self.escape = Escape::Unicode(digits),
            (Some(_), Some(_)) if is_high(second) => {
                // The first half stays alone; the second may be the first of a pair.
                self.append(edits, "\u{fffd}");
                self.escape = Escape::Unicode(digits.split_off(6));
            }
            (Some(first), second) => {
                let text: String = char::decode_utf16([first].into_iter().chain(second))
                    .map(|c| c.unwrap_or('\u{fffd}'))
                    .collect();
                self.append(edits, &text);
            }
            (None, _) => self.escape = Escape::Unicode(digits),
        }
        1
    }

    fn end_string(&mut self) {
        if self.state == State::Key {
            if let Some(Container::Object(key)) = self.open.last_mut() {
                *key = std::mem::take(&mut self.token);
            }
            self.state = State::Colon;
        } else {
            self.state = State::CommaOrEnd;
        }
    }

    fn append(&mut self, edits: &mut NewEdits<'_>, text: &str) {
        match self.state {
            State::Key => self.token.push_str(text),
            _ => edits.append(text),
        }
    }

    fn push_in_word(&mut self, edits: &mut NewEdits<'_>, rest: &str) -> usize {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let end = rest.find(|c| !is_part(c));
        self.token.push_str(&rest[..end.unwrap_or(rest.len())]);
        if end.is_some() {
            // The word is complete, because another character follows.
            let whole = match NON_JSON_NUMBERS.contains(&&*self.token) {
                true => Ok(Value::Null),
                false => serde_json::from_str(&self.token),
            };
            self.state = match whole {
                Ok(value) => {
                    self.show_word(edits, value);
                    State::CommaOrEnd
                }
                Err(_) => State::Done,
            };
            self.token.clear();
        }
        end.unwrap_or(rest.len())
    }

    fn show_word(&mut self, edits: &mut NewEdits<'_>, value: Value) {
        match &self.shown {
            Some(shown) if *shown == value => return,
            Some(_) => edits.edits.push(ValueEdit::Replace(value.clone())),
            None => self.add(edits, value.clone()),
        }
        self.shown = Some(value);
    }

    fn open(&mut self, edits: &mut NewEdits<'_>, array: bool) {
        let key = self.key();
        edits.edits.push(ValueEdit::Open { key, array });
        self.open.push(match array {
            true => Container::Array,
            false => Container::Object(String::new()),
        });
    }

    fn add(&mut self, edits: &mut NewEdits<'_>, value: Value) {
        let key = self.key();
        edits.edits.push(ValueEdit::Add { key, value });
    }

    /// Returns the name of the next value, if its container is an object.
    fn key(&mut self) -> Option<String> {
        match self.open.last_mut()? {
            Container::Object(key) => Some(std::mem::take(key)),
            Container::Array => None,
        }
    }
}

/// The edits of one piece. Earlier ones must not change, because readers have seen them.
struct NewEdits<'a> {
    edits: &'a mut Vec<ValueEdit>,
    /// Number of earlier edits.
    before: usize,
}

impl NewEdits<'_> {
    fn append(&mut self, text: &str) {
        match self.edits[self.before..].last_mut() {
            Some(
                ValueEdit::Append(string)
                | ValueEdit::Add {
                    value: Value::String(string),
                    ..
                },
            ) => string.push_str(text),
            _ => self.edits.push(ValueEdit::Append(text.to_owned())),
        }
    }
}

fn utf16_unit(digits: &str, start: usize) -> Option<u16> {
    u16::from_str_radix(digits.get(start..start + 4)?, 16).ok()
}

fn last_of<'a>(value: &'a mut Value, container: &Container) -> Option<&'a mut Value> {
    match container {
        Container::Object(key) => value.as_object_mut()?.get_mut(key),
        Container::Array => value.as_array_mut()?.last_mut(),
    }
}

/// Words that models write and JSON does not have.
const NON_JSON_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Returns the value that an incomplete word is most likely to become.
fn word_so_far(token: &str) -> Option<Value> {
    for (word, value) in [
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("null", Value::Null),
    ] {
        if word.starts_with(token) {
            return Some(value);
        }
    }
    // The start of a number's word may become one.
    if token != "-" && NON_JSON_NUMBERS.iter().any(|word| word.starts_with(token)) {
        return Some(Value::Null);
    }
    let number = token.trim_end_matches(['.', 'e', 'E', '+', '-']);
    number.parse::<Number>().ok().map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn so_far(text: &str) -> Value {
        let mut edits = Vec::new();
        PartialJson::default().push(text, &mut edits);
        apply(&edits)
    }

    #[test]
    fn prefixes() {
        for (text, expected) in [
            ("", json!({})),
            ("{", json!({})),
            ("{\"a", json!({})),
            ("{\"a\"", json!({})),
            ("{\"a\":", json!({})),
            ("{\"a\":\"", json!({"a": ""})),
            ("{\"a\":\"x\\", json!({"a": "x"})),
            ("{\"a\":\"x\\n", json!({"a": "x\n"})),
            ("{\"a\":\"x\\u00e", json!({"a": "x"})),
            ("{\"a\":t", json!({"a": true})),
            ("{\"a\":fal", json!({"a": false})),
            ("{\"a\":n", json!({"a": null})),
            ("{\"a\":-", json!({})),
            ("{\"a\":Na", json!({"a": null})),
            ("{\"a\":-Inf", json!({"a": null})),
            ("{\"a\":NaN,\"b\":1", json!({"a": null, "b": 1})),
            ("{\"a\":-1.", json!({"a": -1})),
            ("{\"a\":1.5e", json!({"a": 1.5})),
            ("{\"a\":[1, 23", json!({"a": [1, 23]})),
            ("{\"a\":[{\"b\":[", json!({"a": [{"b": []}]})),
            ("{\"a\":{\"b\":1},", json!({"a": {"b": 1}})),
        ] {
            assert_eq!(so_far(text), expected, "{text}");
        }
    }

    #[test]
    fn the_root_may_be_a_list_or_a_text() {
        for (text, expected) in [
            ("[1,", json!([1])),
            ("[{\"a\":\"x", json!([{"a": "x"}])),
            ("\"str", json!("str")),
            ("{\"a\":[1,", json!({"a": [1]})),
            ("{\"\":1", json!({"": 1})),
            ("", json!({})),
            ("nonsense", json!({})),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    const SAMPLE: &str = r#" { "path" : "src/ä\"\\\/\b\f\n\r\t\u00e9\ud83e\udd80.rs", "n": [0, -1.5e+3, 18446744073709551615],
        "deep": {"a": [[], {}, [{"b": null}], true, false]}, "": "", "path2": "x", "n": 7, "last": 12 } "#;

    #[test]
    fn a_complete_text_gives_the_value_of_serde_json() {
        let expected: Value = serde_json::from_str(SAMPLE).unwrap();
        for cut in (0..=SAMPLE.len()).filter(|cut| SAMPLE.is_char_boundary(*cut)) {
            let mut parser = PartialJson::default();
            let mut edits = Vec::new();
            parser.push(&SAMPLE[..cut], &mut edits);
            parser.push(&SAMPLE[cut..], &mut edits);
            assert_eq!(apply(&edits), expected, "cut at {cut}");
        }
    }

    #[test]
    fn piece_by_piece_is_the_same_as_all_at_once() {
        let mut parser = PartialJson::default();
        let mut edits = Vec::new();
        for (at, c) in SAMPLE.char_indices() {
            parser.push(c.encode_utf8(&mut [0; 4]), &mut edits);
            let whole = so_far(&SAMPLE[..at + c.len_utf8()]);
            assert_eq!(apply(&edits), whole, "after byte {at}");
        }
    }

    #[test]
    fn invalid_json_keeps_the_value_so_far() {
        for (text, expected) in [
            ("[1]", json!({})),
            ("null", json!({})),
            ("\"{}\"", json!({})),
            ("nonsense", json!({})),
            ("{\"a\":1 \"b\":2}", json!({"a": 1})),
            ("{\"a\":tru, \"b\":2}", json!({})),
            ("{\"a\":[1}", json!({"a": [1]})),
            ("{\"a\":1}{\"a\":2}", json!({"a": 1})),
            ("{a:1}", json!({})),
            // Models do send these texts; serde_json refuses them.
            ("{\"a\":\"1\n2\\q\"}", json!({"a": "1\n2\\q"})),
            (
                "{\"a\":\"\\ud83e-\\ud83e\\n\\uzz\\u12\"}",
                json!({"a": "\u{fffd}-\u{fffd}\n\\uzz\\u12"}),
            ),
            (
                "{\"a\":\"\\ud83d\\ud83d\\ude00\\ud83d\\u1z\"}",
                json!({"a": "\u{fffd}\u{1f600}\u{fffd}\\u1z"}),
            ),
            ("{\"a\":[1,],}", json!({"a": [1]})),
        ] {
            assert_eq!(so_far(text), expected, "{text}");
        }
    }

    #[test]
    fn no_damage_panics() {
        let starts = SAMPLE.char_indices().map(|(start, _)| start);
        for start in starts {
            for damage in [
                "\"",
                "\\",
                "\\u",
                "\\ud83e\\",
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                "-",
                "1e9999",
                "é",
            ] {
                let text = format!("{}{damage}{}", &SAMPLE[..start], &SAMPLE[start..]);
                let mut parser = PartialJson::default();
                let mut edits = Vec::new();
                for c in text.chars() {
                    parser.push(c.encode_utf8(&mut [0; 4]), &mut edits);
                }
                let root = apply(&edits);
                assert!(root.is_object(), "{text}");
                // Texts that serde_json accepts give the same value.
                if let Ok(strict) = serde_json::from_str::<Value>(&text) {
                    assert_eq!(root, strict, "{text}");
                }
            }
        }
    }

    #[test]
    fn depth_is_limited() {
        let text = format!("{{\"a\":{}", "[".repeat(1_000_000));
        let mut depth = 0;
        let mut value = &so_far(&text)["a"];
        while let Some(inner) = value.get(0) {
            depth += 1;
            value = inner;
        }
        assert_eq!(depth, MAX_SHOWN_DEPTH - 2);
    }
}
