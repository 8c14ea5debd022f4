//! Writes the arguments of a streaming tool call as JSON: the value of the incomplete text,
//! serialized again only where it changed.
//!
//! A growing text can change the object only at its open end. In every open container all
//! children but the last are final, and the last one is open itself or is the value that
//! grows. So the JSON stays valid up to the last child of the innermost open container, and of
//! a string there only the new piece is escaped. Two cases break this rule: a name that comes
//! twice in an object, and a literal that turns out to be invalid. The parser reports both, and
//! the caller then serializes the arguments as a whole.

use std::io;

use serde_json::Value;

use pi_ai::stream::partial_json::PartialJson;

const EMPTY_OBJECT: &[u8] = b"{}";

#[derive(Default)]
pub struct StreamedArguments {
    parser: PartialJson,
    root: Value,
    /// The JSON, without the closing brackets of the open containers.
    json: Vec<u8>,
    /// The open containers, outermost first.
    open: Vec<OpenContainer>,
    /// Bytes of the innermost container's last child, if it is a string.
    string: Option<usize>,
}

struct OpenContainer {
    end: u8,
    children: usize,
    /// Position of the last child in the JSON, including the separator before it.
    last: usize,
}

impl StreamedArguments {
    /// Appends a piece of text. Returns `false` if the arguments cannot be continued
    /// incrementally.
    pub fn push(&mut self, piece: &str) -> io::Result<bool> {
        self.parser.push(&mut self.root, piece);
        if self.parser.diverged() {
            return Ok(false);
        }
        let depth = self.parser.depth();
        // Taken out, so that `self` can be borrowed mutably.
        let root = std::mem::take(&mut self.root);
        let written = match self.open.is_empty() {
            true => self.write_closed(&root, depth),
            false => self.extend(&root, depth),
        };
        self.root = root;
        written.map(|()| true)
    }

    /// Writes the whole JSON.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        out.write_all(&self.json)?;
        let ends: Vec<u8> = self.open.iter().rev().map(|level| level.end).collect();
        out.write_all(&ends)
    }

    /// Serializes the value when no container is open: before the first piece, or after the
    /// object was closed.
    fn write_closed(&mut self, root: &Value, depth: usize) -> io::Result<()> {
        // A closed object does not change any more.
        if depth == 0 && self.json.len() > EMPTY_OBJECT.len() {
            return Ok(());
        }
        self.json.clear();
        match root.is_object() {
            true => self.write_value(root, 0, depth),
            false => {
                self.json.extend_from_slice(EMPTY_OBJECT);
                Ok(())
            }
        }
    }

    fn extend(&mut self, root: &Value, depth: usize) -> io::Result<()> {
        // The containers that were open before.
        let mut path = vec![root];
        for level in &self.open[..self.open.len() - 1] {
            let container = path[path.len() - 1];
            path.push(child(container, level.children - 1));
        }
        // Number of them that are still open: those whose last child is the next one.
        let mut still = usize::from(depth > 0);
        while still > 0
            && still < path.len()
            && still < depth
            && length(path[still - 1]) == self.open[still - 1].children
        {
            still += 1;
        }
        let innermost = path.len() - 1;
        for (index, container) in path.iter().enumerate().rev() {
            let mut from = self.open[index].children;
            if index == innermost && from > 0 {
                from = self.update_last_child(container, index)?;
            }
            let is_open = index < still;
            if !is_open {
                self.write_children(container, from, None)?;
                let level = self.open.pop().expect("there is one for each of the path");
                self.json.push(level.end);
            } else if index + 1 == still {
                self.write_children(container, from, Some((index, depth)))?;
                break;
            }
        }
        Ok(())
    }

    /// Updates the last child that was written. Returns the index of the first child that is still
    /// to be written.
    fn update_last_child(&mut self, container: &Value, index: usize) -> io::Result<usize> {
        let OpenContainer { children, last, .. } = self.open[index];
        if let (Some(known), Some(text)) = (self.string, child(container, children - 1).as_str()) {
            if known < text.len() {
                self.json.pop();
                let start = self.json.len();
                serde_json::to_writer(&mut self.json, &text[known..])?;
                // Remove the opening quote.
                self.json.remove(start);
                self.string = Some(text.len());
            }
            return Ok(children);
        }
        self.json.truncate(last);
        Ok(children - 1)
    }

    /// Writes the children from index `from` on. `open` holds the index of the container among the
    /// open ones and the depth of the innermost one, if the container is open.
    fn write_children(
        &mut self,
        container: &Value,
        from: usize,
        open: Option<(usize, usize)>,
    ) -> io::Result<()> {
        let total = length(container);
        for index in from..total {
            let last = self.json.len();
            if index > 0 {
                self.json.push(b',');
            }
            let value = match container {
                Value::Object(members) => {
                    let skip = total - 1 - index;
                    let Some((name, value)) = members.iter().rev().nth(skip) else {
                        continue;
                    };
                    serde_json::to_writer(&mut self.json, name)?;
                    self.json.push(b':');
                    value
                }
                _ => child(container, index),
            };
            let open = open.filter(|_| index + 1 == total);
            let Some((at, depth)) = open else {
                serde_json::to_writer(&mut self.json, value)?;
                continue;
            };
            self.open[at].last = last;
            self.open[at].children = total;
            self.write_value(value, at + 1, depth)?;
        }
        Ok(())
    }

    /// Writes the last value of the text. It is open if the depth is larger than its index.
    fn write_value(&mut self, value: &Value, index: usize, depth: usize) -> io::Result<()> {
        self.string = value.as_str().map(str::len);
        if index >= depth {
            return Ok(serde_json::to_writer(&mut self.json, value)?);
        }
        let (start, end) = match value {
            Value::Array(_) => (b'[', b']'),
            _ => (b'{', b'}'),
        };
        self.json.push(start);
        self.open.push(OpenContainer {
            end,
            children: 0,
            last: self.json.len(),
        });
        self.write_children(value, 0, Some((index, depth)))
    }
}

fn length(container: &Value) -> usize {
    match container {
        Value::Object(members) => members.len(),
        Value::Array(elements) => elements.len(),
        _ => 0,
    }
}

/// Returns a child of a container. An object is searched from its end, where the child is: its
/// members have no index.
fn child(container: &Value, index: usize) -> &Value {
    let found = match container {
        Value::Object(members) => {
            let after = members.len().saturating_sub(index + 1);
            members.values().rev().nth(after)
        }
        Value::Array(elements) => elements.get(index),
        _ => None,
    };
    found.unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use pi_ai::stream::partial_json::parse;

    /// Pushes the pieces, and compares the JSON with that of the whole text after each. Returns
    /// `false` if the arguments could not be continued.
    fn check(pieces: &[&str]) -> bool {
        let mut arguments = StreamedArguments::default();
        let mut text = String::new();
        for piece in pieces {
            text.push_str(piece);
            if !arguments.push(piece).unwrap() {
                return false;
            }
            let mut json = Vec::new();
            arguments.write(&mut json).unwrap();
            let whole = serde_json::to_string(&parse(&text)).unwrap();
            assert_eq!(String::from_utf8(json).unwrap(), whole, "after {text:?}");
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
        let mut arguments = StreamedArguments::default();
        arguments
            .push(r#"{"path":"x","content":"some text"#)
            .unwrap();
        // Written text is not read again: a changed byte stays.
        let at = arguments.json.len() - 3;
        arguments.json[at] = b'_';
        arguments.push(r#" and\nmore","edits":[{"a":1},{"#).unwrap();
        arguments.push(r#""b":[12"#).unwrap();
        arguments.push(r#"3]}], "last": ""#).unwrap();
        let mut json = Vec::new();
        arguments.write(&mut json).unwrap();
        assert_eq!(
            String::from_utf8(json).unwrap(),
            r#"{"path":"x","content":"some te_t and\nmore","edits":[{"a":1},{"b":[123]}],"last":""}"#
        );
    }
}
