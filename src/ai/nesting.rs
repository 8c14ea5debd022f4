//! JSON that nests deeper than the 127 levels at which serde_json stops: extensions keep such
//! data, and sessions of the original have it.

use memchr::memchr2;
use serde::Deserialize;
use serde::de::Error;
use serde_json::{Deserializer, Value};

/// Of what a tool returns. Nobody writes more, and what is taken must be kept and handed on.
pub const DEEPEST: usize = 1000;
/// So much is wrapped around it at most, from one [`Of`] to the next.
const AROUND: usize = 8;
/// What serde_json takes.
const SHALLOW: usize = 127;

/// A thread that may hold such values: they are copied, compared and dropped by functions that
/// call themselves. For 1,000 levels they need 1 MB at most, and 3.2 MB if not optimized.
pub const STACK: usize = if cfg!(debug_assertions) { 16 } else { 8 } << 20;
/// For one of those functions.
const ROOM: usize = if cfg!(debug_assertions) {
    6 << 20
} else {
    3 << 19
};

/// Whose depth it is. What the one lets through is never too deep for the next.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    ToolOutput,
    Answer,
    /// Of a call of JavaScript that keeps something.
    Arguments,
    /// Of a session file.
    Line,
    /// Messages of a session within whatever hands them on.
    HandedOn,
}

/// As `serde_json::from_str`, and costs no more for what that can read.
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

/// Why a text is not taken.
pub fn too_deep(json: &str, of: Of) -> Option<String> {
    problem(levels(json), of)
}

/// The same of what is read already.
pub fn value_too_deep(value: &Value, of: Of) -> Option<String> {
    problem(levels_of(value), of)
}

fn problem(levels: usize, of: Of) -> Option<String> {
    let most = DEEPEST + AROUND * of as usize;
    (levels > most)
        .then(|| format!("lists and objects are within each other in more than {DEEPEST} levels"))
}

/// Does the work where there is enough stack for it.
pub fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM, STACK, work)
}

fn levels(json: &str) -> usize {
    // Each is opened and closed.
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
        // Values are dropped by recursion.
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
