//! Deserializers for the shape of values of any key.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Deserializes an object. serde alone would also accept a list of the members in order.
pub(super) fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Array(_) => Err(D::Error::custom("expected an object, not a list")),
        value => T::deserialize(value).map_err(D::Error::custom),
    }
}

/// Deserializes a map of objects by name.
pub(super) fn objects<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let all: BTreeMap<String, Value> = object(deserializer)?;
    let all = all.into_iter();
    all.map(|(name, value)| Ok((name, object(value).map_err(D::Error::custom)?)))
        .collect()
}

/// Returns a value as JavaScript sees it: `null` counts as absent, and 3.0 as a whole number.
pub(super) fn to_javascript_form(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(object) => {
            let entries = object.iter();
            let kept =
                entries.filter_map(|(key, value)| Some((key.clone(), to_javascript_form(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Number(number) => Some(match number.as_f64() {
            Some(float)
                if number.is_f64() && float.fract() == 0.0 && float.abs() < 2f64.powi(53) =>
            {
                Value::from(float as i64)
            }
            _ => value.clone(),
        }),
        other => Some(other.clone()),
    }
}
