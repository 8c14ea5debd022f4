//! Reads JSON that names half a character. Text of JavaScript is UTF-16 and may be cut
//! in the middle of an emoji; what is written down of it then (`"\ud83d"`) is text for
//! JavaScript and none for Rust. Such a half becomes the sign for what is unreadable.

use memchr::memchr;
use serde::de::DeserializeOwned;

use super::nesting::{self, Of};

const HIGH: std::ops::RangeInclusive<u16> = 0xd800..=0xdbff;
const LOW: std::ops::RangeInclusive<u16> = 0xdc00..=0xdfff;
/// Bytes of `\uXXXX`.
const ESCAPE: usize = 6;

/// As `serde_json::from_str`, and costs no more for what that can read.
pub(crate) fn from_str<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    mending(json, |json| serde_json::from_str(json))
}

/// The same for the line of a session, which may be deep.
pub(crate) fn from_line<T: DeserializeOwned>(line: &str) -> serde_json::Result<T> {
    mending(line, |line| nesting::from_str(line, Of::Line))
}

fn mending<T>(json: &str, read: impl Fn(&str) -> serde_json::Result<T>) -> serde_json::Result<T> {
    read(json).or_else(|error| match mended(json) {
        Some(mended) => read(&mended),
        None => Err(error),
    })
}

/// The same with whole characters only; `None` if it has no others.
pub(crate) fn mended(json: &str) -> Option<String> {
    let bytes = json.as_bytes();
    let mut mended = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        let escape = at + found;
        at = escape + 2;
        let Some(unit) = unit_at(bytes, escape) else {
            continue;
        };
        let pair = HIGH.contains(&unit)
            && unit_at(bytes, escape + ESCAPE).is_some_and(|next| LOW.contains(&next));
        if pair {
            at = escape + 2 * ESCAPE;
        } else if HIGH.contains(&unit) || LOW.contains(&unit) {
            at = escape + ESCAPE;
            mended.push_str(&json[copied..escape]);
            mended.push('\u{fffd}');
            copied = at;
        }
    }
    (copied > 0).then(|| mended + &json[copied..])
}

/// The UTF-16 code unit that an escape at this byte names.
fn unit_at(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
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
            assert_eq!(mended(whole), None, "{whole}");
        }
        for wrong in [r#"{"a":"\ud83d""#, r#""\ud83d\u12"#, r#""\ud83dé\""#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
