//! Parses a growing JSON text into the object that it stands for so far, for showing only. The
//! arguments that a tool gets are read by [`super::tool_arguments`] when the text is complete.
//!
//! The parser is incremental: a call of 100 kB that arrives in 25,000 pieces does not cost 25,000
//! parses, because each piece costs only its own length. No crate does this on
//! `serde_json::Value`; existing partial parsers start again for each piece.

use serde_json::{Map, Number, Value};

/// The maximum depth of serde_json; dropping a deeper value could exhaust the stack.
const MAX_DEPTH: usize = 128;

/// Keeps the position in the text. The caller owns the value and passes it to each call.
#[derive(Debug, Default)]
pub struct PartialJson {
    state: State,
    /// The open containers, outermost first.
    open: Vec<Container>,
    /// An incomplete key, number or word.
    token: String,
    /// True if the incomplete number or word has a value in its container.
    word_is_shown: bool,
    /// True if a value that was shown has been removed or replaced.
    diverged: bool,
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

#[derive(Debug)]
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
    let mut root = Value::Object(Map::new());
    let mut parser = PartialJson::default();
    parser.push(&mut root, "{\"\":");
    parser.push(&mut root, text);
    let value = root.as_object_mut().and_then(|root| root.remove(""));
    value.unwrap_or_else(|| Value::Object(Map::new()))
}

impl PartialJson {
    /// Adds the next piece of the text to `root`, which starts as `{}`.
    pub fn push(&mut self, root: &mut Value, piece: &str) {
        let mut rest = piece;
        while let Some(c) = rest.chars().next() {
            let used = match self.state {
                State::Done => return,
                State::Key | State::String => self.push_in_string(root, rest, c),
                State::Word => self.push_in_word(root, rest),
                _ => {
                    self.push_between(root, c);
                    c.len_utf8()
                }
            };
            rest = &rest[used..];
        }
        if self.state == State::Word {
            match word_so_far(&self.token) {
                Some(value) => self.show_word(root, value),
                None => self.diverged |= self.word_is_shown,
            }
        }
    }

    /// Returns the number of open containers.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns true if the value is complete or the text is no JSON: further text is ignored.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Returns true if the value was changed elsewhere than at its end, or depends on how the
    /// text was split. Models do not send such texts.
    pub fn diverged(&self) -> bool {
        self.diverged
    }

    /// Handles white space, punctuation, and the first character of a value.
    fn push_between(&mut self, root: &mut Value, c: char) {
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            return;
        }
        self.state = match (self.state, c) {
            (State::Start, '{') => {
                *root = Value::Object(Map::new());
                self.open.push(Container::Object(String::new()));
                State::KeyOrEnd
            }
            (State::KeyOrEnd, '"') => {
                self.token.clear();
                State::Key
            }
            (State::KeyOrEnd | State::CommaOrEnd, '}')
            | (State::ValueOrEnd | State::CommaOrEnd, ']') => self.close(c),
            (State::Colon, ':') => State::Value,
            (State::Value | State::ValueOrEnd, _) => self.begin_value(root, c),
            // A comma before the end is accepted.
            (State::CommaOrEnd, ',') => match self.open.last() {
                Some(Container::Array) => State::ValueOrEnd,
                _ => State::KeyOrEnd,
            },
            _ => State::Done,
        };
    }

    fn begin_value(&mut self, root: &mut Value, c: char) -> State {
        let (value, container, state) = match c {
            '"' => (Value::String(String::new()), None, State::String),
            '{' => (
                Value::Object(Map::new()),
                Some(Container::Object(String::new())),
                State::KeyOrEnd,
            ),
            '[' => (
                Value::Array(Vec::new()),
                Some(Container::Array),
                State::ValueOrEnd,
            ),
            '-' | '0'..='9' | 't' | 'f' | 'n' | 'N' | 'I' => {
                self.token.clear();
                self.token.push(c);
                self.word_is_shown = false;
                return State::Word;
            }
            _ => return State::Done,
        };
        if container.is_some() && self.open.len() == MAX_DEPTH {
            return State::Done;
        }
        self.insert(root, value);
        self.open.extend(container);
        state
    }

    fn close(&mut self, c: char) -> State {
        match (self.open.pop(), c) {
            (Some(Container::Object(_)), '}') | (Some(Container::Array), ']') => {
                match self.open.is_empty() {
                    true => State::Done,
                    false => State::CommaOrEnd,
                }
            }
            _ => State::Done,
        }
    }

    /// Consumes a run of plain characters, or one special character. Returns the number of bytes.
    fn push_in_string(&mut self, root: &mut Value, rest: &str, c: char) -> usize {
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
                    self.append(root, run);
                    run.len()
                }
            },
            Escape::Backslash => {
                match c {
                    'u' => self.escape = Escape::Unicode(String::new()),
                    'n' => self.append(root, "\n"),
                    't' => self.append(root, "\t"),
                    'r' => self.append(root, "\r"),
                    'b' => self.append(root, "\u{8}"),
                    'f' => self.append(root, "\u{c}"),
                    '"' | '\\' | '/' => self.append(root, c.encode_utf8(&mut [0; 4])),
                    // This is no escape: the backslash is text, and the character is read again.
                    _ => {
                        self.append(root, "\\");
                        return 0;
                    }
                }
                c.len_utf8()
            }
            Escape::Unicode(digits) => self.in_unicode_escape(root, digits, c),
        }
    }

    /// `digits` are those of one escape, or of a high surrogate and the text after it, such as
    /// `d83e\\udd`.
    fn in_unicode_escape(&mut self, root: &mut Value, mut digits: String, c: char) -> usize {
        let expected = match digits.len() {
            4 => c == '\\',
            5 => c == 'u',
            _ => c.is_ascii_hexdigit(),
        };
        if !expected {
            // The character is read again by the rules outside this escape.
            match digits.get(4..) {
                None => self.append(root, &format!("\\u{digits}")),
                Some(after) => {
                    self.append(root, "\u{fffd}");
                    match after {
                        "" => {}
                        "\\" => self.escape = Escape::Backslash,
                        more => self.append(root, more),
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
                self.append(root, "\u{fffd}");
                self.escape = Escape::Unicode(digits.split_off(6));
            }
            (Some(first), second) => {
                let text: String = char::decode_utf16([first].into_iter().chain(second))
                    .map(|c| c.unwrap_or('\u{fffd}'))
                    .collect();
                self.append(root, &text);
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

    fn append(&mut self, root: &mut Value, text: &str) {
        if self.state == State::Key {
            self.token.push_str(text);
        } else if let Some(Value::String(string)) = self.last(root) {
            string.push_str(text);
        }
    }

    fn push_in_word(&mut self, root: &mut Value, rest: &str) -> usize {
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
                    self.show_word(root, value);
                    State::CommaOrEnd
                }
                Err(_) => {
                    self.diverged |= self.word_is_shown;
                    State::Done
                }
            };
            self.token.clear();
        }
        end.unwrap_or(rest.len())
    }

    fn show_word(&mut self, root: &mut Value, value: Value) {
        if self.word_is_shown {
            if let Some(last) = self.last(root) {
                *last = value;
            }
        } else {
            self.insert(root, value);
            self.word_is_shown = true;
        }
    }

    /// Returns the innermost open container.
    fn container<'a>(&self, root: &'a mut Value) -> Option<&'a mut Value> {
        let parents = self.open.len().saturating_sub(1);
        self.open[..parents]
            .iter()
            .try_fold(root, |value, container| last_of(value, container))
    }

    /// Returns the value that was added last to the innermost container.
    fn last<'a>(&self, root: &'a mut Value) -> Option<&'a mut Value> {
        last_of(self.container(root)?, self.open.last()?)
    }

    fn insert(&mut self, root: &mut Value, value: Value) {
        match (self.container(root), self.open.last()) {
            (Some(Value::Object(map)), Some(Container::Object(key))) => {
                let known = map.insert(key.clone(), value);
                self.diverged |= known.is_some();
            }
            (Some(Value::Array(array)), Some(Container::Array)) => array.push(value),
            // The caller passed another value than last time.
            _ => {}
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
        let mut root = json!({});
        PartialJson::default().push(&mut root, text);
        root
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
            let mut root = json!({});
            parser.push(&mut root, &SAMPLE[..cut]);
            parser.push(&mut root, &SAMPLE[cut..]);
            assert_eq!(root, expected, "cut at {cut}");
        }
    }

    #[test]
    fn piece_by_piece_is_the_same_as_all_at_once() {
        let mut parser = PartialJson::default();
        let mut root = json!({});
        for (at, c) in SAMPLE.char_indices() {
            parser.push(&mut root, c.encode_utf8(&mut [0; 4]));
            let mut whole = json!({});
            PartialJson::default().push(&mut whole, &SAMPLE[..at + c.len_utf8()]);
            assert_eq!(root, whole, "after byte {at}");
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
                let mut root = json!({});
                for c in text.chars() {
                    parser.push(&mut root, c.encode_utf8(&mut [0; 4]));
                }
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
        assert_eq!(depth, MAX_DEPTH - 2);
    }
}
