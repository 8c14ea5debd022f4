//! The arguments of a tool call that is streamed, as JSON: what an incomplete text stands
//! for so far, written anew only where it has changed.
//!
//! Why that is right: a text that grows can change the object only at its open end. Of
//! every container that is open, all children but the last are final, and the last one is
//! either open itself or the value that is growing. So what has been written stays as it
//! is up to the last child of the innermost container that was open; of a string there
//! only the new piece is escaped. The two cases in which this does not hold (a name that
//! comes twice in an object, a word that turns out to be none) are told by the parser,
//! and from there on the arguments are written as everybody would write them.

use std::io;

use serde_json::Value;

use crate::ai::partial_json::PartialJson;

const EMPTY: &[u8] = b"{}";

#[derive(Default)]
pub struct Arguments {
    parser: PartialJson,
    root: Value,
    /// The JSON, without the ends of the containers that are open.
    json: Vec<u8>,
    /// Those, outermost first.
    open: Vec<Level>,
    /// Bytes of the last child of the innermost, if that is a string.
    string: Option<usize>,
}

struct Level {
    end: u8,
    children: usize,
    /// Where the last child begins in the JSON, with what separates it from the one
    /// before.
    last: usize,
}

impl Arguments {
    /// `false` if it cannot go on from here.
    pub fn push(&mut self, piece: &str) -> io::Result<bool> {
        self.parser.push(&mut self.root, piece);
        if self.parser.strayed() {
            return Ok(false);
        }
        let depth = self.parser.depth();
        // Taken out, so that the rest can be written to.
        let root = std::mem::take(&mut self.root);
        let written = match self.open.is_empty() {
            true => self.begin(&root, depth),
            false => self.go_on(&root, depth),
        };
        self.root = root;
        written.map(|()| true)
    }

    /// The whole of it.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        out.write_all(&self.json)?;
        let ends: Vec<u8> = self.open.iter().rev().map(|level| level.end).collect();
        out.write_all(&ends)
    }

    /// Nothing is open: there has been nothing yet, or nothing will come any more.
    fn begin(&mut self, root: &Value, depth: usize) -> io::Result<()> {
        // A parser that is at its end stays there.
        if depth == 0 && self.json.len() > EMPTY.len() {
            return Ok(());
        }
        self.json.clear();
        match root.is_object() {
            true => self.value(root, 0, depth),
            false => {
                self.json.extend_from_slice(EMPTY);
                Ok(())
            }
        }
    }

    fn go_on(&mut self, root: &Value, depth: usize) -> io::Result<()> {
        // The containers that were open.
        let mut path = vec![root];
        for level in &self.open[..self.open.len() - 1] {
            let container = path[path.len() - 1];
            path.push(child(container, level.children - 1));
        }
        // How many of them still are: those whose last child is the next one.
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
                from = self.last_child(container, index)?;
            }
            let is_open = index < still;
            if !is_open {
                self.children(container, from, None)?;
                let level = self.open.pop().expect("there is one for each of the path");
                self.json.push(level.end);
            } else if index + 1 == still {
                self.children(container, from, Some((index, depth)))?;
                break;
            }
        }
        Ok(())
    }

    /// What has become of the last child that was written; says from which child on there
    /// is something to write.
    fn last_child(&mut self, container: &Value, index: usize) -> io::Result<usize> {
        let Level { children, last, .. } = self.open[index];
        if let (Some(known), Some(text)) = (self.string, child(container, children - 1).as_str()) {
            if known < text.len() {
                self.json.pop();
                let start = self.json.len();
                serde_json::to_writer(&mut self.json, &text[known..])?;
                // The quote at the beginning.
                self.json.remove(start);
                self.string = Some(text.len());
            }
            return Ok(children);
        }
        self.json.truncate(last);
        Ok(children - 1)
    }

    /// Children from one on; those of an open container at this index of the path, which
    /// is to have so many open ones.
    fn children(
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
            self.value(value, at + 1, depth)?;
        }
        Ok(())
    }

    /// The last value of all; it is open if the path is to be longer than to here.
    fn value(&mut self, value: &Value, index: usize, depth: usize) -> io::Result<()> {
        self.string = value.as_str().map(str::len);
        if index >= depth {
            return Ok(serde_json::to_writer(&mut self.json, value)?);
        }
        let (start, end) = match value {
            Value::Array(_) => (b'[', b']'),
            _ => (b'{', b'}'),
        };
        self.json.push(start);
        self.open.push(Level {
            end,
            children: 0,
            last: self.json.len(),
        });
        self.children(value, 0, Some((index, depth)))
    }
}

fn length(container: &Value) -> usize {
    match container {
        Value::Object(members) => members.len(),
        Value::Array(elements) => elements.len(),
        _ => 0,
    }
}

/// Counted from the end, where it is: an object cannot be asked for a place.
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
    use crate::ai::partial_json::parse;

    /// In these pieces; gives how often it had to give up.
    fn check(pieces: &[&str]) -> bool {
        let mut arguments = Arguments::default();
        let mut text = String::new();
        for piece in pieces {
            text.push_str(piece);
            if !arguments.push(piece).unwrap() {
                return false;
            }
            let mut json = Vec::new();
            arguments.write(&mut json).unwrap();
            let anew = serde_json::to_string(&parse(&text)).unwrap();
            assert_eq!(String::from_utf8(json).unwrap(), anew, "after {text:?}");
        }
        true
    }

    /// Cut into pieces of these lengths, over and over.
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
        fn whole_arguments_are_written_as_if_anew(
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
        fn whatever_a_model_sends_is(
            text in r#"\{("[ab]":|[\[\]{},:"\\ua1e.tnx-]|"[ab\\n]*"|true|null|-?1[.]5)*"#,
            lengths in prop::collection::vec(1..5_usize, 1..5),
        ) {
            check(&cut(&text, &lengths));
        }
    }

    #[test]
    fn a_piece_costs_what_it_is_long() {
        let mut arguments = Arguments::default();
        arguments
            .push(r#"{"path":"x","content":"some text"#)
            .unwrap();
        // What stands there is not looked at again: a mark in it stays.
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
