//! All models, built-in and the user's own, and the credentials for them. One registry is shared
//! by all of its users.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::RwLock;
use serde_json::{Map, Value};

mod credentials;
mod overlays;

pub use self::credentials::{AuthError, Credentials};
use super::builtin::{self, PROVIDERS};
use super::models_json::{self, ModelsJson, ProviderConfig};
use crate::apis;
use crate::auth::oauth::{self, SignInError};
use crate::auth::secret_value::{Env, SecretError, SecretValues};
use crate::auth::store::{self, AuthEntry, AuthStore};
use crate::demo;
use crate::extension_providers::{self, ExtensionProvider, ExtensionProviders};
use crate::model::Model;
use crate::stream::Api;
use pi_base::secrets;

pub struct ModelRegistry {
    models_json: RwLock<Option<PathBuf>>,
    env: Env,
    auth: AuthStore,
    secrets: SecretValues,
    state: RwLock<State>,
    /// Registrations of the current generation.
    extensions: RwLock<Arc<ExtensionProviders>>,
    overlays: overlays::Overlays,
}

#[derive(Default)]
struct State {
    config: Arc<ModelsJson>,
    error: Option<String>,
    /// Models of the providers that were requested so far.
    models: HashMap<String, Arc<[Arc<Model>]>>,
    /// Revision of the extensions' registrations from which `models` was derived.
    revision: u64,
}

/// Authorisation and headers of a provider's requests.
struct RequestConfig<'a> {
    api_key: Option<&'a String>,
    headers: Vec<(&'a String, &'a String)>,
    model_headers: Vec<(&'a String, &'a String)>,
    auth_header: bool,
}

impl fmt::Debug for ModelRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRegistry")
            .field("models_json", &*self.models_json.read())
            .finish_non_exhaustive()
    }
}

impl ModelRegistry {
    /// Reads the user's files; built-in models are parsed on demand.
    pub fn load(agent_dir: &Path) -> Self {
        Self::load_with(agent_dir, Env::process())
    }

    pub fn load_with(agent_dir: &Path, env: Env) -> Self {
        let models = Some(agent_dir.join("models.json"));
        let auth = AuthStore::open(agent_dir.join("auth.json"));
        Self::with(models, auth, env)
    }

    /// Opens a registry of other files. `None` stands for no file: no models of the user, or
    /// credentials in memory.
    pub fn open(
        models: Option<PathBuf>,
        auth: Option<PathBuf>,
        data: Option<Map<String, Value>>,
    ) -> Self {
        let auth = match auth {
            Some(path) => AuthStore::open(path),
            None => AuthStore::in_memory(data.unwrap_or_default()),
        };
        Self::with(models, auth, Env::process())
    }

    fn with(models_json: Option<PathBuf>, auth: AuthStore, env: Env) -> Self {
        let names = builtin::all_key_variables().filter(|name| *name != "AWS_PROFILE");
        for name in names {
            if let Some(value) = env.get(name) {
                secrets::add(&value);
            }
        }
        let registry = Self {
            models_json: RwLock::new(models_json),
            auth,
            secrets: SecretValues::new(env.clone()),
            env,
            state: RwLock::default(),
            extensions: RwLock::default(),
            overlays: overlays::Overlays::default(),
        };
        registry.read_models_json();
        registry
    }

    /// Reads the user's files again. Runtime keys stay.
    pub fn reload(&self) {
        self.auth.reload();
        self.read_models_json();
    }

    /// Changes the file with the user's models.
    pub fn use_models_file(&self, models_json: Option<PathBuf>) {
        *self.models_json.write() = models_json;
        self.read_models_json();
    }

    fn read_models_json(&self) {
        let (config, error) = match &*self.models_json.read() {
            Some(path) => models_json::load(path),
            None => Default::default(),
        };
        let state = State {
            config: Arc::new(config),
            error: error.map(|error| error.to_string()),
            ..State::default()
        };
        *self.state.write() = state;
    }

    /// Returns the reason why `models.json`, or a part of it, is not used.
    pub fn error(&self) -> Option<String> {
        self.state.read().error.clone()
    }

    /// Returns the credentials, for signing in and out.
    pub fn auth(&self) -> &AuthStore {
        &self.auth
    }

    /// Returns the registrations of the current generation.
    pub fn extension_providers(&self) -> Arc<ExtensionProviders> {
        Arc::clone(&self.extensions.read())
    }

    /// Replaces the registrations by those of another generation.
    pub fn set_extension_providers(&self, providers: Arc<ExtensionProviders>) {
        let mut provided = self.extensions.write();
        self.state.write().models.clear();
        *provided = providers;
    }

    /// Returns the wire API of that name, of an extension or built in; `None` for an unknown
    /// name.
    pub fn api(&self, name: &str) -> Option<Arc<dyn Api>> {
        let provided = self.extension_providers().api(name);
        let provided = provided.or_else(|| self.overlays.api(name));
        provided.or_else(|| apis::wire_api(name))
    }

    /// Returns all providers with models: the built-in ones in their order, the user's in the
    /// order of the file, those of extensions, then `demo`.
    pub fn providers(&self) -> Vec<String> {
        let config = self.config();
        let mut ids: Vec<String> = Vec::new();
        let built_in = PROVIDERS.iter().map(|provider| provider.id.to_owned());
        let own = config.providers.keys().cloned();
        let provided = self.extension_providers().names().into_iter();
        let provided = provided.chain(self.overlays.names());
        for id in built_in.chain(own).chain(provided) {
            if id != demo::PROVIDER && !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids.push(demo::PROVIDER.to_owned());
        ids
    }

    pub fn all(&self) -> Vec<Arc<Model>> {
        let providers = self.providers();
        let models = providers.iter().map(|provider| self.models_of(provider));
        models.flat_map(|models| models.to_vec()).collect()
    }

    /// Returns the models that could be used now. The demo model is left out, since users should
    /// not get it by accident; [`Self::find`] finds it.
    pub fn available(&self) -> Vec<Arc<Model>> {
        let mut providers = self.providers();
        providers.retain(|provider| self.has_auth(provider));
        let models = providers.iter().map(|provider| self.models_of(provider));
        models
            .flat_map(|models| models.to_vec())
            .filter(|model| !demo::is_demo(model))
            .collect()
    }

    /// Returns all models that extensions see: all but the demo model.
    pub fn without_demo(&self) -> Vec<Arc<Model>> {
        let mut models = self.all();
        models.retain(|model| !demo::is_demo(model));
        models
    }

    pub fn find(&self, provider: &str, id: &str) -> Option<Arc<Model>> {
        let models = self.models_of(provider);
        models.iter().find(|model| model.id == id).cloned()
    }

    /// Returns the models of one provider. At most this provider is parsed.
    pub fn models_of(&self, provider: &str) -> Arc<[Arc<Model>]> {
        let revision = self
            .extension_providers()
            .revision()
            .max(self.overlays.revision());
        {
            let state = self.state.read();
            if state.revision == revision
                && let Some(models) = state.models.get(provider)
            {
                return Arc::clone(models);
            }
        }
        let added = self.added(provider);
        let mut state = self.state.write();
        if state.revision != revision {
            state.models.clear();
            state.revision = revision;
        }
        let models = match known_models(&state.config, provider) {
            Some(models) => models,
            None if added.is_some() => Vec::new(),
            // Unknown names are not cached, because callers may ask for any name.
            None => return Arc::default(),
        };
        let models = match added {
            Some(ExtensionProvider {
                modified: Some(modified),
                ..
            }) => modified,
            Some(added) => added.config.apply(provider, models),
            None => self.adapt_to_account(provider, models),
        };
        let models: Arc<[Arc<Model>]> = models.into_iter().map(Arc::new).collect();
        state
            .models
            .insert(provider.to_owned(), Arc::clone(&models));
        models
    }

    /// Adapts Copilot's models to the account, which determines the server.
    fn adapt_to_account(&self, provider: &str, mut models: Vec<Model>) -> Vec<Model> {
        if provider == "github-copilot"
            && let Some(credentials) = self.auth.oauth(provider)
        {
            let url = oauth::copilot::base_url(&credentials);
            for model in &mut models {
                model.base_url.clone_from(&url);
            }
        }
        models
    }

    /// Returns the provider's models with the changes of `added`.
    pub fn models_with(
        &self,
        provider: &str,
        added: &extension_providers::ProviderConfig,
    ) -> Vec<Model> {
        let known = known_models(&self.config(), provider);
        added.apply(provider, known.unwrap_or_default())
    }

    /// Returns true if a key is configured. The key may still be invalid.
    pub fn has_auth(&self, provider: &str) -> bool {
        provider == demo::PROVIDER
            || self.has_own_auth(provider)
            || self.added(provider).is_some_and(|added| {
                added
                    .config
                    .api_key
                    .is_some_and(|key| self.secrets.is_resolvable(&key))
            })
            || self.with_config(provider, |config| {
                let key = config.api_key.as_ref();
                key.is_some_and(|key| self.secrets.is_resolvable(key))
            })
    }

    /// Like [`Self::has_auth`], without keys in the configuration of providers.
    pub fn has_own_auth(&self, provider: &str) -> bool {
        self.own_auth_source(provider).is_some()
    }

    /// Returns the display name.
    pub fn display_name(&self, provider: &str) -> String {
        let added = self.added(provider);
        let named = added.and_then(|added| added.config.name);
        let built_in = || builtin::provider(provider).map(|known| known.name.to_owned());
        named
            .or_else(built_in)
            .unwrap_or_else(|| provider.to_owned())
    }

    fn own_auth_source(&self, provider: &str) -> Option<&'static str> {
        match provider {
            _ if self.auth.runtime_key(provider).is_some() => Some("runtime"),
            _ if self.auth.entry(provider).is_some() => Some("stored"),
            _ => self.env_key(provider).map(|_| "environment"),
        }
    }

    /// Returns true if the provider is used with a sign-in instead of an API key.
    pub fn uses_oauth(&self, provider: &str) -> bool {
        self.auth.runtime_key(provider).is_none()
            && matches!(self.auth.entry(provider), Some(AuthEntry::OAuth { .. }))
    }

    /// Sets a key for this process only.
    pub fn set_runtime_key(&self, provider: &str, key: &str) {
        self.auth.set_runtime_key(provider, key);
    }

    /// Returns the key and the headers of requests. This may run the user's commands, for up to
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
        let (config, added) = (self.config(), self.added(provider));
        let config = request_config(config.providers.get(provider), added.as_ref(), &model.id);
        let key = self.key(provider, config.api_key).await?;
        self.add_headers(&mut credentials.headers, model, &config)
            .await?;
        if config.auth_header {
            let value = format!("Bearer {key}");
            credentials.headers.insert("Authorization".into(), value);
        }
        credentials.api_key = Some(key);
        Ok(credentials)
    }

    /// Like [`Self::credentials`], but missing credentials are no error; the caller handles them.
    pub async fn credentials_or_none(&self, model: &Model) -> Result<Credentials, AuthError> {
        match self.credentials(model).await {
            Err(AuthError::NoKey { .. }) => {}
            found => return found,
        }
        let mut headers = model.headers.clone().unwrap_or_default();
        let (config, added) = (self.config(), self.added(&model.provider));
        let config = config.providers.get(&model.provider);
        let config = request_config(config, added.as_ref(), &model.id);
        if config.auth_header {
            return Err(self.no_key(&model.provider));
        }
        self.add_headers(&mut headers, model, &config).await?;
        Ok(Credentials {
            api_key: None,
            headers,
        })
    }

    /// Returns the key of `auth.json` or of the environment.
    pub async fn own_api_key(&self, provider: &str) -> Result<String, AuthError> {
        self.key(provider, None).await
    }

    /// Returns the key alone, which all models of the provider share.
    pub async fn api_key(&self, provider: &str) -> Result<String, AuthError> {
        let (config, added) = (self.config(), self.added(provider));
        let config = request_config(config.providers.get(provider), added.as_ref(), "");
        self.key(provider, config.api_key).await
    }

    async fn add_headers(
        &self,
        headers: &mut IndexMap<String, String>,
        model: &Model,
        config: &RequestConfig<'_>,
    ) -> Result<(), SecretError> {
        let of_provider = format!("provider \"{}\"", model.provider);
        let of_model = format!("model \"{}\"", model.reference());
        let all = (config.headers.iter().map(|header| (&of_provider, header))).chain(
            config
                .model_headers
                .iter()
                .map(|header| (&of_model, header)),
        );
        for (owner, (name, value)) in all {
            let what = format!("{owner} header \"{name}\"");
            match self.secrets.resolve(value, &what).await {
                Ok(value) => _ = headers.insert((*name).clone(), value),
                // The original also ignores unset variables.
                Err(SecretError::Unset { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn key(&self, provider: &str, fallback: Option<&String>) -> Result<String, AuthError> {
        let key = self.find_key(provider, fallback).await?;
        secrets::add(&key);
        Ok(key)
    }

    async fn find_key(
        &self,
        provider: &str,
        fallback: Option<&String>,
    ) -> Result<String, AuthError> {
        if let Some(key) = self.auth.runtime_key(provider) {
            return Ok(key);
        }
        let what = format!("API key for provider \"{provider}\"");
        let stored = match self.auth.entry(provider) {
            Some(AuthEntry::ApiKey { key }) => self
                .secrets
                .resolve_cached(&key, &what)
                .await
                .map_err(AuthError::Secret),
            Some(AuthEntry::OAuth { .. }) => self.signed_in_key(provider).await,
            None => self.env_key(provider).ok_or_else(|| self.no_key(provider)),
        };
        match (stored, fallback) {
            (Err(_), Some(fallback)) => Ok(self.secrets.resolve(fallback, &what).await?),
            (stored, _) => stored,
        }
    }

    fn no_key(&self, provider: &str) -> AuthError {
        AuthError::NoKey {
            provider: provider.to_owned(),
            advice: self.advice(provider),
        }
    }

    /// Returns the key of a sign-in, after renewing it if necessary.
    async fn signed_in_key(&self, provider: &str) -> Result<String, AuthError> {
        let expired = |reason: String| AuthError::Expired {
            provider: provider.to_owned(),
            reason,
            path: self.auth.path().display().to_string(),
            advice: match self.env_key(provider) {
                // The key of the environment is not used automatically: another person may pay
                // for it.
                Some(_) => "Once it is removed, the key of the environment is used.".to_owned(),
                None => self.advice(provider),
            },
        };
        let sign_in = self.sign_in(provider);
        let mut credentials = self.auth.oauth(provider);
        if credentials.as_ref().is_some_and(store::has_expired) {
            let renewed = match &sign_in {
                Some(sign_in) => self.auth.renew(provider, &**sign_in).await,
                None => Err(SignInError::new("no extension that is loaded knows how")),
            };
            credentials = match renewed {
                Ok(renewed) => renewed,
                Err(error) => {
                    // Another process may have renewed the token.
                    self.auth.reload();
                    let fresh = self.auth.oauth(provider);
                    let fresh = fresh.filter(|fresh| !store::has_expired(fresh));
                    Some(fresh.ok_or_else(|| expired(error.to_string()))?)
                }
            };
            self.forget_models();
        }
        let credentials = credentials.ok_or_else(|| self.no_key(provider))?;
        match sign_in {
            Some(sign_in) => {
                let key = sign_in.api_key(&credentials).await;
                key.map_err(|error| AuthError::NoKeyOfSignIn {
                    provider: provider.to_owned(),
                    reason: error.to_string(),
                })
            }
            None => match credentials.get("access").and_then(Value::as_str) {
                Some(access) => Ok(access.to_owned()),
                None => Err(self.no_key(provider)),
            },
        }
    }

    /// Drops the cached models, which may depend on the account that is signed in.
    pub fn forget_models(&self) {
        self.state.write().models.clear();
    }

    fn env_key(&self, provider: &str) -> Option<String> {
        builtin::env_key(provider, &self.env)
    }

    fn advice(&self, provider: &str) -> String {
        let names = builtin::provider(provider).map_or(&[][..], |provider| provider.key_env);
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

    /// Returns the message for the case that no model can be used.
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

/// Returns the built-in models of a provider and the user's own; `None` if the provider has
/// neither.
fn known_models(config: &ModelsJson, provider: &str) -> Option<Vec<Model>> {
    let built_in = match provider {
        demo::PROVIDER => Some(demo::entry()),
        _ => builtin::provider(provider).map(builtin::Provider::load),
    };
    match (config.providers.get(provider), built_in) {
        (Some(config), built_in) => Some(config.apply(provider, built_in)),
        (None, Some(entry)) => Some(entry.models),
        (None, None) => None,
    }
}

/// Merges the configurations of a provider. Values of an extension take precedence over those of
/// `models.json`, for each header separately.
fn request_config<'a>(
    config: Option<&'a ProviderConfig>,
    added: Option<&'a ExtensionProvider>,
    model: &str,
) -> RequestConfig<'a> {
    let added = added.map(|added| &added.config);
    let own_key = added.and_then(|added| added.api_key.as_ref());
    let headers = config.into_iter().flat_map(|config| &config.headers);
    let own_headers = added.into_iter().flat_map(|added| &added.headers).flatten();
    let model_headers = config.and_then(|config| config.model_headers(model));
    let own_model_headers = added.and_then(|added| added.model_headers(model));
    RequestConfig {
        api_key: own_key
            .filter(|key| !key.is_empty())
            .or_else(|| config?.api_key.as_ref()),
        headers: headers.chain(own_headers).collect(),
        model_headers: (model_headers.into_iter().flatten())
            .chain(own_model_headers.into_iter().flatten())
            .collect(),
        auth_header: added
            .and_then(|added| added.auth_header)
            .unwrap_or_else(|| config.is_some_and(|config| config.auth_header)),
    }
}

mod key_sources;
mod sign_in;
#[cfg(test)]
mod tests;
