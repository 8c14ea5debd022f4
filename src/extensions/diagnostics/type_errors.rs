//! Explains in terms of JavaScript why arguments or results of an extension have the wrong
//! type: which member, and what is expected.

use pi_base::nearest;
use serde::de::DeserializeOwned;

use pi_ai::json::depth::{self, Origin};
use pi_ai::json::errors::{MISSING, describe};
use pi_ai::message::ContentBlock;

/// Returns what is wrong with `args`; `None` if it is a valid `T`.
pub(crate) fn explain_type_error<T: DeserializeOwned>(args: &str, of: Origin) -> Option<String> {
    if let Some(problem) = depth::depth_problem(args, of) {
        return Some(problem);
    }
    let mut json = serde_json::Deserializer::from_str(args);
    json.disable_recursion_limit();
    let read = || serde_path_to_error::deserialize::<_, T>(&mut json);
    let error = depth::with_enough_stack(read).err()?;
    let path = match error.path().to_string() {
        path if path == "." => String::new(),
        path => path,
    };
    let words = describe(error.into_inner());
    Some(match path.as_str() {
        "" => words,
        path if words.ends_with(MISSING) => format!("{path}.{words}"),
        path => format!("{path}: {words}"),
    })
}

/// Returns the problem with the first block whose unknown type is close to a known one.
/// Sessions store unknown types as they are, but an author who writes one means the known
/// type.
pub(crate) fn misspelt_block_type(blocks: &[ContentBlock]) -> Option<String> {
    let mut blocks = blocks.iter().enumerate();
    blocks.find_map(|(index, block)| misspelt_type_at(index, block))
}

/// Like [`misspelt_block_type`], for the block at `index`.
pub(crate) fn misspelt_type_at(index: usize, block: &ContentBlock) -> Option<String> {
    const KNOWN: [&str; 2] = ["text", "image"];
    let ContentBlock::Other(block) = block else {
        return None;
    };
    let kind = block.get("type")?.as_str()?;
    let suggestion = nearest(kind, &KNOWN)?;
    Some(format!(
        "content[{index}].type: unknown value `{kind}`, is `{suggestion}` meant?"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use pi_ai::message::UserContent;

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "it is only what is wanted")]
    struct Message {
        custom_type: String,
        content: UserContent,
    }

    type Messages = BTreeMap<String, Message>;

    #[test]
    fn error_names_member_and_expected_type() {
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
                explain_type_error::<Messages>(args, Origin::CallArguments).as_deref(),
                Some(expected),
                "{args}"
            );
        }
        for (args, expected) in [
            (r#""a""#, "invalid type: string \"a\", expected an array"),
            ("{}", "invalid type: object, expected an array"),
        ] {
            assert_eq!(
                explain_type_error::<Vec<String>>(args, Origin::CallArguments).as_deref(),
                Some(expected)
            );
        }
        let names = explain_type_error::<Vec<String>>(r#"["a", 2]"#, Origin::CallArguments);
        let expected = "[1]: invalid type: integer `2`, expected a string";
        assert_eq!(names.as_deref(), Some(expected));
        assert_eq!(
            explain_type_error::<Message>("{}", Origin::CallArguments).as_deref(),
            Some("customType is missing")
        );
        assert_eq!(
            explain_type_error::<Messages>("{}", Origin::CallArguments),
            None
        );
    }
}
