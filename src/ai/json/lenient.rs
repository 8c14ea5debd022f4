//! Functions for `#[serde(deserialize_with)]` that read data written by hand in JavaScript:
//! numbers may be texts, and `null` counts as absent.

use indexmap::IndexMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::model::{Modality, ModelCost};
use crate::models::thinking_levels::LevelNames;

/// Reads `null` as the default.
pub fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Converts a value to text like JavaScript.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(in_text(&Value::deserialize(deserializer)?).unwrap_or_default())
}

/// Reads a number; any value that is no number becomes `None`.
pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(as_number(&Value::deserialize(deserializer)?))
}

/// Reads a condition by JavaScript's rules of truth.
pub fn bool_from_truthy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => false,
        Value::Bool(truth) => truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    })
}

/// Reads the known modalities and ignores others, which a server's listing may have.
pub fn modalities<'de, D>(deserializer: D) -> Result<Option<Vec<Modality>>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw: Option<Vec<Value>> = Option::deserialize(deserializer)?;
    Ok(raw.map(|raw| raw.into_iter().filter_map(known).collect()))
}

pub fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ModelCost, D::Error> {
    let raw = Value::deserialize(deserializer)?;
    let price = |member: &str| as_number(&raw[member]).unwrap_or_default();
    Ok(ModelCost {
        input: price("input"),
        output: price("output"),
        cache_read: price("cacheRead"),
        cache_write: price("cacheWrite"),
        tiers: known(raw["tiers"].clone()).unwrap_or_default(),
    })
}

/// Reads names and values; a name without a value is left out.
pub fn headers<'de, D>(deserializer: D) -> Result<Option<IndexMap<String, String>>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw: Option<IndexMap<String, Value>> = Option::deserialize(deserializer)?;
    let all = raw.map(|raw| {
        let named = raw.into_iter();
        let named = named.filter_map(|(name, value)| Some((name, in_text(&value)?)));
        named.collect()
    });
    Ok(all)
}

/// Reads names of levels; values other than a text or `null` are left out.
pub fn level_names<'de, D>(deserializer: D) -> Result<Option<LevelNames>, D::Error>
where
    D: Deserializer<'de>,
{
    let raw: Option<IndexMap<String, Value>> = Option::deserialize(deserializer)?;
    Ok(raw.map(|raw| {
        let named = raw.into_iter();
        let named = named.filter_map(|(level, name)| Some((level, known(name)?)));
        named.collect()
    }))
}

/// Reads a `T`; returns `None` if the value is none.
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
