//! Writes the arguments of a streaming tool call as JSON. Each change of the arguments is written
//! at the end of the JSON, which is not serialized again.

use std::collections::HashSet;
use std::io;

use pi_ai::stream::ValueEdit;

const EMPTY_OBJECT: &[u8] = b"{}";

#[derive(Default)]
pub struct ArgumentsWriter {
    /// The JSON, without the closing brackets of the open containers.
    json: Vec<u8>,
    /// The open containers, outermost first.
    open: Vec<OpenContainer>,
    /// Position of the value that was added last.
    last: usize,
}

struct OpenContainer {
    end: u8,
    is_empty: bool,
    /// The names of an object's members.
    keys: HashSet<String>,
}

impl ArgumentsWriter {
    /// Writes changes. Returns `false` if the JSON cannot be continued, because an object got a
    /// member twice.
    pub fn apply(&mut self, edits: &[ValueEdit]) -> io::Result<bool> {
        for edit in edits {
            match edit {
                ValueEdit::Open { key, array } => {
                    if !self.begin_value(key.as_deref())? {
                        return Ok(false);
                    }
                    let (start, end) = match array {
                        true => (b'[', b']'),
                        false => (b'{', b'}'),
                    };
                    self.json.push(start);
                    self.open.push(OpenContainer {
                        end,
                        is_empty: true,
                        keys: HashSet::new(),
                    });
                }
                ValueEdit::Close => self.json.extend(self.open.pop().map(|closed| closed.end)),
                ValueEdit::Add { key, value } => {
                    if !self.begin_value(key.as_deref())? {
                        return Ok(false);
                    }
                    serde_json::to_writer(&mut self.json, value)?;
                }
                ValueEdit::Append(text) => {
                    // Remove the closing quote, and then the opening one of the new text.
                    self.json.pop();
                    let start = self.json.len();
                    serde_json::to_writer(&mut self.json, text)?;
                    self.json.remove(start);
                }
                ValueEdit::Replace(value) => {
                    self.json.truncate(self.last);
                    serde_json::to_writer(&mut self.json, value)?;
                }
            }
        }
        Ok(true)
    }

    /// Writes the whole JSON.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        if self.json.is_empty() {
            return out.write_all(EMPTY_OBJECT);
        }
        out.write_all(&self.json)?;
        let ends: Vec<u8> = self.open.iter().rev().map(|level| level.end).collect();
        out.write_all(&ends)
    }

    /// Writes what precedes a value. Returns `false` if its container has the key already.
    fn begin_value(&mut self, key: Option<&str>) -> io::Result<bool> {
        if let Some(container) = self.open.last_mut() {
            if !std::mem::take(&mut container.is_empty) {
                self.json.push(b',');
            }
            if let Some(key) = key {
                if !container.keys.insert(key.to_owned()) {
                    return Ok(false);
                }
                serde_json::to_writer(&mut self.json, key)?;
                self.json.push(b':');
            }
        }
        self.last = self.json.len();
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use pi_ai::stream::GrowingArguments;

    /// Pushes the pieces, and compares the JSON with that of the whole arguments after each.
    /// Returns `false` if the JSON could not be continued.
    fn check(pieces: &[&str]) -> bool {
        let mut writer = ArgumentsWriter::default();
        let mut arguments = GrowingArguments::default();
        for piece in pieces {
            let before = arguments.clone();
            arguments.push(piece);
            let delta = arguments.since(&before).unwrap();
            if !writer.apply(&delta.edits).unwrap() {
                return false;
            }
            let mut json = Vec::new();
            writer.write(&mut json).unwrap();
            let whole = serde_json::to_string(&arguments.value()).unwrap();
            assert_eq!(String::from_utf8(json).unwrap(), whole, "after {piece:?}");
        }
        true
    }

    /// Cuts the text into pieces of these lengths, repeated.
    fn cut<'a>(text: &'a str, lengths: &[usize]) -> Vec<&'a str> {
        let mut pieces = Vec::new();
        let mut rest = text;
        for length in lengths.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let mut end = (*length).clamp(1, rest.len());
            while !rest.is_char_boundary(end) {
                end += 1;
            }
            let (piece, after) = rest.split_at(end);
            pieces.push(piece);
            rest = after;
        }
        pieces
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            (-1e9..1e9).prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((".{0,4}", inner), 0..5)
                    .prop_map(|members| { Value::Object(members.into_iter().collect()) }),
            ]
        })
    }

    proptest! {
        #[test]
        fn incremental_json_equals_full_serialization(
            members in prop::collection::vec(("[a-z]{1,3}", value()), 0..6),
            pretty in any::<bool>(),
            lengths in prop::collection::vec(1..9_usize, 1..5),
        ) {
            let value = Value::Object(members.into_iter().collect());
            let text = match pretty {
                true => serde_json::to_string_pretty(&value).unwrap(),
                false => value.to_string(),
            };
            prop_assert!(check(&cut(&text, &lengths)), "{text}");
        }

        #[test]
        fn invalid_text_equals_full_serialization(
            text in r#"\{("[ab]":|[\[\]{},:"\\ua1e.tnx-]|"[ab\\n]*"|true|null|-?1[.]5)*"#,
            lengths in prop::collection::vec(1..5_usize, 1..5),
        ) {
            check(&cut(&text, &lengths));
        }
    }

    #[test]
    fn written_json_is_not_read_again() {
        let mut writer = ArgumentsWriter::default();
        let mut arguments = GrowingArguments::default();
        let mut push = |writer: &mut ArgumentsWriter, piece: &str| {
            let before = arguments.clone();
            arguments.push(piece);
            let edits = arguments.since(&before).unwrap().edits;
            assert!(writer.apply(&edits).unwrap());
        };
        push(&mut writer, r#"{"path":"x","content":"some text"#);
        // Written text is not read again: a changed byte stays.
        let at = writer.json.len() - 3;
        writer.json[at] = b'_';
        push(&mut writer, r#" and\nmore","edits":[{"a":1},{"#);
        push(&mut writer, r#""b":[12"#);
        push(&mut writer, r#"3]}], "last": ""#);
        let mut json = Vec::new();
        writer.write(&mut json).unwrap();
        assert_eq!(
            String::from_utf8(json).unwrap(),
            r#"{"path":"x","content":"some te_t and\nmore","edits":[{"a":1},{"b":[123]}],"last":""}"#
        );
    }

    #[test]
    fn a_member_that_comes_twice_ends_the_writing() {
        assert!(check(&["{\"a\":1,", "\"b\":{\"a\":2}}"]));
        assert!(!check(&["{\"a\":1,", "\"b\":2,\"a", "\":3}"]));
    }
}
