//! Reads JSON that is nested deeper than the 127 levels of serde_json: extensions store such
//! data, and sessions of the original contain it.

use memchr::memchr2;
use serde::Deserialize;
use serde::de::Error;
use serde_json::{Deserializer, Value};

/// Maximum depth of a tool's result. Accepted data must also be stored and passed on, within more
/// levels.
pub const MAX_JSON_DEPTH: usize = 1000;
/// Maximum number of levels that each step of [`Origin`] adds around the data of the step before.
const LEVELS_PER_STEP: usize = 8;
/// Maximum depth that serde_json accepts.
const SERDE_MAX_DEPTH: usize = 127;

/// Stack size in bytes of a thread that handles such values: recursive functions copy, compare
/// and drop them. 1,000 levels need at most 1 MB, or 3.2 MB without optimization.
pub const STACK_SIZE: usize = if cfg!(debug_assertions) { 16 } else { 8 } << 20;
/// Stack in bytes that must be free for one of these functions.
const STACK_RESERVE: usize = if cfg!(debug_assertions) {
    6 << 20
} else {
    3 << 19
};

/// The origin of the data. Data that one step accepts is never too deep for the next.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    ToolOutput,
    HandlerResult,
    /// Arguments of a JavaScript call that stores data.
    CallArguments,
    /// A line of a session file.
    SessionLine,
    /// Messages of a session, within the structure that passes them on.
    Forwarded,
}

/// Like `serde_json::from_str`, without extra cost for JSON that serde_json accepts.
pub fn from_str<'a, T: Deserialize<'a>>(json: &'a str, origin: Origin) -> serde_json::Result<T> {
    serde_json::from_str(json).or_else(|error| {
        if depth_of_text(json) <= SERDE_MAX_DEPTH {
            return Err(error);
        }
        if let Some(problem) = depth_problem(json, origin) {
            return Err(serde_json::Error::custom(problem));
        }
        with_enough_stack(|| {
            let mut json = Deserializer::from_str(json);
            json.disable_recursion_limit();
            let value = T::deserialize(&mut json)?;
            json.end().map(|()| value)
        })
    })
}

/// Returns the reason why a text is refused; `None` if its depth is accepted.
pub fn depth_problem(json: &str, origin: Origin) -> Option<String> {
    problem(depth_of_text(json), origin)
}

/// Like [`depth_problem`], for a parsed value.
pub fn value_depth_problem(value: &Value, origin: Origin) -> Option<String> {
    problem(depth_of_value(value), origin)
}

fn problem(depth: usize, origin: Origin) -> Option<String> {
    let most = MAX_JSON_DEPTH + LEVELS_PER_STEP * origin as usize;
    (depth > most).then(|| {
        format!("lists and objects are within each other in more than {MAX_JSON_DEPTH} levels")
    })
}

/// Runs `work` with enough stack.
pub fn with_enough_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK_RESERVE, STACK_SIZE, work)
}

fn depth_of_text(json: &str) -> usize {
    // Each level has an opening and a closing bracket.
    if json.len() <= 2 * SERDE_MAX_DEPTH {
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
            b'"' => rest = after_string(rest),
            _ => {}
        }
    }
    deepest
}

fn depth_of_value(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth_of_value).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth_of_value).max().unwrap_or(0),
        _ => 0,
    }
}

fn after_string(mut rest: &[u8]) -> &[u8] {
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
    fn depth_is_accepted_up_to_the_limit() {
        // Values are dropped recursively.
        let work = || {
            let read = |json: &str, origin| match from_str::<Value>(json, origin) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            };
            for (origin, most) in [(Origin::ToolOutput, 1000), (Origin::SessionLine, 1024)] {
                for fine in [1, SERDE_MAX_DEPTH, SERDE_MAX_DEPTH + 1, most] {
                    assert_eq!(read(&nested(fine), origin), "", "{fine}");
                }
                for deep in [most + 1, 1_000_000] {
                    assert!(
                        read(&nested(deep), origin).contains("1000 levels"),
                        "{deep}"
                    );
                }
            }
            let value: Value = from_str(&nested(500), Origin::SessionLine).unwrap();
            assert_eq!(depth_of_value(&value), 500);
            let broken = nested(500) + "]";
            assert!(read(&broken, Origin::SessionLine).contains("trailing"));
        };
        let thread = std::thread::Builder::new().stack_size(STACK_SIZE);
        thread.spawn(work).unwrap().join().unwrap();
    }

    #[test]
    fn brackets_in_texts_do_not_count() {
        let text = format!(r#"["{}\"[",{}]"#, "[{".repeat(SERDE_MAX_DEPTH), nested(3));
        assert_eq!(depth_of_text(&text), 4);
        assert_eq!(depth_of_text(&format!("\"\\{}", "[".repeat(300))), 0);
    }
}
