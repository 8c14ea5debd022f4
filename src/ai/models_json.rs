//! `models.json`: the user's own providers and models, and changes to the
//! built-in ones. All or nothing: with half of a configuration in force nobody
//! would notice the other half's error.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use jsonc_parser::{CollectOptions, ParseOptions, ParseResult, parse_to_ast};
use serde::Deserialize;
use serde_json::Value;

use super::catalogue;
use super::lenient;
use super::levels::LevelNames;
use super::model::Modality;

mod merge;
mod report;

/// The file, checked. A missing one is an empty one.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ModelsJson {
    pub providers: IndexMap<String, ProviderConfig>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderConfig {
    pub base_url: Option<String>,
    /// Like the headers' values: see [`super::secret_value`].
    pub api_key: Option<String>,
    pub api: Option<String>,
    pub headers: IndexMap<String, String>,
    /// Send the key as `Authorization: Bearer` too.
    pub auth_header: bool,
    pub compat: Option<Value>,
    pub models: Vec<ModelConfig>,
    /// By the id of a built-in model.
    pub model_overrides: IndexMap<String, ModelOverride>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelConfig {
    pub id: String,
    pub api: Option<String>,
    pub base_url: Option<String>,
    #[serde(flatten)]
    pub facts: ModelOverride,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelOverride {
    pub name: Option<String>,
    pub reasoning: Option<bool>,
    pub input: Option<Vec<Modality>>,
    pub cost: Option<Prices>,
    /// JavaScript has one kind of number; `1e6` is one.
    pub context_window: Option<f64>,
    pub max_tokens: Option<f64>,
    pub headers: IndexMap<String, String>,
    #[serde(deserialize_with = "lenient::level_names")]
    pub thinking_level_map: Option<LevelNames>,
    pub compat: Option<Value>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Prices {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}

/// Keys may stand in the key, the headers and the URL.
impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models: Vec<&str> = self.models.iter().map(|model| model.id.as_str()).collect();
        f.debug_struct("ProviderConfig")
            .field("api", &self.api)
            .field("models", &models)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ModelsJsonError {
    #[error("Failed to load models.json: {error}\n\nFile: {path}")]
    Read { path: PathBuf, error: io::Error },
    #[error("Failed to parse models.json: {message}\n\nFile: {path}")]
    Syntax { path: PathBuf, message: String },
    #[error("Invalid models.json schema:\n{problems}\n\nFile: {path}")]
    Schema { path: PathBuf, problems: String },
    #[error("Failed to load models.json: {message}\n\nFile: {path}")]
    Rule { path: PathBuf, message: String },
}

pub fn load(path: &Path) -> Result<ModelsJson, ModelsJsonError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(ModelsJson::default()),
        Err(error) => {
            return Err(ModelsJsonError::Read {
                path: path.to_owned(),
                error,
            });
        }
    };
    let syntax = |message: String| ModelsJsonError::Syntax {
        path: path.to_owned(),
        message,
    };
    let value = parse(&text).map_err(syntax)?;
    if let Some(problems) = report::problems(&value) {
        return Err(ModelsJsonError::Schema {
            path: path.to_owned(),
            problems,
        });
    }
    // What the schema lets through fits the types; serde's own message might
    // show a key.
    let config: ModelsJson = serde_json::from_value(value)
        .map_err(|_| syntax("a value has an unexpected type".to_owned()))?;
    check(&config).map_err(|message| ModelsJsonError::Rule {
        path: path.to_owned(),
        message,
    })?;
    Ok(config)
}

/// JSON with comments and trailing commas, as people write such files by hand.
fn parse(text: &str) -> Result<Value, String> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match parse_to_ast(text, &CollectOptions::default(), &options) {
        // The syntax tree keeps the order of the providers.
        Ok(ParseResult {
            value: Some(value), ..
        }) => Ok(value.into()),
        Ok(_) => Err("the file is empty; at least {\"providers\": {}} is needed".to_owned()),
        Err(error) => Err(format!(
            "{} (line {}, column {})",
            error.kind(),
            error.line_display(),
            error.column_display()
        )),
    }
}

/// What a schema cannot say.
fn check(config: &ModelsJson) -> Result<(), String> {
    for (name, provider) in &config.providers {
        let built_in = catalogue::provider(name).is_some();
        if provider.models.is_empty() {
            if provider.base_url.is_none()
                && provider.compat.is_none()
                && provider.model_overrides.is_empty()
            {
                return Err(format!(
                    "Provider {name}: must specify \"baseUrl\", \"compat\", \"modelOverrides\", or \"models\"."
                ));
            }
        } else if !built_in {
            let missing = match (&provider.base_url, &provider.api_key) {
                (None, _) => Some("baseUrl"),
                (_, None) => Some("apiKey"),
                _ => None,
            };
            if let Some(field) = missing {
                return Err(format!(
                    "Provider {name}: \"{field}\" is required when defining custom models."
                ));
            }
        }
        for model in &provider.models {
            if !built_in && provider.api.is_none() && model.api.is_none() {
                return Err(format!(
                    "Provider {name}, model {}: no \"api\" specified. Set at provider or model level.",
                    model.id
                ));
            }
        }
    }
    Ok(())
}

impl ProviderConfig {
    /// The headers configured for one model.
    pub fn model_headers(&self, id: &str) -> Option<&IndexMap<String, String>> {
        let own = self.models.iter().rev().find(|model| model.id == id);
        let own = own.map(|model| &model.facts);
        let facts = own.or_else(|| self.model_overrides.get(id))?;
        Some(&facts.headers)
    }
}

#[cfg(test)]
mod tests;
