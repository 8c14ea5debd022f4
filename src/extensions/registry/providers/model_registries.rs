//! `ModelRegistry` and `AuthStorage` of extensions: the session's own, and others that they
//! open on files or in memory.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::ProviderRegistrations;
use crate::bridge::{BridgeHost, BridgeResult, parse, to_value};
use pi_ai::auth::oauth::{DeviceCode, LoginDialog, LoginOption, OAuthCredentials, SignIn, copilot};
use pi_ai::auth::store::{AuthFileError, has_expired};
use pi_ai::model::Model;
use pi_ai::models::registry::{AuthError, Credentials, ModelRegistry};
use pi_ai::models::selection::{self, CliModel, ScopedModel};

/// Registries that extensions have opened; number 0 is the session's.
#[derive(Default)]
pub(super) struct ModelRegistries {
    open: Mutex<HashMap<u64, Arc<ModelRegistry>>>,
    last: AtomicU64,
}

/// Arguments of all methods; each reads its own.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RegistryArgs {
    registry: u64,
    provider: String,
    id: String,
    model: Option<Value>,
    key: String,
    credential: Option<Value>,
    credentials: OAuthCredentials,
    /// Files of models and credentials; in memory if absent.
    models: Option<PathBuf>,
    auth: Option<PathBuf>,
    data: Option<Map<String, Value>>,
    patterns: Vec<String>,
    /// Number of a login whose dialog is an object of the extension.
    token: u64,
}

fn to_host_error(error: &impl ToString) -> HostError {
    HostError::new(error.to_string())
}

/// Resolves a model as the command line does for `--provider` and `--model`.
fn cli_model(registry: &ModelRegistry, arguments: &RegistryArgs) -> Value {
    let provider = Some(arguments.provider.as_str()).filter(|provider| !provider.is_empty());
    let pattern = arguments.model.as_ref().and_then(Value::as_str);
    match selection::cli_model(registry, provider, pattern.unwrap_or_default()) {
        Ok(CliModel {
            model,
            thinking,
            warning,
        }) => json!({ "model": model, "thinkingLevel": thinking, "warning": warning }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Resolves patterns one by one, so that each diagnostic names its pattern.
fn resolve_scope(registry: &ModelRegistry, patterns: &[String]) -> Value {
    let (mut models, mut diagnostics) = (Vec::<ScopedModel>::new(), Vec::new());
    for pattern in patterns {
        let scope = selection::scope(registry, std::slice::from_ref(pattern));
        let is_none = scope.models.is_empty();
        for found in scope.models {
            if !models.iter().any(|known| known.model == found.model) {
                models.push(found);
            }
        }
        let last = scope.warnings.len().saturating_sub(1);
        for (index, message) in scope.warnings.into_iter().enumerate() {
            let code = match is_none && index == last {
                true => "no-match",
                false => "invalid-thinking-level",
            };
            diagnostics.push(json!({
                "type": "warning", "code": code, "message": message, "pattern": pattern,
            }));
        }
    }
    let models = models.iter().map(|found| match found.thinking {
        Some(level) => json!({ "model": found.model, "thinkingLevel": level }),
        None => json!({ "model": found.model }),
    });
    json!({ "scopedModels": models.collect::<Vec<_>>(), "diagnostics": diagnostics })
}

impl ModelRegistries {
    fn get(
        &self,
        registrations: &ProviderRegistrations,
        number: u64,
    ) -> Result<Arc<ModelRegistry>, HostError> {
        if number == 0 {
            return Ok(Arc::clone(&registrations.models));
        }
        let found = self.open.lock().get(&number).cloned();
        found.ok_or_else(|| {
            HostError::new("This registry belongs to an extension host that is gone")
        })
    }
}

impl BridgeHost {
    /// Returns a registry for a registration or a child session.
    pub(crate) fn registry_of(&self, number: u64) -> Result<Arc<ModelRegistry>, HostError> {
        let registrations = &self.provider_registrations;
        registrations.registries.get(registrations, number)
    }

    /// Fails if the session's registry is used by a stale generation.
    fn check_stale_registry(&self, arguments: &RegistryArgs, args: &str) -> Result<(), HostError> {
        match arguments.registry == 0 && self.is_bound() {
            true => self.actions(args).map(drop),
            false => Ok(()),
        }
    }

    /// Serves methods with an immediate result.
    pub(super) fn serve_registry(&self, method: &str, args: &str) -> BridgeResult {
        let arguments: RegistryArgs = parse(&format!("registry.{method}"), args)?;
        let registries = &self.provider_registrations.registries;
        if method == "open" {
            let registry = ModelRegistry::open(arguments.models, arguments.auth, arguments.data);
            let registry = registry.opened_by(Arc::clone(&self.provider_registrations.registered));
            let number = registries.last.fetch_add(1, Ordering::Relaxed) + 1;
            registries.open.lock().insert(number, Arc::new(registry));
            return Ok(json!(number));
        }
        self.check_stale_registry(&arguments, args)?;
        let registry = self.registry_of(arguments.registry)?;
        let (auth, provider) = (registry.auth(), arguments.provider.as_str());
        let stored = |result: Result<(), AuthFileError>| {
            registry.forget_models();
            result.map(|()| Value::Null).map_err(|error| {
                // Few extensions call `drainErrors`, so the error is reported as well.
                let text = format!(
                    "{error}. The change holds for this session, and pi stores it together with the \
                     next one that it can store"
                );
                self.report(self.current().extension, "authStorage", text);
                to_host_error(&error)
            })
        };
        Ok(match method {
            "find" => to_value(registry.find(provider, &arguments.id))?,
            "all" if provider.is_empty() => to_value(registry.without_demo())?,
            "all" => to_value(registry.models_of(provider).to_vec())?,
            "available" => to_value(registry.available())?,
            "scope" => resolve_scope(&registry, &arguments.patterns),
            "cli" => cli_model(&registry, &arguments),
            "error" => json!(registry.error()),
            "refresh" => {
                registry.reload();
                Value::Null
            }
            "models" => {
                registry.use_models_file(arguments.models);
                Value::Null
            }
            "registered" => json!(registry.extension_providers().names()),
            "name" => json!(registry.display_name(provider)),
            "authSource" => json!(registry.auth_source(provider)),
            "hasAuth" => json!(registry.has_auth(provider)),
            "usesOAuth" => json!(registry.uses_oauth(provider)),
            "auth.all" => Value::Object(auth.entries()),
            "auth.error" => json!(auth.error()),
            "auth.has" => json!(registry.has_own_auth(provider)),
            "auth.set" => {
                let Some(credential) = arguments.credential else {
                    return Err(HostError::new("authStorage.set: the credential is missing"));
                };
                return stored(auth.put(provider, credential));
            }
            "auth.remove" => return stored(registry.log_out(provider)),
            "auth.reload" => {
                auth.reload();
                registry.forget_models();
                Value::Null
            }
            "auth.runtime" => {
                auth.set_runtime_key(provider, &arguments.key);
                Value::Null
            }
            "signIns" => registry
                .sign_ins()
                .into_iter()
                .map(|(id, sign_in)| describe(&id, &*sign_in))
                .collect(),
            "copilot.url" => json!(copilot::base_url(&arguments.credentials)),
            "copilot.domain" => json!(copilot::normalize_domain(&arguments.key)),
            other => return Err(HostError::new(format!("There is no registry.{other}"))),
        })
    }

    /// Serves methods that take time.
    pub(super) async fn serve_registry_async(&self, method: &str, args: &str) -> BridgeResult {
        let arguments: RegistryArgs = parse(&format!("registry.{method}"), args)?;
        self.check_stale_registry(&arguments, args)?;
        let registry = self.registry_of(arguments.registry)?;
        let provider = arguments.provider.as_str();
        match method {
            "credentials" => {
                let model = arguments.model.unwrap_or_default();
                let known = match serde_json::from_value::<Model>(model.clone()) {
                    Ok(model) => Some(Arc::new(model)),
                    // For a model object made by hand only the name counts.
                    Err(_) => registry.find(
                        model["provider"].as_str().unwrap_or_default(),
                        model["id"].as_str().unwrap_or_default(),
                    ),
                };
                let Some(model) = known else {
                    let name = |member: &str| model[member].as_str().unwrap_or("?").to_owned();
                    let name = format!("{}/{}", name("provider"), name("id"));
                    return Ok(json!({ "ok": false, "error": format!("Model not found: {name}") }));
                };
                Ok(credentials_json(registry.credentials_or_none(&model).await))
            }
            // As in the original, a missing key is `null` and no error.
            "apiKey" => Ok(json!(registry.api_key(provider).await.ok())),
            "auth.key" => Ok(json!(registry.own_api_key(provider).await.ok())),
            "login" => {
                let generation = self.provider_registrations.generation();
                let generation = generation.ok_or_else(|| HostError::new("Login cancelled"))?;
                let dialog = Arc::new(CallbackDialog {
                    generation: Arc::downgrade(&generation),
                    token: arguments.token,
                });
                let sign_in = registry.sign_in(provider);
                let sign_in = sign_in.ok_or_else(|| unknown_provider(provider))?;
                let cancel = CancellationToken::new();
                // Aborts the request when the isolate ends.
                let _guard = cancel.clone().drop_guard();
                let found = sign_in.login(dialog, cancel).await;
                to_value(found.map_err(|error| to_host_error(&error))?)
            }
            "oauth.refresh" => {
                let sign_in = registry.sign_in(provider);
                let sign_in = sign_in.ok_or_else(|| unknown_provider(provider))?;
                let found = sign_in.refresh(arguments.credentials).await;
                to_value(found.map_err(|error| to_host_error(&error))?)
            }
            "oauth.key" => {
                let sign_in = registry.sign_in(provider);
                let sign_in = sign_in.ok_or_else(|| unknown_provider(provider))?;
                let mut credentials = arguments.credentials;
                if has_expired(&credentials) {
                    let renewed = sign_in.refresh(credentials).await;
                    credentials = renewed.map_err(|_| {
                        let text = format!("Failed to refresh OAuth token for {provider}");
                        HostError::new(text)
                    })?;
                }
                let key = sign_in.api_key(&credentials).await;
                let key = key.map_err(|error| to_host_error(&error))?;
                Ok(json!({ "newCredentials": credentials, "apiKey": key }))
            }
            other => Err(HostError::new(format!("There is no registry.{other}"))),
        }
    }
}

fn unknown_provider(provider: &str) -> HostError {
    HostError::new(format!("Unknown OAuth provider: {provider}"))
}

fn describe(id: &str, sign_in: &dyn SignIn) -> Value {
    json!({
        "id": id,
        "name": sign_in.name(),
        "usesCallbackServer": sign_in.uses_callback_server(),
        "modifies": sign_in.modifies_models(),
    })
}

/// Returns the result of `getApiKeyAndHeaders`.
fn credentials_json(found: Result<Credentials, AuthError>) -> Value {
    match found {
        Ok(found) => {
            let mut json = json!({ "ok": true });
            if let Some(key) = found.api_key {
                json["apiKey"] = json!(key);
            }
            if !found.headers.is_empty() {
                json["headers"] = json!(found.headers);
            }
            json
        }
        Err(error) => json!({ "ok": false, "error": error.to_string() }),
    }
}

/// A login dialog that is an object of the extension, with the original's callbacks.
struct CallbackDialog {
    generation: std::sync::Weak<super::Generation>,
    token: u64,
}

impl CallbackDialog {
    async fn call(&self, what: &str, json: Value) -> Option<String> {
        let generation = self.generation.upgrade()?;
        let call = json!({ "token": self.token, "what": what, "payload": json });
        let result = generation.call("answerLogin", &call).await.ok()??;
        serde_json::from_str(&result).ok()
    }
}

#[async_trait]
impl LoginDialog for CallbackDialog {
    async fn open(&self, url: &str, instructions: Option<&str>) {
        let json = json!({ "url": url, "instructions": instructions });
        self.call("onAuth", json).await;
    }

    async fn prompt(
        &self,
        message: &str,
        placeholder: Option<&str>,
        allow_empty: bool,
    ) -> Option<String> {
        let json = json!({
            "message": message,
            "placeholder": placeholder,
            "allowEmpty": allow_empty,
        });
        self.call("onPrompt", json).await
    }

    async fn progress(&self, message: &str) {
        self.call("onProgress", json!(message)).await;
    }

    async fn device(&self, code: &DeviceCode) {
        self.call("onDeviceCode", json!(code)).await;
    }

    async fn select(&self, message: &str, options: &[LoginOption]) -> Option<String> {
        let json = json!({ "message": message, "options": options });
        self.call("onSelect", json).await
    }

    async fn paste(&self) -> Option<String> {
        match self.call("onManualCodeInput", Value::Null).await {
            Some(text) => Some(text),
            // Without pasted text the login completes through the browser.
            None => std::future::pending().await,
        }
    }
}
