//! Recovers the `id` of a line that cannot be parsed, so that the error response names the
//! command.

use serde_json::Value;

/// Scans the members of the outermost object for `id`, as far as they can be separated.
/// Works without recursion, so the line may be nested deeply.
pub fn recover_id(text: &str) -> Option<Value> {
    let mut found = None;
    let Some(mut rest) = text.trim_start().strip_prefix('{') else {
        return found;
    };
    while let Some((key, after)) = parse_prefix::<String>(rest.trim_start()) {
        let Some(value) = after.trim_start().strip_prefix(':') else {
            break;
        };
        let value = value.trim_start();
        let after = if value.starts_with(['{', '[']) {
            skip_container(value)
        } else {
            match parse_prefix::<Value>(value) {
                Some((id, after)) if key == "id" => {
                    found = Some(id).filter(|id| !id.is_null());
                    Some(after)
                }
                Some((_, after)) => Some(after),
                None => None,
            }
        };
        let next = after.and_then(|after| after.trim_start().strip_prefix(','));
        let Some(next) = next else { break };
        rest = next;
    }
    found
}

/// Parses the value at the beginning, and returns it with the text after it.
fn parse_prefix<T: serde::de::DeserializeOwned>(text: &str) -> Option<(T, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    Some((value, &text[end..]))
}

/// Returns the text after the object or array at the beginning.
fn skip_container(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[at + 1..]);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_are_recovered_from_broken_lines() {
        assert_eq!(recover_id(r#"{"id":"a","type":"#), Some(json!("a")));
        assert_eq!(
            recover_id(r#" { "x" : {"id":1,"y":"}\""} , "id" : 2 , ?"#),
            Some(json!(2))
        );
        assert_eq!(recover_id(r#"{"x":[[["]"]]],"id":3"#), Some(json!(3)));
        assert_eq!(recover_id(r#"{"x":[["#), None);
        assert_eq!(recover_id(r#"{"x"}"#), None);
        assert_eq!(recover_id(r#"{"id":null,"x":"#), None);
        assert_eq!(recover_id(r#"["id",1]"#), None);
        assert_eq!(recover_id(""), None);
    }
}
