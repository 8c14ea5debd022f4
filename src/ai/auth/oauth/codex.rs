//! Sign-in for ChatGPT Plus and Pro (`openai-codex`).

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::code_flow::{Grant, Request, random};
use super::tokens::{credentials, form, post, refresh_token, send};
use super::{LoginDialog, OAuthCredentials, SignIn, SignInError};

const CLIENT: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
const SCOPE: &str = "openid profile email offline_access";

/// Addresses of the sign-in.
pub(super) struct Codex {
    pub authorize: String,
    pub token: String,
    pub redirect: String,
}

impl Default for Codex {
    fn default() -> Self {
        Self {
            authorize: "https://auth.openai.com/oauth/authorize".into(),
            token: "https://auth.openai.com/oauth/token".into(),
            redirect: "http://localhost:1455/auth/callback".into(),
        }
    }
}

impl Codex {
    async fn request_tokens(
        &self,
        what: &str,
        fields: &[(&str, &str)],
    ) -> Result<OAuthCredentials, SignInError> {
        let answer = send(what, form(post(&self.token)?, fields)).await?;
        let mut found = credentials(what, &answer, None, 0)?;
        let access = found["access"].as_str().unwrap_or_default();
        let account = account_id(access)
            .ok_or_else(|| SignInError::new("Failed to extract accountId from token"))?;
        found.insert("accountId".into(), account.into());
        Ok(found)
    }
}

/// Returns the account id in a token of OpenAI.
pub(crate) fn account_id(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let id = claims["https://api.openai.com/auth"]["chatgpt_account_id"].as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

#[async_trait]
impl SignIn for Codex {
    fn name(&self) -> String {
        "ChatGPT Plus/Pro (Codex Subscription)".into()
    }

    fn uses_callback_server(&self) -> bool {
        true
    }

    async fn login(
        &self,
        dialog: Arc<dyn LoginDialog>,
        cancel: CancellationToken,
    ) -> Result<OAuthCredentials, SignInError> {
        let request = Request {
            authorize: &self.authorize,
            client: CLIENT,
            scope: SCOPE,
            redirect: &self.redirect,
            state: Some(random(16)),
            extra_params: &[
                ("id_token_add_organizations", "true"),
                ("codex_cli_simplified_flow", "true"),
                ("originator", "pi"),
            ],
            instructions: "A browser window should open. Complete login to finish.",
        };
        let Grant { code, verifier, .. } = request.grant(&dialog, &cancel).await?;
        self.request_tokens(
            "Token exchange",
            &[
                ("grant_type", "authorization_code"),
                ("client_id", CLIENT),
                ("code", &code),
                ("code_verifier", &verifier),
                ("redirect_uri", &self.redirect),
            ],
        )
        .await
    }

    async fn refresh(
        &self,
        credentials: OAuthCredentials,
    ) -> Result<OAuthCredentials, SignInError> {
        self.request_tokens(
            "OpenAI Codex token refresh",
            &[
                ("grant_type", "refresh_token"),
                ("refresh_token", refresh_token(&credentials)?),
                ("client_id", CLIENT),
            ],
        )
        .await
    }
}
