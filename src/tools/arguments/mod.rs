//! Deserialises the arguments of a call. They were validated, but handlers of extensions may have
//! changed them since.

mod coerce;
pub mod validate;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tool::ToolError;
use pi_ai::stream::ToolSpec;

pub(crate) fn parse<T: DeserializeOwned>(tool: &str, args: Value) -> Result<T, ToolError> {
    serde_json::from_value(args)
        .map_err(|error| ToolError::new(format!("Invalid arguments for tool \"{tool}\": {error}")))
}

/// Removes optional members that are `null`: some models write them for absent ones, and
/// validation would turn them into 0 for a number.
pub(crate) fn without_nulls(mut args: Value, spec: &ToolSpec) -> Value {
    if let Value::Object(fields) = &mut args {
        let required = spec.parameters["required"].as_array();
        let needed = |name: &String| required.is_some_and(|all| all.iter().any(|one| one == name));
        fields.retain(|name, value| !value.is_null() || needed(name));
    }
    args
}

/// Formats a number as the model wrote it: `2`, not `2.0`.
pub(crate) fn number(value: f64) -> String {
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_member() {
        let result: Result<Vec<String>, _> = parse("read", serde_json::json!({"a": 1}));
        assert_eq!(
            result.unwrap_err().0,
            "Invalid arguments for tool \"read\": invalid type: map, expected a sequence"
        );
    }

    #[test]
    fn nulls_are_left_out() {
        let spec = ToolSpec {
            name: "x".to_owned(),
            description: String::new(),
            parameters: serde_json::json!({"required": ["r"]}),
        };
        let args = serde_json::json!({"a": null, "b": {"c": null}, "r": null});
        let left = serde_json::json!({"b": {"c": null}, "r": null});
        assert_eq!(without_nulls(args, &spec), left);
    }

    #[test]
    fn numbers_as_written() {
        assert_eq!([2.0, 0.5, -3.0].map(number), ["2", "0.5", "-3"]);
    }
}
