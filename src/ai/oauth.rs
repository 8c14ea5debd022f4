//! Signing in with a subscription instead of an API key: what such a provider can
//! do, wherever it is implemented, and those that come with the program.

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

use super::model::Model;

/// What is kept of a sign-in: `access`, `refresh`, `expires` (milliseconds since the
/// epoch) and whatever else the provider needs.
pub type OAuthCredentials = Map<String, Value>;

/// The sentence is for the user.
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
    /// For people.
    fn name(&self) -> String;

    /// A server on loopback waits for the browser; pasting the address is the way
    /// out when it cannot come here.
    fn uses_callback_server(&self) -> bool {
        false
    }

    async fn login(
        &self,
        dialog: Arc<dyn LoginDialog>,
        cancel: CancellationToken,
    ) -> Result<OAuthCredentials, SignInError>;

    /// New credentials for expired ones.
    async fn refresh(&self, credentials: OAuthCredentials)
    -> Result<OAuthCredentials, SignInError>;

    /// What requests carry.
    async fn api_key(&self, credentials: &OAuthCredentials) -> Result<String, SignInError> {
        match credentials.get("access").and_then(Value::as_str) {
            Some(access) => Ok(access.to_owned()),
            None => Err(SignInError::new("the credentials hold no access token")),
        }
    }

    /// Whether [`Self::modify_models`] does anything.
    fn modifies_models(&self) -> bool {
        false
    }

    /// Models of the provider as they are with these credentials.
    async fn modify_models(
        &self,
        models: Vec<Model>,
        _credentials: &OAuthCredentials,
    ) -> Result<Vec<Model>, SignInError> {
        Ok(models)
    }
}

/// What the user types elsewhere to let this program in.
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

/// Whoever can talk to the user while they sign in.
#[async_trait]
pub trait LoginDialog: Send + Sync {
    /// The user is to open this address.
    async fn open(&self, url: &str, instructions: Option<&str>);

    /// `None` if the user does not want to go on.
    async fn prompt(
        &self,
        message: &str,
        placeholder: Option<&str>,
        allow_empty: bool,
    ) -> Option<String>;

    async fn progress(&self, message: &str);

    /// The user is to type a code at this address, with any device.
    async fn device(&self, code: &DeviceCode) {
        let instructions = format!("Enter code: {}", code.user_code);
        self.open(&code.verification_uri, Some(&instructions)).await;
    }

    /// The id of what the user chooses; `None` if they choose nothing.
    async fn select(&self, message: &str, options: &[LoginOption]) -> Option<String>;

    /// Asks for the address that the browser ended at, while a server waits for the
    /// browser itself. `None` if the user does not say.
    async fn paste(&self) -> Option<String>;
}

/// Those that come with the program, in the order in which they are offered.
pub const BUILT_IN: [&str; 5] = [
    "anthropic",
    "github-copilot",
    "google-gemini-cli",
    "google-antigravity",
    "openai-codex",
];

/// `None` for a provider that is used with an API key only.
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
