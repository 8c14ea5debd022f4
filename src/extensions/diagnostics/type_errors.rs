//! Why arguments and answers of an extension do not fit, in words of JavaScript: where, and
//! what is wanted.

use pi_base::nearest;
use serde::de::DeserializeOwned;

use crate::ai::message::ContentBlock;
use crate::ai::nesting::{self, Of};
use crate::ai::words::{MISSING, words};

/// `None` if they do fit.
pub(in crate::extensions) fn misfit<T: DeserializeOwned>(args: &str, of: Of) -> Option<String> {
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
pub(in crate::extensions) fn misspelt(blocks: &[ContentBlock]) -> Option<String> {
    let mut blocks = blocks.iter().enumerate();
    blocks.find_map(|(index, block)| misspelt_block(index, block))
}

/// [`misspelt`] of the block at `index`.
pub(in crate::extensions) fn misspelt_block(index: usize, block: &ContentBlock) -> Option<String> {
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
