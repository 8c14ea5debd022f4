//! The shape of values, whichever key they are for.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// serde takes a list for the members of a struct, in the order in which they stand in it.
pub(super) fn object<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<T, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Array(_) => Err(D::Error::custom("expected an object, not a list")),
        value => T::deserialize(value).map_err(D::Error::custom),
    }
}

/// The same of objects by name.
pub(super) fn objects<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let all: BTreeMap<String, Value> = object(deserializer)?;
    let all = all.into_iter();
    all.map(|(name, value)| Ok((name, object(value).map_err(D::Error::custom)?)))
        .collect()
}

/// JavaScript's view of a value: `null` is as good as absent, and 3.0
/// is a whole number.
pub(super) fn tidy(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(object) => {
            let entries = object.iter();
            let kept = entries.filter_map(|(key, value)| Some((key.clone(), tidy(value)?)));
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
