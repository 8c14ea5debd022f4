//! Sign-in with Google accounts, for Gemini CLI and Antigravity: the code flow, and then the
//! project for requests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::code_flow::{Grant, Request, cancelled};
use super::tokens::{
    RENEWAL_MARGIN_MS, client, credentials, fetch_text, form, post, refresh_token, send,
};
use super::{LoginDialog, OAuthCredentials, SignIn, SignInError};
use crate::auth::secret_value::Env;

const FREE_TIER: &str = "free-tier";
/// Project of Antigravity for users without a project of their own.
const ANTIGRAVITY_PROJECT: &str = "rising-fact-p41fc";
const NO_PROJECT: &str = "This account requires setting the GOOGLE_CLOUD_PROJECT or GOOGLE_CLOUD_PROJECT_ID environment variable. See https://goo.gle/gemini-cli-auth-docs#workspace-gca";

/// One of the two programs for which the user signs in.
pub(super) struct Google {
    name: &'static str,
    what: &'static str,
    /// Id and "secret" of the program. They are part of every copy of it and authorise nothing;
    /// they are encoded because scanners report them.
    client: [&'static str; 2],
    redirect: &'static str,
    scopes: &'static [&'static str],
    antigravity: bool,
    /// A server that replaces all servers of Google in tests.
    pub server: Option<String>,
    env: Env,
}

impl Google {
    pub(super) fn gemini_cli() -> Self {
        Self {
            name: "Google Cloud Code Assist (Gemini CLI)",
            what: "Google Cloud token refresh",
            client: [
                "NjgxMjU1ODA5Mzk1LW9vOGZ0Mm9wcmRybnA5ZTNhcWY2YXYzaG1kaWIxMzVqLmFwcHMuZ29vZ2xldXNlcmNvbnRlbnQuY29t",
                "R09DU1BYLTR1SGdNUG0tMW83U2stZ2VWNkN1NWNsWEZzeGw=",
            ],
            redirect: "http://localhost:8085/oauth2callback",
            scopes: &["cloud-platform", "userinfo.email", "userinfo.profile"],
            antigravity: false,
            server: None,
            env: Env::process(),
        }
    }

    pub(super) fn antigravity() -> Self {
        Self {
            name: "Antigravity (Gemini 3, Claude, GPT-OSS)",
            what: "Antigravity token refresh",
            client: [
                "MTA3MTAwNjA2MDU5MS10bWhzc2luMmgyMWxjcmUyMzV2dG9sb2poNGc0MDNlcC5hcHBzLmdvb2dsZXVzZXJjb250ZW50LmNvbQ==",
                "R09DU1BYLUs1OEZXUjQ4NkxkTEoxbUxCOHNYQzR6NnFEQWY=",
            ],
            redirect: "http://localhost:51121/oauth-callback",
            scopes: &[
                "cloud-platform",
                "userinfo.email",
                "userinfo.profile",
                "cclog",
                "experimentsandconfigs",
            ],
            antigravity: true,
            server: None,
            env: Env::process(),
        }
    }

    fn client_part(&self, part: usize) -> String {
        let decoded = STANDARD.decode(self.client[part]).unwrap_or_default();
        String::from_utf8_lossy(&decoded).into_owned()
    }

    fn url(&self, host: &str, path: &str) -> String {
        match &self.server {
            Some(server) => format!("{server}{path}"),
            None => format!("https://{host}{path}"),
        }
    }

    /// Sends a request to the token endpoint.
    async fn request_tokens(
        &self,
        what: &str,
        fields: &[(&str, &str)],
        before: Option<&str>,
    ) -> Result<OAuthCredentials, SignInError> {
        let (id, secret) = (self.client_part(0), self.client_part(1));
        let mut all = vec![("client_id", id.as_str()), ("client_secret", &secret)];
        all.extend(fields);
        let request = post(&self.url("oauth2.googleapis.com", "/token"))?;
        let answer = send(what, form(request, &all)).await?;
        credentials(what, &answer, before, RENEWAL_MARGIN_MS)
    }

    fn with_headers(&self, request: RequestBuilder, access: &str) -> RequestBuilder {
        let request = request
            .bearer_auth(access)
            .header("user-agent", "google-api-nodejs-client/9.15.1");
        match self.antigravity {
            false => request.header("x-goog-api-client", "gl-node/22.17.0"),
            true => request
                .header(
                    "x-goog-api-client",
                    "google-cloud-sdk vscode_cloudshelleditor/0.1",
                )
                .header("client-metadata", metadata().to_string()),
        }
    }

    /// Returns the account's email address; failures are ignored.
    async fn email(&self, access: &str) -> Option<String> {
        let url = self.url("www.googleapis.com", "/oauth2/v1/userinfo?alt=json");
        let request = client().ok()?.get(url).bearer_auth(access);
        let found = send("The account's name", request).await.ok()?;
        found["email"].as_str().map(str::to_owned)
    }

    async fn antigravity_project(&self, access: &str, dialog: &dyn LoginDialog) -> String {
        dialog.progress("Checking for existing project...").await;
        for host in [
            "cloudcode-pa.googleapis.com",
            "daily-cloudcode-pa.sandbox.googleapis.com",
        ] {
            let url = self.url(host, "/v1internal:loadCodeAssist");
            let Ok(request) = post(&url) else { continue };
            let request = self
                .with_headers(request, access)
                .json(&json!({ "metadata": metadata() }));
            let found = send("loadCodeAssist", request).await.unwrap_or_default();
            let project = &found["cloudaicompanionProject"];
            let project = project.as_str().or(project["id"].as_str());
            if let Some(project) = project.filter(|id| !id.is_empty()) {
                return project.to_owned();
            }
        }
        dialog.progress("Using default project...").await;
        ANTIGRAVITY_PROJECT.to_owned()
    }

    async fn gemini_project(
        &self,
        access: &str,
        dialog: &dyn LoginDialog,
    ) -> Result<String, SignInError> {
        const HOST: &str = "cloudcode-pa.googleapis.com";
        let names = ["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_PROJECT_ID"];
        let own = names.iter().find_map(|name| self.env.get(name));
        let text = "Checking for existing Cloud Code Assist project...";
        dialog.progress(text).await;
        let mut about = json!({ "metadata": metadata() });
        if let Some(own) = &own {
            about["cloudaicompanionProject"] = json!(own);
            about["metadata"]["duetProject"] = json!(own);
        }
        let request = post(&self.url(HOST, "/v1internal:loadCodeAssist"))?;
        let request = self.with_headers(request, access).json(&about);
        let (status, body) = fetch_text("loadCodeAssist", request).await?;
        let mut found: Value = serde_json::from_str(&body).unwrap_or_default();
        if !(200..300).contains(&status) {
            // Companies with such a policy have a tier.
            if !body.contains("SECURITY_POLICY_VIOLATED") {
                let text = format!("loadCodeAssist failed: {status} {body}");
                return Err(SignInError::new(text));
            }
            found = json!({ "currentTier": { "id": "standard-tier" } });
        }
        if found["currentTier"].is_object() {
            let project = found["cloudaicompanionProject"].as_str();
            let project = project.filter(|id| !id.is_empty()).map(str::to_owned);
            return project.or(own).ok_or_else(|| SignInError::new(NO_PROJECT));
        }
        let tiers = found["allowedTiers"].as_array().into_iter().flatten();
        let tier = tiers.into_iter().find(|tier| tier["isDefault"] == true);
        let tier = tier.map_or("legacy-tier", |tier| {
            tier["id"].as_str().unwrap_or(FREE_TIER)
        });
        // Google creates a project for users of the free tier.
        let mut onboard = json!({ "tierId": tier, "metadata": metadata() });
        match &own {
            _ if tier == FREE_TIER => {}
            None => return Err(SignInError::new(NO_PROJECT)),
            Some(own) => {
                onboard["cloudaicompanionProject"] = json!(own);
                onboard["metadata"]["duetProject"] = json!(own);
            }
        }
        let text = "Provisioning Cloud Code Assist project (this may take a moment)...";
        dialog.progress(text).await;
        let request = post(&self.url(HOST, "/v1internal:onboardUser"))?;
        let request = self.with_headers(request, access).json(&onboard);
        let mut work = send("onboardUser", request).await?;
        while work["done"] != true
            && let Some(name) = work["name"].as_str()
        {
            let url = self.url(HOST, &format!("/v1internal/{name}"));
            let request = self.with_headers(client()?.get(url), access);
            work = send("The setup of the project", request).await?;
            if work["done"] != true {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        }
        let made = work.pointer("/response/cloudaicompanionProject/id");
        let made = made.and_then(Value::as_str).map(str::to_owned);
        made.or(own).ok_or_else(|| SignInError::new(NO_PROJECT))
    }
}

fn metadata() -> Value {
    json!({
        "ideType": "IDE_UNSPECIFIED",
        "platform": "PLATFORM_UNSPECIFIED",
        "pluginType": "GEMINI",
    })
}

#[async_trait]
impl SignIn for Google {
    fn name(&self) -> String {
        self.name.into()
    }

    fn uses_callback_server(&self) -> bool {
        true
    }

    async fn login(
        &self,
        dialog: Arc<dyn LoginDialog>,
        cancel: CancellationToken,
    ) -> Result<OAuthCredentials, SignInError> {
        let scopes = self.scopes.iter();
        let scopes: Vec<String> = scopes
            .map(|scope| format!("https://www.googleapis.com/auth/{scope}"))
            .collect();
        let request = Request {
            authorize: &self.url("accounts.google.com", "/o/oauth2/v2/auth"),
            client: &self.client_part(0),
            scope: &scopes.join(" "),
            redirect: self.redirect,
            state: None,
            extra_params: &[("access_type", "offline"), ("prompt", "consent")],
            instructions: "Complete the sign-in in your browser.",
        };
        let Grant { code, verifier, .. } = request.grant(&dialog, &cancel).await?;
        let work = async {
            dialog
                .progress("Exchanging authorization code for tokens...")
                .await;
            let fields = [
                ("code", code.as_str()),
                ("grant_type", "authorization_code"),
                ("redirect_uri", self.redirect),
                ("code_verifier", &verifier),
            ];
            let mut found = self.request_tokens("Token exchange", &fields, None).await?;
            let access = found["access"].as_str().unwrap_or_default().to_owned();
            let email = self.email(&access).await;
            let project = match self.antigravity {
                true => self.antigravity_project(&access, &*dialog).await,
                false => self.gemini_project(&access, &*dialog).await?,
            };
            found.insert("projectId".into(), json!(project));
            if let Some(email) = email {
                found.insert("email".into(), json!(email));
            }
            Ok(found)
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
        let Some(project) = credentials.get("projectId").filter(|id| id.is_string()) else {
            return Err(SignInError::new(
                "Google Cloud credentials missing projectId",
            ));
        };
        let token = refresh_token(&credentials)?;
        let fields = [("refresh_token", token), ("grant_type", "refresh_token")];
        let mut found = self.request_tokens(self.what, &fields, Some(token)).await?;
        found.insert("projectId".into(), project.clone());
        Ok(found)
    }

    /// Returns token and project, because the API requires both.
    async fn api_key(&self, credentials: &OAuthCredentials) -> Result<String, SignInError> {
        let (access, project) = (credentials.get("access"), credentials.get("projectId"));
        Ok(json!({ "token": access, "projectId": project }).to_string())
    }
}
