//! Sign-in for GitHub Copilot: a device code instead of a local browser, and short-lived tokens
//! that are made from a long-lived one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use reqwest::{RequestBuilder, Url};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::code_flow::cancelled;
use super::tokens::{RENEWAL_MARGIN_MS, client, fetch_text, form, post, refresh_token, send};
use super::{LoginDialog, OAuthCredentials, SignIn, SignInError};
use crate::model::Model;
use crate::models::builtin;

const CLIENT: &str = "Iv1.b507a08c87ecfe98";
const PROVIDER: &str = "github-copilot";
/// Headers of a known editor: Copilot refuses other clients.
const HEADERS: [(&str, &str); 4] = [
    ("User-Agent", "GitHubCopilotChat/0.35.0"),
    ("Editor-Version", "vscode/1.107.0"),
    ("Editor-Plugin-Version", "copilot-chat/0.35.0"),
    ("Copilot-Integration-Id", "vscode-chat"),
];

#[derive(Default)]
pub(super) struct Copilot {
    /// A server that replaces GitHub, the API and Copilot in tests.
    pub server: Option<String>,
}

impl Copilot {
    fn url(&self, domain: &str, is_api: bool, path: &str) -> String {
        match &self.server {
            Some(server) => format!("{server}{path}"),
            None if is_api => format!("https://api.{domain}{path}"),
            None => format!("https://{domain}{path}"),
        }
    }

    async fn token(
        &self,
        github: &str,
        enterprise: Option<&str>,
    ) -> Result<OAuthCredentials, SignInError> {
        let domain = enterprise.unwrap_or("github.com");
        let url = self.url(domain, true, "/copilot_internal/v2/token");
        let request = with_headers(client()?.get(url))
            .header("accept", "application/json")
            .bearer_auth(github);
        let found = send("Copilot token request", request).await?;
        let (Some(token), Some(expires)) = (found["token"].as_str(), found["expires_at"].as_f64())
        else {
            return Err(SignInError::new("Invalid Copilot token response fields"));
        };
        let mut credentials = OAuthCredentials::from_iter([
            ("refresh".to_owned(), json!(github)),
            ("access".to_owned(), json!(token)),
            (
                "expires".to_owned(),
                json!((expires * 1000.0) as i64 - RENEWAL_MARGIN_MS),
            ),
        ]);
        if let Some(domain) = enterprise {
            credentials.insert("enterpriseUrl".into(), json!(domain));
        }
        Ok(credentials)
    }

    /// Returns GitHub's token once the user has entered the code.
    async fn device(&self, domain: &str, dialog: &dyn LoginDialog) -> Result<String, SignInError> {
        let url = self.url(domain, false, "/login/device/code");
        let request = post(&url)?.header("accept", "application/json");
        let request = form(request, &[("client_id", CLIENT), ("scope", "read:user")]);
        let device = send(
            "The device flow",
            request.header(HEADERS[0].0, HEADERS[0].1),
        )
        .await?;
        let text = |name: &str| device[name].as_str();
        let (Some(code), Some(shown), Some(page), Some(interval), Some(lifetime)) = (
            text("device_code"),
            text("user_code"),
            text("verification_uri"),
            device["interval"].as_f64(),
            device["expires_in"].as_f64(),
        ) else {
            return Err(SignInError::new("Invalid device code response fields"));
        };
        let instructions = format!("Enter code: {shown}");
        dialog.open(page, Some(&instructions)).await;
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let deadline = Instant::now() + seconds(lifetime.min(24.0 * 3600.0));
        // The interval is a little longer than requested, because clocks differ.
        let mut pause = seconds(interval.max(1.0)).mul_f64(1.2);
        while Instant::now() < deadline {
            tokio::time::sleep(pause).await;
            let url = self.url(domain, false, "/login/oauth/access_token");
            let request = post(&url)?.header("accept", "application/json");
            let request = form(
                request,
                &[
                    ("client_id", CLIENT),
                    ("device_code", code),
                    ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
                ],
            );
            let request = request.header(HEADERS[0].0, HEADERS[0].1);
            let response = send("The device flow", request).await?;
            if let Some(token) = response["access_token"].as_str() {
                return Ok(token.to_owned());
            }
            match response["error"].as_str() {
                None | Some("authorization_pending") => {}
                Some("slow_down") => {
                    let interval = response["interval"].as_f64().map(seconds);
                    pause = interval
                        .unwrap_or(pause + Duration::from_secs(5))
                        .mul_f64(1.4);
                }
                Some(error) => {
                    let more = response["error_description"].as_str();
                    let more = more.map(|text| format!(": {text}")).unwrap_or_default();
                    return Err(SignInError::new(format!(
                        "Device flow failed: {error}{more}"
                    )));
                }
            }
        }
        Err(SignInError::new("Device flow timed out"))
    }

    /// Accepts the terms of models that require it. Failures are ignored.
    async fn enable_models(&self, credentials: &OAuthCredentials) -> Result<(), SignInError> {
        let token = credentials["access"].as_str().unwrap_or_default();
        let base = match &self.server {
            Some(server) => server.clone(),
            None => base_url(credentials),
        };
        let client = client()?;
        let models = builtin::provider(PROVIDER).map(|provider| provider.load().models);
        let enable = models.into_iter().flatten().map(|model| {
            let request = with_headers(client.post(format!("{base}/models/{}/policy", model.id)))
                .bearer_auth(token)
                .header("openai-intent", "chat-policy")
                .header("x-interaction-type", "chat-policy")
                .json(&json!({ "state": "enabled" }));
            async move { fetch_text("", request).await.is_ok() }
        });
        join_all(enable).await;
        Ok(())
    }
}

fn with_headers(request: RequestBuilder) -> RequestBuilder {
    HEADERS.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    })
}

/// Returns the account's server, which is part of the token.
pub fn base_url(credentials: &OAuthCredentials) -> String {
    let text = |name: &str| credentials.get(name).and_then(Value::as_str);
    let token = text("access").unwrap_or_default();
    let proxy = token
        .split_once("proxy-ep=")
        .map(|(_, rest)| rest.split(';').next().unwrap_or_default())
        .filter(|host| !host.is_empty());
    if let Some(host) = proxy {
        let host = match host.strip_prefix("proxy.") {
            Some(rest) => format!("api.{rest}"),
            None => host.to_owned(),
        };
        return format!("https://{host}");
    }
    match text("enterpriseUrl").and_then(normalize_domain) {
        Some(domain) => format!("https://copilot-api.{domain}"),
        None => "https://api.individual.githubcopilot.com".into(),
    }
}

/// Returns `None` if the text is no domain.
pub fn normalize_domain(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let url = match text.contains("://") {
        true => Url::parse(text),
        false => Url::parse(&format!("https://{text}")),
    };
    Some(url.ok()?.host_str()?.to_owned())
}

#[async_trait]
impl SignIn for Copilot {
    fn name(&self) -> String {
        "GitHub Copilot".into()
    }

    async fn login(
        &self,
        dialog: Arc<dyn LoginDialog>,
        cancel: CancellationToken,
    ) -> Result<OAuthCredentials, SignInError> {
        let work = async {
            let message = "GitHub Enterprise URL/domain (blank for github.com)";
            let typed = dialog.prompt(message, Some("company.ghe.com"), true).await;
            let typed = typed.ok_or_else(cancelled)?;
            let enterprise = normalize_domain(&typed);
            if enterprise.is_none() && !typed.trim().is_empty() {
                return Err(SignInError::new("Invalid GitHub Enterprise URL/domain"));
            }
            let domain = enterprise.as_deref().unwrap_or("github.com");
            let github = self.device(domain, &*dialog).await?;
            let credentials = self.token(&github, enterprise.as_deref()).await?;
            dialog.progress("Enabling models...").await;
            self.enable_models(&credentials).await?;
            Ok(credentials)
        };
        tokio::select! {
            done = work => done,
            () = cancel.cancelled() => Err(cancelled()),
        }
    }

    async fn refresh(
        &self,
        credentials: OAuthCredentials,
    ) -> Result<OAuthCredentials, SignInError> {
        let enterprise = credentials.get("enterpriseUrl").and_then(Value::as_str);
        self.token(refresh_token(&credentials)?, enterprise).await
    }

    fn modifies_models(&self) -> bool {
        true
    }

    async fn modify_models(
        &self,
        mut models: Vec<Model>,
        credentials: &OAuthCredentials,
    ) -> Result<Vec<Model>, SignInError> {
        let url = base_url(credentials);
        for model in models.iter_mut().filter(|model| model.provider == PROVIDER) {
            model.base_url.clone_from(&url);
        }
        Ok(models)
    }
}
