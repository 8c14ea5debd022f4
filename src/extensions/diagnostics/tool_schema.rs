//! Checks whether the parameters of a tool are a JSON schema. As in the original, others
//! are accepted, and the provider decides.

use serde_json::Value;

/// Keywords that identify a schema without a `type`.
const KEYWORDS: [&str; 12] = [
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "not",
    "oneOf",
    "properties",
    "required",
];

/// Members that identify schemas of zod and similar libraries.
const OTHER_LIBRARY_MARKERS: [&str; 3] = ["_def", "_zod", "~standard"];

/// Returns a warning if `parameters` is a bare list of names or a schema of another
/// library.
pub fn schema_problem(tool: &str, parameters: &Value) -> Option<String> {
    let members = parameters.as_object()?;
    let has = |names: &[&str]| names.iter().any(|name| members.contains_key(*name));
    let is_object = |kind: &Value| kind == "object";
    let what = match members.get("type") {
        _ if members.is_empty() => return None,
        Some(Value::String(kind)) if kind == "object" => return None,
        Some(Value::Array(kinds)) if kinds.iter().any(is_object) => return None,
        _ if has(&OTHER_LIBRARY_MARKERS) => {
            "a schema of another library, which models do not understand".into()
        }
        Some(kind @ Value::String(_)) => format!("of the type {kind}, and models give an object"),
        Some(_) => "no JSON schema: \"type\" in it is no text".to_owned(),
        None if has(&KEYWORDS) => return None,
        None => {
            let names: Vec<&str> = members.keys().take(5).map(String::as_str).collect();
            format!(
                "no JSON schema: no word of one is in it, but {}",
                names.join(", ")
            )
        }
    };
    Some(format!(
        "pi.registerTool: parameters of \"{tool}\" are {what}. Write {{ type: \"object\", \
         properties: {{ … }} }}, or Type.Object({{ … }}) from @sinclair/typebox"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_schemas_are_reported() {
        for (parameters, words) in [
            (
                json!({"name": "string"}),
                "no word of one is in it, but name.",
            ),
            (
                json!({"type": {"type": "string"}}),
                "\"type\" in it is no text",
            ),
            (json!({"type": "string"}), "of the type \"string\""),
            (json!({"_def": {}, "type": "string"}), "of another library"),
            (json!({"~standard": {}}), "of another library"),
        ] {
            let warning = schema_problem("t", &parameters).unwrap();
            assert!(warning.contains(words), "{warning}");
        }
        for parameters in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": ["object", "null"]}),
            json!({"anyOf": []}),
            json!({"properties": {"name": {"type": "string"}}}),
        ] {
            assert_eq!(schema_problem("t", &parameters), None, "{parameters}");
        }
    }
}
