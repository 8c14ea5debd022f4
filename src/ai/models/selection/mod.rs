//! Selects the model with which a session starts: from flags, the scope, the session, the
//! settings and the available keys, in this order.

use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};

use super::builtin::{self, PROVIDERS};
use super::registry::ModelRegistry;
use crate::demo;
use crate::model::{Model, ThinkingLevel};
use pattern::{BadLevel, is_exactly, resolve};

mod pattern;

/// A model selected by flags.
#[derive(Clone, Debug, PartialEq)]
pub struct CliModel {
    pub model: Arc<Model>,
    /// Level from `model:level`.
    pub thinking: Option<ThinkingLevel>,
    pub warning: Option<String>,
}

/// One of the models to cycle through.
#[derive(Clone, Debug, PartialEq)]
pub struct ScopedModel {
    pub model: Arc<Model>,
    /// `None` keeps the session's level.
    pub thinking: Option<ThinkingLevel>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    pub models: Vec<ScopedModel>,
    /// Warnings about patterns without a match, and about invalid levels.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    #[error("Unknown provider \"{0}\". Use --list-models to see available providers/models.")]
    UnknownProvider(String),
    #[error("Model \"{0}\" not found. Use --list-models to see available models.")]
    NotFound(String),
}

/// Resolves `--provider` and `--model`. Searches all models, because the key may come with
/// `--api-key`.
pub fn cli_model(
    registry: &ModelRegistry,
    provider: Option<&str>,
    model: &str,
) -> Result<CliModel, SelectError> {
    let providers = registry.providers();
    let known = |name: &str| {
        let same = |id: &&String| id.to_lowercase() == name.to_lowercase();
        providers.iter().find(same).map(String::as_str)
    };
    let (provider, pattern, inferred) = match provider {
        Some(name) => {
            let unknown = || SelectError::UnknownProvider(name.to_owned());
            let provider = known(name).ok_or_else(unknown)?;
            (Some(provider), without_provider(model, provider), false)
        }
        None => match model.split_once('/') {
            // A slash separates a provider from the model, but ids may also contain one.
            Some((name, rest)) if known(name).is_some() => (known(name), rest, true),
            _ => (None, model, false),
        },
    };
    let Some(provider) = provider else {
        let all = registry.all();
        let exact = all.iter().find(|candidate| is_exactly(candidate, model));
        return match exact {
            Some(model) => Ok(CliModel::plain(model)),
            None => fuzzy(model, &all).ok_or_else(|| SelectError::NotFound(model.to_owned())),
        };
    };

    let candidates = registry.models_of(provider);
    if let Some(found) = fuzzy(pattern, &candidates) {
        return Ok(found);
    }
    if inferred {
        // `openai/gpt-4o:extended` is an id of another provider.
        let all = registry.all();
        let exact = all.iter().find(|candidate| is_exactly(candidate, model));
        if let Some(model) = exact {
            return Ok(CliModel::plain(model));
        }
        if let Some(found) = fuzzy(model, &all) {
            return Ok(found);
        }
    }
    custom_id(provider, pattern, &candidates)
        .ok_or_else(|| SelectError::NotFound(format!("{provider}/{pattern}")))
}

/// Returns the provider's default model, or its first. (The TypeScript pi ignores a provider
/// without a model and uses another provider.)
pub fn provider_model(registry: &ModelRegistry, name: &str) -> Result<CliModel, SelectError> {
    let mut providers = registry.providers().into_iter();
    let unknown = || SelectError::UnknownProvider(name.to_owned());
    let provider = providers
        .find(|id| id.eq_ignore_ascii_case(name))
        .ok_or_else(unknown)?;
    let models = registry.models_of(&provider);
    let usual = builtin::provider(&provider).map(|provider| provider.default_model);
    let model = models
        .iter()
        .find(|model| Some(model.id.as_str()) == usual)
        .or(models.first())
        .ok_or_else(|| SelectError::NotFound(format!("{provider}/*")))?;
    Ok(CliModel::plain(model))
}

impl CliModel {
    fn plain(model: &Arc<Model>) -> Self {
        Self {
            model: Arc::clone(model),
            thinking: None,
            warning: None,
        }
    }
}

/// Finds a model and is strict about levels: a wrong suffix must not select another model.
fn fuzzy(pattern: &str, models: &[Arc<Model>]) -> Option<CliModel> {
    let found = resolve(pattern, models, BadLevel::Refuse)?;
    Some(CliModel {
        model: found.model,
        thinking: found.thinking,
        warning: found.warning,
    })
}

/// Removes the provider: `--provider p --model p/x` means `x`.
fn without_provider<'a>(model: &'a str, provider: &str) -> &'a str {
    match model.split_once('/') {
        Some((name, rest)) if name.to_lowercase() == provider.to_lowercase() => rest,
        _ => model,
    }
}

/// Returns a model for an id that is newer than the catalogue: the provider's default model with
/// that id.
fn custom_id(provider: &str, id: &str, models: &[Arc<Model>]) -> Option<CliModel> {
    let default = builtin::provider(provider).map(|provider| provider.default_model);
    let is_default = |model: &&Arc<Model>| Some(model.id.as_str()) == default;
    let base = models.iter().find(is_default).or(models.first())?;
    if demo::is_demo(base) {
        return None; // there is one, and no newer one
    }
    let model = Model {
        id: id.to_owned(),
        name: id.to_owned(),
        ..Model::clone(base)
    };
    Some(CliModel {
        model: Arc::new(model),
        thinking: None,
        warning: Some(format!(
            "Model \"{id}\" not found for provider \"{provider}\". Using custom model id."
        )),
    })
}

/// Resolves `--models` or the setting `enabledModels`. Only models with a key count.
pub fn scope(registry: &ModelRegistry, patterns: &[String]) -> Scope {
    let mut scope = Scope::default();
    if patterns.is_empty() {
        return scope;
    }
    let available = registry.available();
    // The demo can be selected by its name; a glob does not match it.
    let mut nameable = available.clone();
    let of_demo = registry.models_of(demo::PROVIDER);
    let demos = of_demo.iter().filter(|model| demo::is_demo(model));
    nameable.extend(demos.cloned());

    for pattern in patterns {
        let mut matched = false;
        let mut add = |model: &Arc<Model>, thinking| {
            matched = true;
            if !scope.models.iter().any(|known| known.model == *model) {
                let model = Arc::clone(model);
                scope.models.push(ScopedModel { model, thinking });
            }
        };
        if pattern.contains(['*', '?', '[']) {
            let (glob, thinking) = split_level(pattern);
            if let Some(glob) = glob_matcher(glob) {
                let matches = |model: &&Arc<Model>| {
                    glob.is_match(model.reference()) || glob.is_match(&model.id)
                };
                let found = available.iter().filter(matches);
                found.for_each(|model| add(model, thinking));
            }
        } else if let Some(found) = resolve(pattern, &nameable, BadLevel::Ignore) {
            add(&found.model, found.thinking);
            scope.warnings.extend(found.warning);
        }
        if !matched {
            let warning = format!("No models match pattern \"{pattern}\"");
            scope.warnings.push(warning);
        }
    }
    scope
}

fn split_level(pattern: &str) -> (&str, Option<ThinkingLevel>) {
    let split = pattern.rsplit_once(':');
    match split.map(|(glob, suffix)| (glob, ThinkingLevel::parse(suffix))) {
        Some((glob, Some(level))) => (glob, Some(level)),
        _ => (pattern, None),
    }
}

/// Compiles a glob: `*` stops at a slash, and case is ignored. Returns `None` if the text is no
/// glob.
fn glob_matcher(glob: &str) -> Option<GlobMatcher> {
    let mut builder = GlobBuilder::new(glob);
    builder.case_insensitive(true).literal_separator(true);
    Some(builder.build().ok()?.compile_matcher())
}

/// The model and level of a session that is resumed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionChoice {
    /// Provider and id of the model.
    pub model: Option<(String, String)>,
    /// Level of the last `thinking_level_change`.
    pub thinking: Option<ThinkingLevel>,
}

/// All inputs of the selection.
#[derive(Clone, Debug, Default)]
pub struct StartOptions<'a> {
    pub cli: Option<&'a CliModel>,
    /// Value of `--thinking`.
    pub cli_thinking: Option<ThinkingLevel>,
    pub scope: &'a [ScopedModel],
    /// `None` for a session without messages.
    pub session: Option<&'a SessionChoice>,
    /// Settings `defaultProvider` and `defaultModel`.
    pub default_model: Option<(&'a str, &'a str)>,
    /// Setting `defaultThinkingLevel`.
    pub default_thinking: Option<ThinkingLevel>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StartModel {
    pub model: Option<Arc<Model>>,
    /// A level that the model offers.
    pub thinking: ThinkingLevel,
    /// Message for the user if the session's model is not used.
    pub fallback: Option<String>,
}

pub fn start_model(registry: &ModelRegistry, options: &StartOptions<'_>) -> StartModel {
    let scoped = match (options.cli, options.session) {
        (None, None) => scoped_start(registry, options),
        _ => None,
    };
    let mut fallback = None;
    let mut model = match (options.cli, scoped) {
        (Some(cli), _) => Some(Arc::clone(&cli.model)),
        (None, Some(scoped)) => Some(Arc::clone(&scoped.model)),
        (None, None) => None,
    };
    if model.is_none()
        && let Some((provider, id)) = options.session.and_then(|session| session.model.as_ref())
    {
        model = registry
            .find(provider, id)
            .filter(|_| registry.has_auth(provider));
        if model.is_none() {
            fallback = Some(format!("Could not restore model {provider}/{id}"));
        }
    }
    if model.is_none() {
        model = default_start(registry, options);
        fallback = match (&model, fallback) {
            (_, None) => None,
            (None, text) => text,
            (Some(model), Some(text)) => Some(format!("{text}. Using {}", model.reference())),
        };
    }
    let thinking = (options.cli_thinking)
        .or_else(|| options.cli?.thinking)
        .or_else(|| scoped?.thinking)
        .or_else(|| options.session?.thinking)
        .or(options.default_thinking)
        .unwrap_or_default();
    StartModel {
        thinking: match &model {
            Some(model) => model.clamp_thinking(thinking),
            None => ThinkingLevel::Off,
        },
        model,
        fallback,
    }
}

/// Returns the saved default if it is in the scope, else the first model of the scope.
fn scoped_start<'a>(
    registry: &ModelRegistry,
    options: &StartOptions<'a>,
) -> Option<&'a ScopedModel> {
    let saved = options.default_model;
    let saved = saved.and_then(|(provider, id)| registry.find(provider, id));
    let in_scope = |scoped: &&ScopedModel| Some(&scoped.model) == saved.as_ref();
    let scope = options.scope;
    scope.iter().find(in_scope).or(scope.first())
}

/// Returns the model of the settings, with or without a key; else the default of the first
/// provider with a key; else the first model with a key.
fn default_start(registry: &ModelRegistry, options: &StartOptions<'_>) -> Option<Arc<Model>> {
    if let Some((provider, id)) = options.default_model
        && let Some(model) = registry.find(provider, id)
    {
        return Some(model);
    }
    let with_key = |provider: &&builtin::Provider| registry.has_auth(provider.id);
    let mut defaults = (PROVIDERS.iter().filter(with_key))
        .filter_map(|provider| registry.find(provider.id, provider.default_model));
    let first_default = defaults.next();
    first_default.or_else(|| registry.available().into_iter().next())
}

#[cfg(test)]
mod tests;
