//! Sign-in for Claude Pro and Max.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::code_flow::{Grant, Request};
use super::tokens::{RENEWAL_MARGIN_MS, credentials, post, refresh_token, send};
use super::{LoginDialog, OAuthCredentials, SignIn, SignInError};

const CLIENT: &str = "9d1c250a-e61b-44d9-88ed-5944d1962f5e";
const SCOPES: &str = "org:create_api_key user:profile user:inference user:sessions:claude_code \
                      user:mcp_servers user:file_upload";

/// Addresses of the sign-in.
pub(super) struct Anthropic {
    pub authorize: String,
    pub token: String,
    pub redirect: String,
}

impl Default for Anthropic {
    fn default() -> Self {
        Self {
            authorize: "https://claude.ai/oauth/authorize".into(),
            token: "https://platform.claude.com/v1/oauth/token".into(),
            redirect: "http://localhost:53692/callback".into(),
        }
    }
}

impl Anthropic {
    async fn request_tokens(
        &self,
        what: &str,
        body: Value,
    ) -> Result<OAuthCredentials, SignInError> {
        let request = post(&self.token)?
            .header("accept", "application/json")
            .json(&body);
        let before = body["refresh_token"].as_str();
        credentials(what, &send(what, request).await?, before, RENEWAL_MARGIN_MS)
    }
}

#[async_trait]
impl SignIn for Anthropic {
    fn name(&self) -> String {
        "Anthropic (Claude Pro/Max)".into()
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
            scope: SCOPES,
            redirect: &self.redirect,
            state: None,
            extra_params: &[("code", "true")],
            instructions: "Complete login in your browser. If the browser is on another machine, paste the final redirect URL here.",
        };
        let Grant {
            code,
            verifier,
            state,
        } = request.grant(&dialog, &cancel).await?;
        dialog
            .progress("Exchanging authorization code for tokens...")
            .await;
        let body = json!({
            "grant_type": "authorization_code",
            "client_id": CLIENT,
            "code": code,
            "state": state,
            "redirect_uri": self.redirect,
            "code_verifier": verifier,
        });
        self.request_tokens("Token exchange", body).await
    }

    async fn refresh(
        &self,
        credentials: OAuthCredentials,
    ) -> Result<OAuthCredentials, SignInError> {
        let body = json!({
            "grant_type": "refresh_token",
            "client_id": CLIENT,
            "refresh_token": refresh_token(&credentials)?,
        });
        self.request_tokens("Anthropic token refresh", body).await
    }
}
