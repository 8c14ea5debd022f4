//! Arguments of a call, as a tool wants them. They were validated, but handlers
//! of extensions may have changed them since.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::tool::ToolError;

pub(crate) fn parse<T: DeserializeOwned>(tool: &str, args: Value) -> Result<T, ToolError> {
    serde_json::from_value(args)
        .map_err(|error| ToolError::new(format!("Invalid arguments for tool \"{tool}\": {error}")))
}

/// `null` is how some models leave something out; validation would make a 0 of
/// it where a number is wanted.
pub(crate) fn without_nulls(mut args: Value) -> Value {
    if let Value::Object(fields) = &mut args {
        fields.retain(|_, value| !value.is_null());
    }
    args
}

/// `2`, not `2.0`: as the model wrote it.
pub(crate) fn number(value: f64) -> String {
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let result: Result<Vec<String>, _> = parse("read", serde_json::json!({"a": 1}));
        assert_eq!(
            result.unwrap_err().0,
            "Invalid arguments for tool \"read\": invalid type: map, expected a sequence"
        );
    }

    #[test]
    fn nulls_are_left_out() {
        let args = serde_json::json!({"a": null, "b": {"c": null}});
        let left = serde_json::json!({"b": {"c": null}});
        assert_eq!(without_nulls(args), left);
    }

    #[test]
    fn numbers_as_written() {
        assert_eq!([2.0, 0.5, -3.0].map(number), ["2", "0.5", "-3"]);
    }
}
