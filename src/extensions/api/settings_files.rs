//! Reads and changes settings files for `SettingsManager` of pi's package.

use std::path::PathBuf;

use js_runtime::HostError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::bridge::{BridgeResult, parse};
use pi_resources::settings::{self, Change, SettingsError};

#[derive(Deserialize)]
struct ParseArgs {
    text: String,
}

#[derive(Deserialize)]
struct FileArgs {
    path: PathBuf,
    #[serde(default)]
    changes: Vec<ChangeArgs>,
}

#[derive(Deserialize)]
struct ChangeArgs {
    key: String,
    #[serde(default)]
    nested: Option<String>,
    #[serde(default)]
    value: Option<Value>,
}

fn settings_or_error(found: Result<Map<String, Value>, SettingsError>) -> Value {
    match found {
        Ok(settings) => json!({ "settings": settings }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

fn change_settings(args: &FileArgs) -> BridgeResult {
    let changes: Vec<Change<'_>> = args
        .changes
        .iter()
        .map(|change| Change {
            key: &change.key,
            nested: change.nested.as_deref(),
            value: change.value.clone(),
        })
        .collect();
    settings::change_file(&args.path, &changes)
        .map(|()| Value::Null)
        .map_err(|error| HostError::new(error.to_string()))
}

/// Serves `settings.*`; `None` for other methods.
pub fn serve(method: &str, args: &str) -> Option<BridgeResult> {
    Some(match method {
        "settings.load" => parse::<FileArgs>(method, args)
            .map(|args| settings_or_error(settings::load_file(&args.path))),
        "settings.parse" => parse::<ParseArgs>(method, args)
            .map(|args| settings_or_error(settings::parse_text(&args.text))),
        "settings.change" => {
            parse::<FileArgs>(method, args).and_then(|args| change_settings(&args))
        }
        _ => return None,
    })
}
