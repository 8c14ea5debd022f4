//! Why arguments and answers of an extension do not fit, in words of JavaScript: where, and
//! what is wanted. serde's own name Rust's types, and the column of a text that nobody sees.

use js_runtime::nearest;
use serde::de::DeserializeOwned;

use crate::ai::message::ContentBlock;
use crate::ai::nesting::{self, Of};

/// `None` if they do fit.
pub(super) fn misfit<T: DeserializeOwned>(args: &str, of: Of) -> Option<String> {
    if let Some(problem) = nesting::too_deep(args, of) {
        return Some(problem);
    }
    let mut json = serde_json::Deserializer::from_str(args);
    json.disable_recursion_limit();
    let read = || serde_path_to_error::deserialize::<_, T>(&mut json);
    let error = nesting::with_room(read).err()?;
    let path = match error.path().to_string() {
        path if path == "." => String::new(),
        path => path,
    };
    let words = words(error.into_inner());
    Some(match path.as_str() {
        "" => words,
        path if words.ends_with(MISSING) => format!("{path}.{words}"),
        path => format!("{path}: {words}"),
    })
}

/// A block whose type is that of none that models are told, and nearly one of them. Sessions
/// keep it as it is; whoever gives it means the other.
pub(super) fn misspelt(blocks: &[ContentBlock]) -> Option<String> {
    let mut blocks = blocks.iter().enumerate();
    blocks.find_map(|(index, block)| misspelt_block(index, block))
}

/// [`misspelt`] of the block at `index`.
pub(super) fn misspelt_block(index: usize, block: &ContentBlock) -> Option<String> {
    const KNOWN: [&str; 2] = ["text", "image"];
    const LIKENESS: f32 = 0.6;
    let ContentBlock::Other(block) = block else {
        return None;
    };
    let kind = block.get("type")?.as_str()?;
    let meant = nearest(kind, &KNOWN, LIKENESS)?;
    Some(format!(
        "content[{index}].type: unknown value `{kind}`, is `{meant}` meant?"
    ))
}

const MISSING: &str = " is missing";

/// What serde says of a value, without names of Rust's.
pub(crate) fn words(error: impl ToString) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    if let Some(member) = text.strip_prefix("missing field ") {
        return format!("{}{MISSING}", member.trim_matches('`'));
    }
    let text = in_javascript(text);
    let Some((before, name)) = text.split_once("expected ") else {
        return text;
    };
    let known = [
        "struct ",
        "internally tagged enum ",
        "externally tagged enum ",
    ];
    let Some(name) = known.iter().find_map(|kind| name.strip_prefix(kind)) else {
        return text;
    };
    let rest = name.find([' ', ',']).map_or("", |at| &name[at..]);
    format!("{before}expected an object{rest}")
}

/// What Rust and serde call what JavaScript has other words for.
fn in_javascript(text: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("invalid type: sequence,", "invalid type: array,"),
        ("invalid type: map,", "invalid type: object,"),
        ("unknown variant ", "unknown value "),
        ("expected a sequence", "expected an array"),
        ("expected a map", "expected an object"),
        ("expected f64", "expected a number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected usize", "expected a whole number"),
    ];
    let replaced = |text: String, (theirs, ours): &(&str, &str)| text.replace(theirs, ours);
    WORDS.iter().fold(text.to_owned(), replaced)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::ai::message::UserContent;

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "it is only what is wanted")]
    struct Message {
        custom_type: String,
        content: UserContent,
    }

    type Given = BTreeMap<String, Message>;

    #[test]
    fn it_says_where_and_what_is_wanted() {
        for (args, expected) in [
            (r#"{"message": {}}"#, "message.customType is missing"),
            (
                r#"{"message": "x"}"#,
                "message: invalid type: string \"x\", expected an object",
            ),
            (
                r#"{"message": {"customType": 1}}"#,
                "message.customType: invalid type: integer `1`, expected a string",
            ),
            (
                r#"{"message": {"customType": "x", "content": [{"type": "text"}]}}"#,
                "message.content: it must be a text, or an array of blocks of text and pictures",
            ),
        ] {
            assert_eq!(
                misfit::<Given>(args, Of::Arguments).as_deref(),
                Some(expected),
                "{args}"
            );
        }
        for (args, expected) in [
            (r#""a""#, "invalid type: string \"a\", expected an array"),
            ("{}", "invalid type: object, expected an array"),
        ] {
            assert_eq!(
                misfit::<Vec<String>>(args, Of::Arguments).as_deref(),
                Some(expected)
            );
        }
        let names = misfit::<Vec<String>>(r#"["a", 2]"#, Of::Arguments);
        let expected = "[1]: invalid type: integer `2`, expected a string";
        assert_eq!(names.as_deref(), Some(expected));
        assert_eq!(
            misfit::<Message>("{}", Of::Arguments).as_deref(),
            Some("customType is missing")
        );
        assert_eq!(misfit::<Given>("{}", Of::Arguments), None);
    }
}
