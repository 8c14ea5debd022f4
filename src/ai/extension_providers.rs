//! Providers and wire APIs of extensions: the registrations of `pi.registerProvider` and
//! `registerApiProvider`. Each generation has its own; the registry of models uses those of the
//! current generation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indexmap::IndexMap;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::auth::oauth::SignIn;
use super::json::lenient;
use super::model::{Modality, Model, ModelCost};
use super::models::thinking_levels::LevelNames;
use super::stream::Api;

/// The data that `pi.registerProvider` takes, without functions. A missing member keeps the value
/// of an earlier call.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderConfig {
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// API key, in the format of header values: see [`super::auth::secret_value`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::headers"
    )]
    pub headers: Option<IndexMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_header: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<ProviderModel>>,
}

/// A model of an extension. The types are lenient, because extensions pass on the lists of
/// servers.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderModel {
    #[serde(deserialize_with = "lenient::text")]
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    #[serde(deserialize_with = "lenient::bool_from_truthy")]
    pub reasoning: bool,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::modalities"
    )]
    pub input: Option<Vec<Modality>>,
    #[serde(deserialize_with = "lenient::cost")]
    pub cost: ModelCost,
    /// A float, because JavaScript has only one type of number.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    pub context_window: Option<f64>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::number"
    )]
    pub max_tokens: Option<f64>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::headers"
    )]
    pub headers: Option<IndexMap<String, String>>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "lenient::level_names"
    )]
    pub thinking_level_map: Option<LevelNames>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_params: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling_params_by_thinking_level: Option<IndexMap<String, Map<String, Value>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<Value>,
}

/// A model in a request of an extension, which may be written by hand.
#[derive(Deserialize)]
pub struct ModelArgument {
    #[serde(default, deserialize_with = "lenient::text")]
    provider: String,
    #[serde(flatten)]
    model: ProviderModel,
}

impl ModelArgument {
    pub fn into_model(mut self) -> Model {
        let headers = self.model.headers.take();
        Model {
            headers,
            ..ProviderConfig::default().model(&self.provider, &self.model)
        }
    }
}

/// Leaves out the key and the headers, which may hold secrets.
impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("api", &self.api)
            .field("models", &self.models.as_ref().map(Vec::len))
            .finish_non_exhaustive()
    }
}

/// A checked registration with its functions.
#[derive(Clone, Default)]
pub struct ExtensionProvider {
    pub config: ProviderConfig,
    pub sign_in: Option<Arc<dyn SignIn>>,
    /// The provider's models as the sign-in's `modifyModels` returned them.
    pub modified: Option<Vec<Model>>,
}

/// A wire API that an extension implements.
pub struct ExtensionWireApi {
    pub name: String,
    /// The source by which the API is unregistered; `provider:<name>` belongs to a provider.
    pub source: Option<String>,
    /// Number of the extension.
    pub owner: u32,
    /// Number of the API's function.
    pub id: u64,
    pub api: Arc<dyn Api>,
}

/// The registration of a provider by one extension.
struct Registration {
    name: String,
    /// Number of the extension.
    owner: u32,
    config: ProviderConfig,
    sign_in: Option<Arc<dyn SignIn>>,
}

/// All registrations of one generation.
pub struct ExtensionProviders {
    state: RwLock<State>,
    revision: AtomicU64,
}

/// Returns a revision that no other generation has had, so that the revision alone shows whether
/// derived data is still valid.
fn next_revision() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

impl Default for ExtensionProviders {
    fn default() -> Self {
        Self {
            state: RwLock::default(),
            revision: AtomicU64::new(next_revision()),
        }
    }
}

/// Registrations of all extensions. Removing one restores the values of earlier ones.
#[derive(Default)]
struct State {
    /// In the order in which they were made.
    registrations: Vec<Registration>,
    /// Providers that result from the registrations.
    providers: IndexMap<String, ExtensionProvider>,
    /// APIs of all extensions; the last one of a name counts.
    apis: Vec<ExtensionWireApi>,
    /// Sign-ins of `registerOAuthProvider`, which has no models, with the number of their
    /// extension.
    sign_ins: IndexMap<String, (u32, Arc<dyn SignIn>)>,
}

impl State {
    fn add(&mut self, registration: Registration) {
        let mut of_name = self.registrations.iter_mut().rev();
        match of_name.find(|known| known.name == registration.name) {
            Some(known) if known.owner == registration.owner => {
                known.config.merge(registration.config);
                known.sign_in = registration.sign_in.or(known.sign_in.take());
            }
            _ => self.registrations.push(registration),
        }
    }

    /// Merges all registrations of `name`.
    fn merge_registrations(&mut self, name: &str) {
        let mut all = self
            .registrations
            .iter()
            .filter(|registration| registration.name == name);
        let Some(first) = all.next() else {
            self.providers.shift_remove(name);
            return;
        };
        let (mut config, mut sign_in) = (first.config.clone(), first.sign_in.clone());
        for registration in all {
            config.merge(registration.config.clone());
            sign_in = registration.sign_in.clone().or(sign_in);
        }
        let provided = ExtensionProvider {
            config,
            sign_in,
            modified: None,
        };
        self.providers.insert(name.to_owned(), provided);
    }
}

impl ProviderConfig {
    /// Returns the reason if the provider cannot be registered. `streams` and `signs_in` state
    /// which functions come along.
    pub fn check(&self, name: &str, streams: bool, signs_in: bool) -> Result<(), String> {
        if streams && is_blank(self.api.as_ref()) {
            return Err(format!(
                "Provider {name}: \"api\" is required when registering streamSimple."
            ));
        }
        let models = self.models.as_deref().unwrap_or_default();
        if models.is_empty() {
            return Ok(());
        }
        if is_blank(self.base_url.as_ref()) {
            return Err(format!(
                "Provider {name}: \"baseUrl\" is required when defining models."
            ));
        }
        if is_blank(self.api_key.as_ref()) && !signs_in {
            return Err(format!(
                "Provider {name}: \"apiKey\" or \"oauth\" is required when defining models."
            ));
        }
        for model in models {
            if is_blank(model.api.as_ref()) && is_blank(self.api.as_ref()) {
                return Err(format!(
                    "Provider {name}, model {}: no \"api\" specified.",
                    model.id
                ));
            }
        }
        Ok(())
    }

    /// Removes models without an id, and returns a message about them.
    pub fn remove_nameless_models(&mut self, provider: &str) -> Option<String> {
        let models = self.models.as_mut()?;
        let is_nameless = |model: &ProviderModel| model.id.trim().is_empty();
        let nameless: Vec<String> = (models.iter().enumerate())
            .filter(|(_, model)| is_nameless(model))
            .map(|(index, _)| format!("models[{index}]"))
            .collect();
        models.retain(|model| !is_nameless(model));
        let (has, is) = match nameless.len() {
            0 => return None,
            1 => ("has", "is"),
            _ => ("have", "are"),
        };
        Some(format!(
            "Provider {provider}: {} {has} no \"id\", by which a model is chosen, and {is} left out.",
            nameless.join(", ")
        ))
    }

    /// Merges a later registration; its values take precedence.
    fn merge(&mut self, newer: Self) {
        fn take<T>(old: &mut Option<T>, new: Option<T>) {
            if new.is_some() {
                *old = new;
            }
        }
        take(&mut self.name, newer.name);
        take(&mut self.base_url, newer.base_url);
        take(&mut self.api_key, newer.api_key);
        take(&mut self.api, newer.api);
        take(&mut self.headers, newer.headers);
        take(&mut self.auth_header, newer.auth_header);
        let models = newer.models.filter(|models| !models.is_empty());
        take(&mut self.models, models);
    }

    /// Returns the provider's models: its own, or the known ones with another address.
    pub fn apply(&self, provider: &str, known: Vec<Model>) -> Vec<Model> {
        let own = self.models.as_deref().unwrap_or_default();
        if !own.is_empty() {
            let models = own.iter().map(|model| self.model(provider, model));
            return models.collect();
        }
        let mut models = known;
        if let Some(url) = self.base_url.as_ref().filter(|url| !url.is_empty()) {
            for model in &mut models {
                model.base_url.clone_from(url);
            }
        }
        models
    }

    fn model(&self, provider: &str, model: &ProviderModel) -> Model {
        let text = |own: &Option<String>, common: &Option<String>| {
            let own = own.as_ref().filter(|text| !text.is_empty());
            own.or(common.as_ref()).cloned().unwrap_or_default()
        };
        Model {
            id: model.id.clone(),
            name: model.name.clone().unwrap_or_else(|| model.id.clone()),
            api: text(&model.api, &self.api),
            provider: provider.to_owned(),
            base_url: text(&model.base_url, &self.base_url),
            reasoning: model.reasoning,
            input: model.input.clone().unwrap_or_else(|| vec![Modality::Text]),
            cost: model.cost.clone(),
            // The cast converts the number to the nearest integer that fits.
            context_window: model.context_window.unwrap_or(128_000.0) as u64,
            max_tokens: model.max_tokens.unwrap_or(16_384.0) as u64,
            // Headers may be secrets; each request resolves them together with the key.
            headers: None,
            thinking_level_map: model.thinking_level_map.clone(),
            sampling_params: model.sampling_params.clone(),
            sampling_params_by_thinking_level: model.sampling_params_by_thinking_level.clone(),
            compat: model.compat.clone(),
        }
    }

    /// Returns the headers of one model; `None` if the model is not among the provider's own.
    pub fn model_headers(&self, id: &str) -> Option<&IndexMap<String, String>> {
        let models = self.models.as_deref().unwrap_or_default();
        let model = models.iter().rev().find(|model| model.id == id)?;
        model.headers.as_ref()
    }
}

fn is_blank(text: Option<&String>) -> bool {
    text.is_none_or(String::is_empty)
}

impl ExtensionProviders {
    /// Returns a number that changes with each registration and removal.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.write();
        let changed = change(&mut state);
        self.revision.store(next_revision(), Ordering::Release);
        changed
    }

    /// Registers a provider. `owner` is the number of the extension.
    pub fn register(
        &self,
        owner: u32,
        name: &str,
        config: ProviderConfig,
        sign_in: Option<Arc<dyn SignIn>>,
    ) {
        self.change(|state| {
            state.add(Registration {
                name: name.to_owned(),
                owner,
                config,
                sign_in,
            });
            state.merge_registrations(name);
        });
    }

    /// Returns `false` if there is no provider of that name.
    pub fn unregister(&self, name: &str) -> bool {
        let source = api_source(name);
        self.change(|state| {
            (state.apis).retain(|known| known.source.as_deref() != Some(&source));
            state
                .registrations
                .retain(|registration| registration.name != name);
            state.providers.shift_remove(name).is_some()
        })
    }

    /// Removes all registrations of an extension. Returns the numbers of its functions, which are
    /// no longer called.
    pub fn discard(&self, owner: u32) -> Vec<u64> {
        self.change(|state| {
            let (gone, left) = std::mem::take(&mut state.registrations)
                .into_iter()
                .partition::<Vec<_>, _>(|registration| registration.owner == owner);
            state.registrations = left;
            for registration in gone {
                state.merge_registrations(&registration.name);
            }
            state.sign_ins.retain(|_, (by, _)| *by != owner);
            let gone = state.apis.extract_if(.., |known| known.owner == owner);
            gone.map(|known| known.id).collect()
        })
    }

    /// Sets the models that `modifyModels` returned for `name`.
    pub fn set_modified(&self, name: &str, models: Vec<Model>) {
        self.change(|state| {
            if let Some(provided) = state.providers.get_mut(name) {
                provided.modified = Some(models);
            }
        });
    }

    /// Removes the changes of `modifyModels` after a sign-out.
    pub fn clear_modified(&self, name: &str) {
        self.change(|state| {
            if let Some(provided) = state.providers.get_mut(name) {
                provided.modified = None;
            }
        });
    }

    pub fn get(&self, name: &str) -> Option<ExtensionProvider> {
        self.state.read().providers.get(name).cloned()
    }

    pub fn names(&self) -> Vec<String> {
        self.state.read().providers.keys().cloned().collect()
    }

    pub fn is_empty(&self) -> bool {
        let state = self.state.read();
        state.providers.is_empty() && state.apis.is_empty() && state.sign_ins.is_empty()
    }

    pub fn register_api(&self, new: ExtensionWireApi) {
        self.change(|state| {
            let is_older = |known: &ExtensionWireApi| {
                (&known.name, &known.source, known.owner) == (&new.name, &new.source, new.owner)
            };
            state.apis.retain(|known| !is_older(known));
            state.apis.push(new);
        });
    }

    /// Removes all APIs of `source`; `None` removes those of all sources.
    pub fn unregister_apis(&self, source: Option<&str>) {
        self.change(|state| {
            let apis = &mut state.apis;
            apis.retain(|known| source.is_some() && known.source.as_deref() != source);
        });
    }

    pub fn unregister_api(&self, name: &str) {
        self.change(|state| state.apis.retain(|known| known.name != name));
    }

    pub fn api(&self, name: &str) -> Option<Arc<dyn Api>> {
        let state = self.state.read();
        let mut latest = state.apis.iter().rev();
        latest
            .find(|known| known.name == name)
            .map(|known| Arc::clone(&known.api))
    }

    pub fn register_sign_in(&self, owner: u32, id: &str, sign_in: Arc<dyn SignIn>) {
        self.change(|state| state.sign_ins.insert(id.to_owned(), (owner, sign_in)));
    }

    pub fn unregister_sign_in(&self, id: &str) {
        self.change(|state| state.sign_ins.shift_remove(id));
    }

    pub fn sign_in(&self, id: &str) -> Option<Arc<dyn SignIn>> {
        let state = self.state.read();
        let of_provider = state
            .providers
            .get(id)
            .and_then(|known| known.sign_in.as_ref());
        let alone = || state.sign_ins.get(id).map(|(_, sign_in)| sign_in);
        of_provider.or_else(alone).cloned()
    }

    /// Returns ids and functions of all sign-ins.
    pub fn sign_ins(&self) -> Vec<(String, Arc<dyn SignIn>)> {
        let state = self.state.read();
        let of_providers = state.providers.iter().filter_map(|(id, known)| {
            let sign_in = known.sign_in.as_ref()?;
            Some((id.clone(), Arc::clone(sign_in)))
        });
        let alone = state.sign_ins.iter();
        let alone = alone.filter(|(id, _)| {
            let known = state.providers.get(*id);
            known.is_none_or(|known| known.sign_in.is_none())
        });
        let alone = alone.map(|(id, (_, sign_in))| (id.clone(), Arc::clone(sign_in)));
        of_providers.chain(alone).collect()
    }
}

/// Returns the source of the API that a provider's `streamSimple` implements.
pub fn api_source(provider: &str) -> String {
    format!("provider:{provider}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(value: Value) -> ProviderConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn missing_members_are_named() {
        let problem = |value: Value, streams: bool| config(value).check("x", streams, false);
        assert_eq!(
            problem(json!({}), true),
            Err("Provider x: \"api\" is required when registering streamSimple.".into())
        );
        let models = json!([{"id": "m"}]);
        assert_eq!(
            problem(json!({"models": models}), false),
            Err("Provider x: \"baseUrl\" is required when defining models.".into())
        );
        assert_eq!(
            problem(json!({"models": models, "baseUrl": "u"}), false),
            Err("Provider x: \"apiKey\" or \"oauth\" is required when defining models.".into())
        );
        assert_eq!(
            problem(
                json!({"models": models, "baseUrl": "u", "apiKey": "k"}),
                false
            ),
            Err("Provider x, model m: no \"api\" specified.".into())
        );
        let fine = json!({"models": models, "baseUrl": "u", "apiKey": "k", "api": "a"});
        assert_eq!(problem(fine, true), Ok(()));
        assert_eq!(
            problem(json!({"baseUrl": "u", "models": []}), false),
            Ok(())
        );
    }

    #[test]
    fn a_later_registration_changes_only_its_members() {
        let providers = ExtensionProviders::default();
        let first = json!({"baseUrl": "u", "apiKey": "k", "api": "a", "models": [{"id": "m"}]});
        providers.register(0, "x", config(first), None);
        let before = providers.revision();
        let other = json!({"baseUrl": "v", "models": []});
        providers.register(1, "x", config(other), None);
        assert_ne!(providers.revision(), before);
        let models = providers.get("x").unwrap().config.apply("x", Vec::new());
        let seen: Vec<_> = models
            .iter()
            .map(|m| (&*m.id, &*m.base_url, &*m.api))
            .collect();
        assert_eq!(seen, [("m", "v", "a")]);
        // Removing an extension removes its values and nothing else.
        providers.discard(1);
        let models = providers.get("x").unwrap().config.apply("x", Vec::new());
        assert_eq!(models[0].base_url, "u");
        assert!(providers.unregister("x"));
        assert!(!providers.unregister("x"));
        assert!(providers.get("x").is_none());
    }
}
