//! Describes errors of a `models.json` in the user's terms (provider, model, field), without
//! showing values, which may be keys.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

pub(super) struct Schema(Validator);

impl Schema {
    pub fn new() -> Self {
        let schema = serde_json::from_str(include_str!("schema.json"))
            .expect("the schema is part of the program and every test of this module parses it");
        let validator =
            jsonschema::validator_for(&schema).expect("the schema is valid, which the tests show");
        Self(validator)
    }

    /// Returns one line for each error; none if the file is valid.
    pub fn problems(&self, file: &Value) -> Vec<String> {
        let errors = self.0.iter_errors(file);
        errors
            .map(|error| format!("  - {}: {}", member_of(&error, file), message(&error)))
            .collect()
    }
}

fn message(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("{property} is missing")
        }
        ValidationErrorKind::MinLength { .. } => "must not be empty".to_owned(),
        ValidationErrorKind::ExclusiveMinimum { .. } => "must be greater than 0".to_owned(),
        _ => error.masked_with("the value").to_string(),
    }
}

/// Converts `/providers/p/models/0/cost/input` to `provider "p", model "m", field "cost.input"`.
fn member_of(error: &ValidationError<'_>, file: &Value) -> String {
    let pointer = error.instance_path().as_str();
    let names: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|name| name.replace("~1", "/").replace("~0", "~"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut parts = Vec::new();
    let field = match names.as_slice() {
        ["providers", provider, rest @ ..] => {
            parts.push(format!("provider \"{provider}\""));
            match rest {
                ["models", index, rest @ ..] => {
                    let index: usize = index.parse().unwrap_or_default();
                    let model = &file["providers"][provider]["models"][index];
                    parts.push(match model["id"].as_str() {
                        Some(id) => format!("model \"{id}\""),
                        None => format!("model number {}", index + 1),
                    });
                    rest
                }
                ["modelOverrides", model, rest @ ..] => {
                    parts.push(format!("override of model \"{model}\""));
                    rest
                }
                rest => rest,
            }
        }
        rest => rest,
    };
    if !field.is_empty() {
        parts.push(format!("field \"{}\"", field.join(".")));
    }
    if parts.is_empty() {
        parts.push("the file".to_owned());
    }
    parts.join(", ")
}
