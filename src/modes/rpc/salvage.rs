//! The `id` of a line that cannot be parsed, so that its sender learns which of its
//! commands that was.

use serde_json::Value;

/// What can be made out of a broken or a very deep line.
#[derive(Debug, Default, PartialEq)]
pub struct Salvaged {
    pub id: Option<Value>,
}

/// Goes through the members of the outermost object as far as they can be told apart,
/// without recursion.
pub fn salvage(text: &str) -> Salvaged {
    let mut found = Salvaged::default();
    let Some(mut rest) = text.trim_start().strip_prefix('{') else {
        return found;
    };
    while let Some((key, after)) = take::<String>(rest.trim_start()) {
        let Some(value) = after.trim_start().strip_prefix(':') else {
            break;
        };
        let value = value.trim_start();
        let after = if value.starts_with(['{', '[']) {
            skip(value)
        } else {
            match take::<Value>(value) {
                Some((id, after)) if key == "id" => {
                    found.id = Some(id).filter(|id| !id.is_null());
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

/// The value at the beginning, and what comes after it.
fn take<T: serde::de::DeserializeOwned>(text: &str) -> Option<(T, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    Some((value, &text[end..]))
}

/// What comes after the object or array at the beginning.
fn skip(text: &str) -> Option<&str> {
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

    fn id(text: &str) -> Option<Value> {
        salvage(text).id
    }

    #[test]
    fn an_id_is_found_where_it_can_be() {
        assert_eq!(id(r#"{"id":"a","type":"#), Some(json!("a")));
        assert_eq!(
            id(r#" { "x" : {"id":1,"y":"}\""} , "id" : 2 , ?"#),
            Some(json!(2))
        );
        assert_eq!(id(r#"{"x":[[["]"]]],"id":3"#), Some(json!(3)));
        assert_eq!(id(r#"{"x":[["#), None);
        assert_eq!(id(r#"{"x"}"#), None);
        assert_eq!(id(r#"{"id":null,"x":"#), None);
        assert_eq!(id(r#"["id",1]"#), None);
        assert_eq!(id(""), None);
    }
}
