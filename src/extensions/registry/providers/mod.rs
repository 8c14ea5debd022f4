//! Providers, wire APIs and sign-ins of extensions. The functions stay in JavaScript; they
//! are stored here by number and called through the bridge.

mod model_registries;
mod sign_in;
mod streams;
mod unresolved_apis;

use std::sync::{Arc, OnceLock, Weak};

use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::bridge::{BridgeHost, BridgeResult, parse, parse_explained, to_value};
use crate::lifecycle::generation::Generation;
use crate::registry::{ExtensionId, FunctionId};
use model_registries::ModelRegistries;
use pi_ai::auth::oauth::SignIn;
use pi_ai::extension_providers::{
    ExtensionProviders, ExtensionWireApi, ProviderConfig, api_source,
};
use pi_ai::model::Model;
use pi_ai::models::registry::ModelRegistry;
use sign_in::{ExtensionSignIn, LoginDialogs};
use streams::{ExtensionApi, OpenStreams};
use unresolved_apis::UnresolvedApis;

/// Stands for the extension whose code runs.
const CURRENT_EXTENSION: ExtensionId = ExtensionId::MAX;

/// Providers, wire APIs and sign-ins of one generation.
pub struct ProviderRegistrations {
    pub registered: Arc<ExtensionProviders>,
    pub models: Arc<ModelRegistry>,
    /// The generation whose functions are called.
    generation: OnceLock<Weak<Generation>>,
    streams: OpenStreams,
    dialogs: LoginDialogs,
    registries: ModelRegistries,
    /// Problems with registrations during the load.
    refused: Mutex<Vec<(ExtensionId, String)>>,
    unknown: Mutex<UnresolvedApis>,
    pub(crate) installed: Notify,
}

#[derive(Deserialize)]
struct ProviderRegistration {
    extension: ExtensionId,
    name: String,
    /// Number of the model registry; 0 is the session's.
    #[serde(default)]
    registry: u64,
    #[serde(default)]
    config: ProviderConfig,
    /// The function `streamSimple`.
    #[serde(default)]
    streams: Option<FunctionId>,
    #[serde(default)]
    oauth: Option<SignInRegistration>,
    /// Whether its functions provide credentials; an empty key means that they provide
    /// none.
    #[serde(default)]
    own_auth: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignInRegistration {
    id: FunctionId,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    uses_callback_server: bool,
    #[serde(default)]
    modifies: bool,
}

#[derive(Deserialize)]
struct ProviderArgs {
    name: String,
    #[serde(default)]
    registry: u64,
}

#[derive(Deserialize)]
struct ModifiedModelsArgs {
    name: String,
    #[serde(default)]
    registry: u64,
    /// `None` if the user is signed out.
    #[serde(default)]
    models: Option<Vec<Model>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ApiRegistration {
    api: String,
    id: FunctionId,
    #[serde(default)]
    source_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SourceArgs {
    #[serde(default)]
    source_id: Option<String>,
}

#[derive(Deserialize)]
struct ModelRefArgs {
    provider: String,
    id: String,
}

#[derive(Deserialize)]
struct ApiArgs {
    api: String,
}

#[derive(Deserialize)]
struct SignInArgs {
    id: String,
    functions: SignInRegistration,
}

impl ProviderRegistrations {
    pub fn new(models: Arc<ModelRegistry>) -> Self {
        Self {
            registered: Arc::default(),
            models,
            generation: OnceLock::new(),
            streams: OpenStreams::default(),
            dialogs: LoginDialogs::default(),
            registries: ModelRegistries::default(),
            refused: Mutex::default(),
            unknown: Mutex::default(),
            installed: Notify::default(),
        }
    }

    /// Sets the generation; functions can be called from now on.
    pub fn attach(&self, generation: Weak<Generation>) {
        // Each host has one generation, which is set once.
        let _ = self.generation.set(generation);
    }

    fn generation(&self) -> Option<Arc<Generation>> {
        self.generation.get().and_then(Weak::upgrade)
    }

    pub fn refused(&self) -> Vec<(ExtensionId, String)> {
        self.refused.lock().clone()
    }

    /// Returns whether the session uses the providers of this generation.
    pub fn is_active(&self) -> bool {
        Arc::ptr_eq(&self.models.extension_providers(), &self.registered)
    }
}

impl BridgeHost {
    /// Removes all registrations of an extension that failed to load. Returns the numbers
    /// of stream functions, which the bridge still holds.
    pub fn discard(&self, extension: ExtensionId) -> Vec<FunctionId> {
        self.registry.lock().remove_extension(extension);
        self.provider_registrations.registered.discard(extension)
    }

    /// Serves synchronous methods; `None` for other methods.
    pub(crate) fn serve_providers(&self, method: &str, args: &str) -> Option<BridgeResult> {
        if let Some(method) = method.strip_prefix("registry.") {
            return Some(self.serve_registry(method, args));
        }
        let registrations = &self.provider_registrations;
        let registered = &registrations.registered;
        Some(match method {
            "pi.registerProvider" => self.register_provider(method, args),
            "providers.unknownApi" => self.add_unknown_api(args),
            "pi.unregisterProvider" => parse::<ProviderArgs>(method, args).and_then(|args| {
                if self.registered_with(args.registry)?.unregister(&args.name) {
                    if args.registry == 0 {
                        self.registry.lock().remove_provider(&args.name);
                    }
                    self.models_changed();
                }
                Ok(Value::Null)
            }),
            // The arguments of `modifyModels`; `null` if the user is signed out.
            "providers.signedIn" => parse::<ProviderArgs>(method, args).and_then(|args| {
                let models = self.registry_of(args.registry)?;
                let registered = self.registered_with(args.registry)?;
                let credentials = models.auth().oauth(&args.name);
                let Some((credentials, added)) = credentials.zip(registered.get(&args.name)) else {
                    return Ok(Value::Null);
                };
                let models = models.models_with(&args.name, &added.config);
                to_value(json!({ "credentials": credentials, "models": models }))
            }),
            "providers.modified" => parse::<ModifiedModelsArgs>(method, args).and_then(|args| {
                let registered = self.registered_with(args.registry)?;
                match args.models {
                    Some(mut models) => {
                        models.retain(|model| model.provider == args.name);
                        registered.set_modified(&args.name, models);
                    }
                    None => registered.clear_modified(&args.name),
                }
                self.models_changed();
                Ok(Value::Null)
            }),
            "ai.find" => parse::<ModelRefArgs>(method, args)
                .and_then(|args| to_value(registrations.models.find(&args.provider, &args.id))),
            "ai.registerApi" => parse::<ApiRegistration>(method, args).map(|args| {
                let owner = self.current().extension;
                let api = ExtensionApi::new(self.weak_self.clone(), owner, args.id);
                registered.register_api(ExtensionWireApi {
                    name: args.api,
                    source: args.source_id,
                    owner,
                    id: args.id,
                    api: Arc::new(api),
                });
                Value::Null
            }),
            "ai.unregisterApis" => parse::<SourceArgs>(method, args).map(|args| {
                registered.unregister_apis(args.source_id.as_deref());
                Value::Null
            }),
            "ai.unregisterApi" => parse::<ApiArgs>(method, args).map(|args| {
                registered.unregister_api(&args.api);
                Value::Null
            }),
            "oauth.register" => parse::<SignInArgs>(method, args).map(|args| {
                let extension = self.current().extension;
                let sign_in = self.sign_in(extension, &args.id, args.functions);
                registered.register_sign_in(extension, &args.id, sign_in);
                Value::Null
            }),
            "oauth.unregister" => parse::<ProviderArgs>(method, args).map(|args| {
                registered.unregister_sign_in(&args.name);
                Value::Null
            }),
            _ => return None,
        })
    }

    /// Serves methods that take time; `None` for other methods.
    pub(crate) async fn serve_providers_async(
        &self,
        method: &str,
        args: &str,
    ) -> Option<BridgeResult> {
        if let Some(method) = method.strip_prefix("provider.") {
            return Some(
                self.provider_registrations
                    .streams
                    .serve(method, args)
                    .await,
            );
        }
        if let Some(method) = method.strip_prefix("registry.") {
            return Some(self.serve_registry_async(method, args).await);
        }
        if let Some(method) = method.strip_prefix("login.") {
            return Some(
                self.provider_registrations
                    .dialogs
                    .serve(method, args)
                    .await,
            );
        }
        if method == "providers.active" {
            return Some(Ok(json!({ "fetches": self.wait_active().await })));
        }
        None
    }

    /// Waits until the session uses this generation. Returns whether lists of models may be
    /// fetched.
    async fn wait_active(&self) -> bool {
        loop {
            let installed = self.provider_registrations.installed.notified();
            tokio::pin!(installed);
            installed.as_mut().enable();
            match self.bound_actions() {
                Some(actions) if self.provider_registrations.is_active() => {
                    return actions.fetches_models();
                }
                _ => installed.await,
            }
        }
    }

    /// Registers a provider. During the load an error only rejects the provider.
    fn register_provider(&self, method: &str, args: &str) -> BridgeResult {
        let args: ProviderRegistration = match parse_explained(method, args) {
            Ok(args) => args,
            Err(error) => return self.reject(self.current().extension, error.message),
        };
        let ProviderRegistration {
            extension,
            name,
            registry,
            mut config,
            streams,
            oauth,
            own_auth,
        } = args;
        let extension = match extension {
            CURRENT_EXTENSION => self.current().extension,
            known => known,
        };
        let problem = config.remove_nameless_models(&name);
        let checked = match name.as_str() {
            "" => Err("pi.registerProvider: the provider has no name".to_owned()),
            name => config.check(name, streams.is_some(), oauth.is_some() || own_auth),
        };
        if let Err(problem) = checked {
            return self.reject(extension, problem);
        }
        let registered = self.registered_with(registry)?;
        if let (Some(id), Some(api)) = (streams, &config.api) {
            let streams = ExtensionApi::new(self.weak_self.clone(), extension, id);
            registered.register_api(ExtensionWireApi {
                name: api.clone(),
                source: Some(api_source(&name)),
                owner: extension,
                id,
                api: Arc::new(streams),
            });
        }
        let unknown = match registry {
            0 => self.find_unknown_apis(&name, &config),
            _ => Vec::new(),
        };
        let sign_in = oauth.map(|oauth| self.sign_in(extension, &name, oauth));
        registered.register(extension, &name, config, sign_in);
        if registry == 0 {
            self.registry.lock().add_provider(extension, &name);
        }
        tracing::debug!(name, "provider registered");
        self.models_changed();
        Ok(json!({
            "taken": true,
            "extension": extension,
            "problem": problem,
            "unknown": unknown,
        }))
    }

    /// Returns the providers of this generation, or of a registry that an extension opened.
    fn registered_with(&self, registry: u64) -> Result<Arc<ExtensionProviders>, HostError> {
        match registry {
            0 => Ok(Arc::clone(&self.provider_registrations.registered)),
            other => Ok(self.registry_of(other)?.extension_providers()),
        }
    }

    fn reject(&self, extension: ExtensionId, problem: String) -> BridgeResult {
        if self.is_bound() {
            return Err(HostError::new(problem));
        }
        let refused = &self.provider_registrations.refused;
        refused.lock().push((extension, problem.clone()));
        // JavaScript reports the problem, because it knows the source position.
        Ok(json!({ "taken": false, "extension": extension, "problem": problem }))
    }

    fn sign_in(
        &self,
        extension: ExtensionId,
        id: &str,
        args: SignInRegistration,
    ) -> Arc<dyn SignIn> {
        Arc::new(ExtensionSignIn {
            host: self.weak_self.clone(),
            extension,
            id: args.id,
            name: args.name.unwrap_or_else(|| id.to_owned()),
            uses_callback_server: args.uses_callback_server,
            modifies: args.modifies,
        })
    }

    /// Updates the session's model.
    fn models_changed(&self) {
        if self.provider_registrations.is_active()
            && let Some(actions) = self.bound_actions()
        {
            actions.models_changed();
        }
    }
}
