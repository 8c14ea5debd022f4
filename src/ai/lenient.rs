//! Data that people write by hand in JavaScript: a number may be text, and what is
//! `null` or left out says nothing. For `#[serde(deserialize_with)]`.

use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::levels::LevelNames;
use super::model::{Modality, ModelCost};

/// `null` is the default.
pub fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// As JavaScript makes text of it.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(in_text(&Value::deserialize(deserializer)?).unwrap_or_default())
}

/// What is no number is none.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(as_number(&Value::deserialize(deserializer)?))
}

/// As JavaScript takes it for a condition.
pub fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => false,
        Value::Bool(truth) => truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    })
}

/// Those that are known here: a server's listing may name others.
pub fn modalities<'de, D>(deserializer: D) -> Result<Option<Vec<Modality>>, D::Error>
where
    D: Deserializer<'de>,
{
    let given: Option<Vec<Value>> = Option::deserialize(deserializer)?;
    Ok(given.map(|given| given.into_iter().filter_map(known).collect()))
}

pub fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelCost, D::Error> {
    let given = Value::deserialize(deserializer)?;
    let of = |member: &str| as_number(&given[member]).unwrap_or_default();
    Ok(ModelCost {
        input: of("input"),
        output: of("output"),
        cache_read: of("cacheRead"),
        cache_write: of("cacheWrite"),
        tiers: known(given["tiers"].clone()).unwrap_or_default(),
    })
}

/// Names and values; one without a value is left out.
pub fn headers<'de, D>(deserializer: D) -> Result<Option<IndexMap<String, String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let given: Option<IndexMap<String, Value>> = Option::deserialize(deserializer)?;
    let all = given.map(|given| {
        let named = given.into_iter();
        let named = named.filter_map(|(name, value)| Some((name, in_text(&value)?)));
        named.collect()
    });
    Ok(all)
}

/// What is neither a name nor `null` says nothing.
pub fn level_names<'de, D>(deserializer: D) -> Result<Option<LevelNames>, D::Error>
where
    D: Deserializer<'de>,
{
    let given: Option<IndexMap<String, Value>> = Option::deserialize(deserializer)?;
    Ok(given.map(|given| {
        let named = given.into_iter();
        let named = named.filter_map(|(level, name)| Some((level, known(name)?)));
        named.collect()
    }))
}

/// `T`, if it is one.
pub fn known<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

fn in_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    }
}
