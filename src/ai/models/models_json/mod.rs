//! Reads `models.json`: the user's own providers and models, and changes of built-in ones. An
//! error in one provider drops that provider and no other one, and is reported.

use pi_base::regular_file;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use jsonc_parser::{CollectOptions, ParseOptions, ParseResult, parse_to_ast};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::builtin;
use super::thinking_levels::LevelNames;
use crate::json::lenient;
use crate::model::{CostTier, Modality};

mod merge;
mod report;

/// The checked content of the file. A missing file is treated as empty.
#[derive(Clone, Debug, Default)]
pub struct ModelsJson {
    pub providers: IndexMap<String, ProviderConfig>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderConfig {
    /// Display name, from newer versions.
    pub name: Option<String>,
    pub base_url: Option<String>,
    /// API key, in the format of header values: see [`crate::auth::secret_value`].
    pub api_key: Option<String>,
    pub api: Option<String>,
    pub headers: IndexMap<String, String>,
    /// Sends the key as `Authorization: Bearer`, too.
    pub auth_header: bool,
    pub compat: Option<Value>,
    pub models: Vec<ModelConfig>,
    /// Changes of built-in models, by their id.
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
    /// A float, because JavaScript has only one type of number and users write `1e6`.
    pub context_window: Option<f64>,
    pub max_tokens: Option<f64>,
    pub headers: IndexMap<String, String>,
    #[serde(deserialize_with = "lenient::level_names")]
    pub thinking_level_map: Option<LevelNames>,
    pub sampling_params: Option<Map<String, Value>>,
    pub sampling_params_by_thinking_level: Option<IndexMap<String, Map<String, Value>>>,
    pub compat: Option<Value>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Prices {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    pub tiers: Option<Vec<CostTier>>,
}

/// Leaves out the key, the headers and the URL, which may hold secrets.
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

/// Reads the file. Returns its valid part, and the errors of the rest.
pub fn load(path: &Path) -> (ModelsJson, Option<ModelsJsonError>) {
    match read(path) {
        Ok(found) => found,
        Err(error) => (ModelsJson::default(), Some(error)),
    }
}

fn read(path: &Path) -> Result<(ModelsJson, Option<ModelsJsonError>), ModelsJsonError> {
    let text = match regular_file::read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => {
            return Err(ModelsJsonError::Read {
                path: path.to_owned(),
                error,
            });
        }
    };
    let value = parse(&text).map_err(|message| ModelsJsonError::Syntax {
        path: path.to_owned(),
        message,
    })?;
    let schema = report::Schema::new();
    let shape = |problems: Vec<String>| ModelsJsonError::Schema {
        path: path.to_owned(),
        problems: problems.join("\n"),
    };
    let Some(entries) = value.get("providers").and_then(Value::as_object) else {
        return Err(shape(schema.problems(&value)));
    };
    let (mut misshapen, mut against_rules) = (Vec::new(), Vec::new());
    let mut config = ModelsJson::default();
    for (name, entry) in entries {
        let problems = schema.problems(&json!({ "providers": { name: entry } }));
        if !problems.is_empty() {
            misshapen.extend(problems);
            continue;
        }
        // A value that the schema accepts fits the types. The message of serde could show a key.
        let Ok(provider) = ProviderConfig::deserialize(entry) else {
            misshapen.push(format!(
                "  - provider \"{name}\": a value has an unexpected type"
            ));
            continue;
        };
        match check(name, &provider) {
            Ok(()) => _ = config.providers.insert(name.clone(), provider),
            Err(problem) => against_rules.push(problem),
        }
    }
    let rules = |problems: Vec<String>| ModelsJsonError::Rule {
        path: path.to_owned(),
        message: problems.join("\n"),
    };
    let error = match (misshapen.is_empty(), against_rules.is_empty()) {
        (true, true) => None,
        (true, false) => Some(rules(against_rules)),
        (false, _) => {
            let rules = against_rules.iter().map(|problem| format!("  - {problem}"));
            Some(shape(misshapen.into_iter().chain(rules).collect()))
        }
    };
    Ok((config, error))
}

/// Parses JSON with comments and trailing commas.
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

/// Checks rules that the schema cannot express.
fn check(name: &str, provider: &ProviderConfig) -> Result<(), String> {
    let built_in = builtin::provider(name).is_some();
    if provider.says_nothing() {
        return Err(format!(
            "Provider {name}: must specify \"baseUrl\", \"compat\", \"modelOverrides\", or \"models\"."
        ));
    }
    // The key may be in auth.json or in the environment.
    if !provider.models.is_empty() && !built_in && provider.base_url.is_none() {
        return Err(format!(
            "Provider {name}: \"baseUrl\" is required when defining custom models."
        ));
    }
    for model in &provider.models {
        if !built_in && provider.api.is_none() && model.api.is_none() {
            return Err(format!(
                "Provider {name}, model {}: no \"api\" specified. Set at provider or model level.",
                model.id
            ));
        }
    }
    Ok(())
}

impl ProviderConfig {
    fn says_nothing(&self) -> bool {
        let Self {
            name,
            base_url,
            api_key,
            api: _,
            headers,
            auth_header,
            compat,
            models,
            model_overrides,
        } = self;
        let texts = [name, base_url, api_key];
        let nothing = headers.is_empty() && models.is_empty() && model_overrides.is_empty();
        nothing && !auth_header && compat.is_none() && texts.iter().all(|text| text.is_none())
    }

    /// Returns the configured headers of one model.
    pub fn model_headers(&self, id: &str) -> Option<&IndexMap<String, String>> {
        let own = self.models.iter().rev().find(|model| model.id == id);
        let own = own.map(|model| &model.facts);
        let facts = own.or_else(|| self.model_overrides.get(id))?;
        Some(&facts.headers)
    }
}

#[cfg(test)]
mod tests;
