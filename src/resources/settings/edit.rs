//! Edits JSON files with comments and trailing commas. A change replaces only the text of the
//! changed values.

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::{CollectOptions, ParseOptions, ParseResult, parse_to_ast};
use serde_json::Value;

use super::file::Object;

const LENIENT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
};

/// Parses JSON with comments and trailing commas. The error is that of a strict parser, because
/// its position is where the text must be corrected.
pub fn parse(text: &str) -> Result<Value, serde_json::Error> {
    let strict = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match parse_to_ast(text, &CollectOptions::default(), &LENIENT) {
        // The syntax tree keeps the order of the keys.
        Ok(ParseResult {
            value: Some(value), ..
        }) => Ok(value.into()),
        Ok(_) | Err(_) => Err(strict),
    }
}

/// Returns `text`, whose content is `old`, changed to the content `new`.
pub(crate) fn rewrite(text: &str, old: &Object, new: &Object) -> serde_json::Result<String> {
    let whole = serde_json::to_string_pretty(new)?;
    let end = &text[text.trim_end().len()..];
    let newline = if end.contains('\n') { "\n" } else { "" };
    // The text has the format of a program, so the new one gets it, too.
    if text.trim().is_empty() || text.trim_end() == serde_json::to_string_pretty(old)? {
        return Ok(format!("{whole}{newline}"));
    }
    let edited = CstRootNode::parse(text, &LENIENT).ok().and_then(|root| {
        change(&root.object_value()?, old, new);
        Some(root.to_string())
    });
    // The edited text must have the new content; if it has not, the formatting is given up.
    match edited.filter(|text| parse(text).is_ok_and(|value| value.as_object() == Some(new))) {
        Some(text) => Ok(text),
        None => Ok(format!("{whole}{newline}")),
    }
}

fn change(object: &CstObject, old: &Object, new: &Object) {
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        // Removes duplicates of the key, too.
        while let Some(property) = object.get(key) {
            property.remove();
        }
    }
    for (key, value) in new {
        let Some(property) = object.get(key) else {
            object.append(key, input(value));
            continue;
        };
        let before = old.get(key);
        if before == Some(value) {
            continue;
        }
        match (property.object_value(), before, value) {
            (Some(inner), Some(Value::Object(old)), Value::Object(new)) => {
                change(&inner, old, new);
            }
            _ => property.set_value(input(value)),
        }
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(object) => {
            let members = object
                .iter()
                .map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    fn rewritten(text: &str, new: Value) -> String {
        let old = object(parse(text).unwrap());
        rewrite(text, &old, &object(new)).unwrap()
    }

    #[test]
    fn comments_and_formatting_around_a_change_stay() {
        let text = "// mine\n{\n\t\"theme\": \"dark\", // the best\n\t\"list\": [1,2],\n\t\
                    /* later */ \"retry\": {\"enabled\": true,},\n}\n";
        let new = json!({"theme": "light", "list": [1, 2], "retry": {"enabled": true, "maxRetries": 1}, "x": {"y": "z"}});
        assert_eq!(
            rewritten(text, new),
            "// mine\n{\n\t\"theme\": \"light\", // the best\n\t\"list\": [1,2],\n\t\
             /* later */ \"retry\": {\n\t\t\"enabled\": true,\n\t\t\"maxRetries\": 1,\n\t},\n\t\
             \"x\": {\n\t\t\"y\": \"z\",\n\t},\n}\n"
        );
    }

    #[test]
    fn removing_a_key_removes_nothing_else() {
        let text = "{\n  \"a\": 1,\n  // about b\n  \"b\": 2,\n  \"c\":   3\n}";
        assert_eq!(
            rewritten(text, json!({"b": 2, "c": 3})),
            "{\n  // about b\n  \"b\": 2,\n  \"c\":   3\n}"
        );
        assert_eq!(
            rewritten(text, json!({"a": 1, "b": 2})),
            "{\n  \"a\": 1,\n  // about b\n  \"b\": 2\n}"
        );
    }

    #[test]
    fn generated_file_keeps_its_format() {
        let text = "{\n  \"a\": [\n    1\n  ]\n}\n";
        assert_eq!(
            rewritten(text, json!({"a": [1, 2]})),
            "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n"
        );
        assert_eq!(rewritten("{}", json!({"a": []})), "{\n  \"a\": []\n}");
    }

    #[test]
    fn last_duplicate_key_is_used() {
        let text = "{ \"a\": 1, \"b\": 0, \"a\": 2 }";
        let again = rewritten(text, json!({"a": 3, "b": 0}));
        assert_eq!(parse(&again).unwrap(), json!({"a": 3, "b": 0}));
        let gone = rewritten(text, json!({"b": 0}));
        assert_eq!(parse(&gone).unwrap(), json!({"b": 0}));
    }

    #[test]
    fn invalid_json_is_an_error_with_its_position() {
        let error = parse("{\n  \"a\": 1\n  \"b\": 2\n}").unwrap_err();
        assert_eq!((error.line(), error.column()), (3, 3));
        for text in [
            "",
            "// only a comment",
            "{'a': 1}",
            "{a: 1}",
            "{\"a\": 0x1}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
