//! All models the program can name, built-in and the user's own, and what it
//! takes to use them. One registry is shared by everybody who asks.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::RwLock;

use super::auth::{AuthEntry, AuthStore};
use super::catalogue::{self, PROVIDERS};
use super::demo;
use super::model::Model;
use super::models_json::{self, ModelsJson, ProviderConfig};
use super::secret_value::{Env, SecretError, SecretValues};

pub struct ModelRegistry {
    models_json: PathBuf,
    env: Env,
    auth: AuthStore,
    secrets: SecretValues,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    config: Arc<ModelsJson>,
    error: Option<String>,
    /// The models of the providers that were asked for so far.
    models: HashMap<String, Arc<[Arc<Model>]>>,
}

/// What a request needs besides the model.
#[derive(Clone, Default, PartialEq)]
pub struct Credentials {
    /// `None` only where none is needed.
    pub api_key: Option<String>,
    pub headers: IndexMap<String, String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        f.debug_struct("Credentials")
            .field("api_key", &self.api_key.as_ref().map(|_| ".."))
            .field("headers", &headers)
            .finish()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    #[error("No API key found for {provider}.\n\n{advice}")]
    NoKey { provider: String, advice: String },
    #[error(
        "Authentication failed for \"{provider}\". Its sign-in has expired, and this version of pi cannot refresh it. Sign in again where you did before, or remove it from {path} and use an API key.\n\n{advice}"
    )]
    Expired {
        provider: String,
        path: String,
        advice: String,
    },
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl fmt::Debug for ModelRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRegistry")
            .field("models_json", &self.models_json)
            .finish_non_exhaustive()
    }
}

impl ModelRegistry {
    /// Reads the user's files; built-in models are parsed when asked for.
    pub fn load(agent_dir: &Path) -> Self {
        Self::load_with(agent_dir, Env::process())
    }

    pub fn load_with(agent_dir: &Path, env: Env) -> Self {
        let registry = Self {
            models_json: agent_dir.join("models.json"),
            auth: AuthStore::open(agent_dir.join("auth.json")),
            secrets: SecretValues::new(env.clone()),
            env,
            state: RwLock::default(),
        };
        registry.read_models_json();
        registry
    }

    /// Reads the user's files again. Runtime keys stay.
    pub fn reload(&self) {
        self.auth.reload();
        self.read_models_json();
    }

    fn read_models_json(&self) {
        let state = match models_json::load(&self.models_json) {
            Ok(config) => State {
                config: Arc::new(config),
                ..State::default()
            },
            Err(error) => State {
                error: Some(error.to_string()),
                ..State::default()
            },
        };
        *self.state.write() = state;
    }

    /// Why `models.json` is not in force.
    pub fn error(&self) -> Option<String> {
        self.state.read().error.clone()
    }

    /// `auth.json`, for those who sign in and out.
    pub fn auth(&self) -> &AuthStore {
        &self.auth
    }

    /// Every provider that has models: the built-in ones in their order, the
    /// user's in that of the file, then `demo`.
    pub fn providers(&self) -> Vec<String> {
        let config = self.config();
        let built_in = PROVIDERS.iter().map(|provider| provider.id);
        let own = config.providers.keys().map(String::as_str);
        let own = own.filter(|id| catalogue::provider(id).is_none() && *id != demo::PROVIDER);
        let ids = built_in.chain(own).chain([demo::PROVIDER]);
        ids.map(str::to_owned).collect()
    }

    pub fn all(&self) -> Vec<Arc<Model>> {
        let providers = self.providers();
        let models = providers.iter().map(|provider| self.models_of(provider));
        models.flat_map(|models| models.to_vec()).collect()
    }

    /// Those that could be used now. The demo model is not among them, since
    /// nobody should get it by accident; [`Self::find`] finds it.
    pub fn available(&self) -> Vec<Arc<Model>> {
        let mut providers = self.providers();
        providers.retain(|provider| self.has_auth(provider));
        let models = providers.iter().map(|provider| self.models_of(provider));
        models
            .flat_map(|models| models.to_vec())
            .filter(|model| !demo::is_demo(model))
            .collect()
    }

    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let models = self.models_of(provider);
        models.iter().find(|model| model.id == id).cloned()
    }

    /// Parses at most this provider.
    pub fn models_of(&self, provider: &str) -> Arc<[Arc<Model>]> {
        if let Some(models) = self.state.read().models.get(provider) {
            return Arc::clone(models);
        }
        let mut state = self.state.write();
        let built_in = match provider {
            demo::PROVIDER => Some(demo::entry()),
            _ => catalogue::provider(provider).map(catalogue::Provider::load),
        };
        let models = match (state.config.providers.get(provider), built_in) {
            (Some(config), built_in) => config.apply(provider, built_in),
            (None, Some(entry)) => entry.models,
            // Not remembered: anybody may ask for anything.
            (None, None) => return Arc::default(),
        };
        let models: Arc<[Arc<Model>]> = models.into_iter().map(Arc::new).collect();
        state
            .models
            .insert(provider.to_owned(), Arc::clone(&models));
        models
    }

    /// Whether a key is configured; that it works is another matter.
    pub fn has_auth(&self, provider: &str) -> bool {
        provider == demo::PROVIDER
            || self.auth.runtime_key(provider).is_some()
            || self.auth.entry(provider).is_some()
            || self.env_key(provider).is_some()
            || self.with_config(provider, |config| config.api_key.is_some())
    }

    /// Whether the provider is used by a sign-in instead of an API key.
    pub fn uses_oauth(&self, provider: &str) -> bool {
        self.auth.runtime_key(provider).is_none()
            && matches!(self.auth.entry(provider), Some(AuthEntry::OAuth { .. }))
    }

    /// For this run only.
    pub fn set_runtime_key(&self, provider: &str, key: &str) {
        self.auth.set_runtime_key(provider, key);
    }

    /// The key and the headers to send. May run the user's commands, for up to
    /// ten seconds each.
    pub async fn credentials(&self, model: &Model) -> Result<Credentials, AuthError> {
        let mut credentials = Credentials {
            api_key: None,
            headers: model.headers.clone().unwrap_or_default(),
        };
        if demo::is_demo(model) {
            return Ok(credentials);
        }
        let provider = &model.provider;
        let config = self.config();
        let config = config.providers.get(provider);
        let key = self.key(provider, config).await?;
        if let Some(config) = config {
            self.add_headers(&mut credentials.headers, model, config)
                .await?;
            if config.auth_header {
                let value = format!("Bearer {key}");
                credentials.headers.insert("Authorization".into(), value);
            }
        }
        credentials.api_key = Some(key);
        Ok(credentials)
    }

    async fn add_headers(
        &self,
        headers: &mut IndexMap<String, String>,
        model: &Model,
        config: &ProviderConfig,
    ) -> Result<(), SecretError> {
        let of_provider = format!("provider \"{}\"", model.provider);
        let of_model = format!("model \"{}\"", model.reference());
        let model_headers = config.model_headers(&model.id).into_iter().flatten();
        let all = (config.headers.iter().map(|header| (&of_provider, header)))
            .chain(model_headers.map(|header| (&of_model, header)));
        for (owner, (name, value)) in all {
            let what = format!("{owner} header \"{name}\"");
            let value = self.secrets.resolve(value, &what).await?;
            headers.insert(name.clone(), value);
        }
        Ok(())
    }

    async fn key(
        &self,
        provider: &str,
        config: Option<&ProviderConfig>,
    ) -> Result<String, AuthError> {
        if let Some(key) = self.auth.runtime_key(provider) {
            return Ok(key);
        }
        let what = format!("API key for provider \"{provider}\"");
        let stored = match self.fresh_entry(provider) {
            Some(AuthEntry::ApiKey { key }) => self
                .secrets
                .resolve_cached(&key, &what)
                .await
                .map_err(AuthError::Secret),
            Some(entry) if entry.is_expired() => Err(AuthError::Expired {
                provider: provider.to_owned(),
                path: self.auth.path().display().to_string(),
                advice: self.advice(provider),
            }),
            Some(AuthEntry::OAuth { access, .. }) => Ok(access),
            None => self.env_key(provider).ok_or_else(|| AuthError::NoKey {
                provider: provider.to_owned(),
                advice: self.advice(provider),
            }),
        };
        match (stored, config.and_then(|config| config.api_key.as_ref())) {
            (Err(_), Some(fallback)) => Ok(self.secrets.resolve(fallback, &what).await?),
            (stored, _) => stored,
        }
    }

    /// Another process may have refreshed what has expired here.
    fn fresh_entry(&self, provider: &str) -> Option<AuthEntry> {
        let entry = self.auth.entry(provider);
        if entry.as_ref().is_some_and(AuthEntry::is_expired) {
            self.auth.reload();
            return self.auth.entry(provider);
        }
        entry
    }

    fn env_key(&self, provider: &str) -> Option<String> {
        let names = catalogue::provider(provider)?.key_env;
        names.iter().find_map(|name| self.env.get(name))
    }

    fn advice(&self, provider: &str) -> String {
        let names = catalogue::provider(provider).map_or(&[][..], |provider| provider.key_env);
        let variable = match names {
            [] => String::new(),
            names => format!("set {}, or ", names.join(" or ")),
        };
        let mut advice = format!(
            "To give it a key, {variable}pass --api-key, or add the provider to {}.",
            self.auth.path().display()
        );
        if let Some(error) = self.auth.error() {
            advice = format!("{advice}\n\n{error}");
        }
        advice
    }

    /// What to say when there is no model to talk to.
    pub fn no_model_text(&self) -> String {
        let nothing = self.available().is_empty();
        let mut text = format!(
            "No model{}.\n\n\
             Set an API key environment variable (such as ANTHROPIC_API_KEY or OPENAI_API_KEY) \
             or add a key to {}, then select a model with /model or --model.",
            if nothing { "s available" } else { " selected" },
            self.auth.path().display()
        );
        for error in [self.auth.error(), self.error()].into_iter().flatten() {
            text = format!("{text}\n\n{error}");
        }
        if nothing {
            text.push_str(
                "\n\nTo try pi without any key, use its built-in demo: \
                 --provider demo --model demo",
            );
        }
        text
    }

    fn config(&self) -> Arc<ModelsJson> {
        Arc::clone(&self.state.read().config)
    }

    fn with_config(&self, provider: &str, test: impl FnOnce(&ProviderConfig) -> bool) -> bool {
        let state = self.state.read();
        state.config.providers.get(provider).is_some_and(test)
    }
}

#[cfg(test)]
mod tests;
