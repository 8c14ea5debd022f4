//! Sign-in with functions of an extension: `oauth` of `pi.registerProvider`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bridge::{BridgeHost, BridgeResult, parse};
use crate::registry::{ExtensionId, FunctionId};
use pi_ai::auth::oauth::{
    DeviceCode, LoginDialog, LoginOption, OAuthCredentials, SignIn, SignInError,
};
use pi_ai::model::Model;

/// Open login dialogs.
#[derive(Default)]
pub(super) struct LoginDialogs {
    open: Mutex<HashMap<u64, Arc<dyn LoginDialog>>>,
    tokens: AtomicU64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoginArgs {
    token: u64,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    placeholder: Option<String>,
    #[serde(default)]
    allow_empty: bool,
    #[serde(default)]
    options: Vec<LoginOption>,
}

impl LoginDialogs {
    pub(super) async fn serve(&self, method: &str, args: &str) -> BridgeResult {
        let login: LoginArgs = parse(method, args)?;
        let dialog = self.open.lock().get(&login.token).cloned();
        let dialog = dialog.ok_or_else(|| HostError::new("Login cancelled"))?;
        let message = login.message.as_deref().unwrap_or_default();
        let input = match method {
            "open" => {
                let url = login.url.as_deref().unwrap_or_default();
                dialog.open(url, login.instructions.as_deref()).await;
                return Ok(Value::Null);
            }
            "progress" => {
                dialog.progress(message).await;
                return Ok(Value::Null);
            }
            "prompt" => {
                let placeholder = login.placeholder.as_deref();
                dialog.prompt(message, placeholder, login.allow_empty).await
            }
            "device" => {
                dialog.device(&parse::<DeviceCode>(method, args)?).await;
                return Ok(Value::Null);
            }
            // An empty selection is a valid answer.
            "select" => return Ok(json!(dialog.select(message, &login.options).await)),
            "paste" => dialog.paste().await,
            other => return Err(HostError::new(format!("There is no login.{other}"))),
        };
        input
            .map(Value::String)
            .ok_or_else(|| HostError::new("Login cancelled"))
    }
}

pub(super) struct ExtensionSignIn {
    pub host: Weak<BridgeHost>,
    pub extension: ExtensionId,
    pub id: FunctionId,
    pub name: String,
    pub uses_callback_server: bool,
    pub modifies: bool,
}

impl ExtensionSignIn {
    fn host(&self) -> Result<Arc<BridgeHost>, SignInError> {
        let gone = || {
            SignInError::new(format!(
                "The extension that signs in to {} is not loaded any more",
                self.name
            ))
        };
        self.host.upgrade().ok_or_else(gone)
    }

    /// Calls one of the functions, with the limit of handlers.
    async fn call_function<T: DeserializeOwned>(
        &self,
        function: &str,
        more: Value,
    ) -> Result<T, SignInError> {
        let host = self.host()?;
        let Some(generation) = host.provider_registrations.generation() else {
            return Err(SignInError::new("The extension is not loaded any more"));
        };
        let call = json!({
            "extension": self.extension,
            "id": self.id,
            "function": function,
            "args": more,
        });
        let limit = generation.timeouts.handler;
        let what = || format!("oauth.{function} of {}", self.name);
        let result = generation
            .call_within(self.extension, "oauth", limit, what, "callSignIn", &call)
            .await
            .map_err(|failure| SignInError::new(failure.plain()))?;
        self.parse_result(function, result)
    }

    fn parse_result<T: DeserializeOwned>(
        &self,
        function: &str,
        result: Option<String>,
    ) -> Result<T, SignInError> {
        // The error omits the content, which contains keys.
        serde_json::from_str(&result.unwrap_or_default()).map_err(|_| {
            SignInError::new(format!(
                "oauth.{function} of {} gave something that cannot be used",
                self.name
            ))
        })
    }
}

#[async_trait]
impl SignIn for ExtensionSignIn {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn uses_callback_server(&self) -> bool {
        self.uses_callback_server
    }

    /// Has no limit: the user sees the login and can cancel it.
    async fn login(
        &self,
        dialog: Arc<dyn LoginDialog>,
        cancel: CancellationToken,
    ) -> Result<OAuthCredentials, SignInError> {
        let host = self.host()?;
        let Some(generation) = host.provider_registrations.generation() else {
            return Err(SignInError::new("The extension is not loaded any more"));
        };
        let dialogs = &host.provider_registrations.dialogs;
        let token = dialogs.tokens.fetch_add(1, Ordering::Relaxed);
        dialogs.open.lock().insert(token, dialog);
        let call = json!({
            "extension": self.extension,
            "id": self.id,
            "token": token,
            "pastes": self.uses_callback_server,
        });
        let result = tokio::select! {
            result = generation.call("login", &call) => {
                result.map_err(|failure| SignInError::new(failure.plain()))
            }
            () = cancel.cancelled() => {
                // Fails only if the extension is gone.
                let _ = generation.call("abortLogin", &token).await;
                Err(SignInError::new("Login cancelled"))
            }
        };
        dialogs.open.lock().remove(&token);
        self.parse_result("login", result?)
    }

    async fn refresh(
        &self,
        credentials: OAuthCredentials,
    ) -> Result<OAuthCredentials, SignInError> {
        self.call_function("refreshToken", json!([credentials]))
            .await
    }

    async fn api_key(&self, credentials: &OAuthCredentials) -> Result<String, SignInError> {
        self.call_function("getApiKey", json!([credentials])).await
    }

    fn modifies_models(&self) -> bool {
        self.modifies
    }

    async fn modify_models(
        &self,
        models: Vec<Model>,
        credentials: &OAuthCredentials,
    ) -> Result<Vec<Model>, SignInError> {
        self.call_function("modifyModels", json!([models, credentials]))
            .await
    }
}
