//! Reads JSON that is nested deeper than the 127 levels of serde_json: extensions store such
//! data, and sessions of the original contain it.

use memchr::memchr2;
use serde::Deserialize;
use serde::de::Error;
use serde_json::{Deserializer, Value};

/// Maximum depth of a tool's result. Accepted data must also be stored and passed on, within more
/// levels.
pub const DEEPEST: usize = 1000;
/// Maximum number of levels that each step of [`Of`] adds around the data of the step before.
const AROUND: usize = 8;
/// Maximum depth that serde_json accepts.
const SHALLOW: usize = 127;

/// Stack size in bytes of a thread that handles such values: recursive functions copy, compare
/// and drop them. 1,000 levels need at most 1 MB, or 3.2 MB without optimization.
pub const STACK: usize = if cfg!(debug_assertions) { 16 } else { 8 } << 20;
/// Stack in bytes that must be free for one of these functions.
const ROOM: usize = if cfg!(debug_assertions) {
    6 << 20
} else {
    3 << 19
};

/// The origin of the data. Data that one step accepts is never too deep for the next.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    ToolOutput,
    Answer,
    /// Arguments of a JavaScript call that stores data.
    Arguments,
    /// A line of a session file.
    Line,
    /// Messages of a session, within the structure that passes them on.
    HandedOn,
}

/// Like `serde_json::from_str`, without extra cost for JSON that serde_json accepts.
pub fn from_str<'a, T: Deserialize<'a>>(json: &'a str, of: Of) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| {
        if levels(json) <= SHALLOW {
            return Err(error);
        }
        if let Some(problem) = too_deep(json, of) {
            return Err(serde_json::Error::custom(problem));
        }
        with_room(|| {
            let mut json = Deserializer::from_str(json);
            json.disable_recursion_limit();
            let value = T::deserialize(&mut json)?;
            json.end().map(|()| value)
        })
    })
}

/// Returns the reason why a text is refused; `None` if its depth is accepted.
pub fn too_deep(json: &str, of: Of) -> Option<String> {
    problem(levels(json), of)
}

/// Like [`too_deep`], for a parsed value.
pub fn value_too_deep(value: &Value, of: Of) -> Option<String> {
    problem(levels_of(value), of)
}

fn problem(levels: usize, of: Of) -> Option<String> {
    let most = DEEPEST + AROUND * of as usize;
    (levels > most)
        .then(|| format!("lists and objects are within each other in more than {DEEPEST} levels"))
}

/// Runs `work` with enough stack.
pub fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM, STACK, work)
}

fn levels(json: &str) -> usize {
    // Each level has an opening and a closing bracket.
    if json.len() <= 2 * SHALLOW {
        return 0;
    }
    let (mut level, mut deepest) = (0_usize, 0);
    let mut rest = json.as_bytes();
    while let Some((byte, more)) = rest.split_first() {
        rest = more;
        match byte {
            b'[' | b'{' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b']' | b'}' => level = level.saturating_sub(1),
            b'"' => rest = behind_text(rest),
            _ => {}
        }
    }
    deepest
}

fn levels_of(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(levels_of).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(levels_of).max().unwrap_or(0),
        _ => 0,
    }
}

fn behind_text(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        if rest[at] == b'"' {
            return &rest[at + 1..];
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn what_is_deep_is_read_up_to_the_limit() {
        // Values are dropped recursively.
        let work = || {
            let read = |json: &str, of| match from_str::<Value>(json, of) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            };
            for (of, most) in [(Of::ToolOutput, 1000), (Of::Line, 1024)] {
                for fine in [1, SHALLOW, SHALLOW + 1, most] {
                    assert_eq!(read(&nested(fine), of), "", "{fine}");
                }
                for deep in [most + 1, 1_000_000] {
                    assert!(read(&nested(deep), of).contains("1000 levels"), "{deep}");
                }
            }
            let value: Value = from_str(&nested(500), Of::Line).unwrap();
            assert_eq!(levels_of(&value), 500);
            let broken = nested(500) + "]";
            assert!(read(&broken, Of::Line).contains("trailing"));
        };
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn brackets_in_texts_do_not_count() {
        let text = format!(r#"["{}\"[",{}]"#, "[{".repeat(SHALLOW), nested(3));
        assert_eq!(levels(&text), 4);
        assert_eq!(levels(&format!("\"\\{}", "[".repeat(300))), 0);
    }
}
