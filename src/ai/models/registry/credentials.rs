//! Credentials of requests, and the errors of getting them.

use std::fmt;

use indexmap::IndexMap;

use crate::auth::secret_value::SecretError;

/// Key and headers of a request.
#[derive(Clone, Default, PartialEq)]
pub struct Credentials {
    /// `None` only if no key is needed.
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
        "Authentication failed for \"{provider}\". Its sign-in has expired and could not be renewed ({reason}). Sign in again with /login {provider}, or remove it from {path} and use an API key.\n\n{advice}"
    )]
    Expired {
        provider: String,
        reason: String,
        path: String,
        advice: String,
    },
    #[error(
        "Authentication failed for \"{provider}\". Its sign-in returned no key ({reason}). If the error comes again, sign in again with /login {provider}"
    )]
    NoKeyOfSignIn { provider: String, reason: String },
    #[error(transparent)]
    Secret(#[from] SecretError),
}
