//! Signing in with a subscription instead of an API key: the interface of all such providers, and
//! the built-in ones.

mod anthropic;
mod code_flow;
mod codex;
pub mod copilot;
mod google;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use codex::account_id;

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::model::Model;

/// Stored result of a sign-in: `access`, `refresh`, `expires` (milliseconds since the epoch) and
/// any other members that the provider needs.
pub type OAuthCredentials = Map<String, Value>;

/// An error with a text for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SignInError(pub String);

impl SignInError {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// A provider that users sign in to.
#[async_trait]
pub trait SignIn: Send + Sync {
    /// Returns the display name.
    fn name(&self) -> String;

    /// Returns true if a local server waits for the browser. If the browser cannot reach it, the
    /// user can paste the address.
    fn uses_callback_server(&self) -> bool {
        false
    }

    async fn login(
        &self,
        dialog: Arc<dyn LoginDialog>,
        cancel: CancellationToken,
    ) -> Result<OAuthCredentials, SignInError>;

    /// Renews expired credentials.
    async fn refresh(&self, credentials: OAuthCredentials)
    -> Result<OAuthCredentials, SignInError>;

    /// Returns the key for requests.
    async fn api_key(&self, credentials: &OAuthCredentials) -> Result<String, SignInError> {
        match credentials.get("access").and_then(Value::as_str) {
            Some(access) => Ok(access.to_owned()),
            None => Err(SignInError::new("the credentials hold no access token")),
        }
    }

    /// Returns true if [`Self::modify_models`] changes models.
    fn modifies_models(&self) -> bool {
        false
    }

    /// Returns the provider's models as these credentials provide them.
    async fn modify_models(
        &self,
        models: Vec<Model>,
        _credentials: &OAuthCredentials,
    ) -> Result<Vec<Model>, SignInError> {
        Ok(models)
    }
}

/// A code that the user enters on another device or page to authorise this program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCode {
    pub user_code: String,
    pub verification_uri: String,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct LoginOption {
    pub id: String,
    pub label: String,
}

/// Interaction with the user during a sign-in.
#[async_trait]
pub trait LoginDialog: Send + Sync {
    /// Asks the user to open this address.
    async fn open(&self, url: &str, instructions: Option<&str>);

    /// Asks for a text. Returns `None` if the user cancels.
    async fn prompt(
        &self,
        message: &str,
        placeholder: Option<&str>,
        allow_empty: bool,
    ) -> Option<String>;

    async fn progress(&self, message: &str);

    /// Asks the user to enter a code at this address, on any device.
    async fn device(&self, code: &DeviceCode) {
        let instructions = format!("Enter code: {}", code.user_code);
        self.open(&code.verification_uri, Some(&instructions)).await;
    }

    /// Returns the id of the option that the user chooses; `None` if the user cancels.
    async fn select(&self, message: &str, options: &[LoginOption]) -> Option<String>;

    /// Asks for the address at which the browser ended, while a server waits for the browser.
    /// Returns `None` if the user gives none.
    async fn paste(&self) -> Option<String>;
}

/// Built-in providers, in the order in which they are offered.
pub const BUILT_IN: [&str; 5] = [
    "anthropic",
    "github-copilot",
    "google-gemini-cli",
    "google-antigravity",
    "openai-codex",
];

/// Returns `None` for a provider that is used with an API key only.
pub fn built_in(id: &str) -> Option<Arc<dyn SignIn>> {
    Some(match id {
        "anthropic" => Arc::new(anthropic::Anthropic::default()),
        "github-copilot" => Arc::new(copilot::Copilot::default()),
        "google-gemini-cli" => Arc::new(google::Google::gemini_cli()),
        "google-antigravity" => Arc::new(google::Google::antigravity()),
        "openai-codex" => Arc::new(codex::Codex::default()),
        _ => return None,
    })
}
