//! Signing in to providers and out, by dialogs.

use std::sync::{Arc, Weak};

use async_trait::async_trait;

use super::AgentSession;
use pi_agent::event::{UiAnswer, UiMethod};
use pi_ai::auth::oauth::{LoginDialog, LoginOption, SignInError};

impl AgentSession {
    /// Signs in to a provider. An abort outside of a run cancels it.
    pub async fn log_in(&self, provider: &str) -> Result<(), SignInError> {
        let dialog = Arc::new(Dialog(Arc::downgrade(&self.arc())));
        let cancel = self.handler_cancel.token().child_token();
        let ended = self.user_commands.cancel.clone();
        let guard = cancel.clone();
        let login = self.models.log_in(provider, dialog, cancel);
        tokio::select! {
            done = login => done?,
            () = ended.cancelled() => {
                guard.cancel();
                return Err(SignInError::new("Login cancelled"));
            }
        }
        self.refresh_model();
        Ok(())
    }

    /// Removes the stored credentials of a provider.
    pub fn log_out(&self, provider: &str) -> Result<(), String> {
        let done = self.models.log_out(provider);
        self.refresh_model();
        done.map_err(|error| error.to_string())
    }
}

/// Dialogs of a sign-in. When the session is gone each answer is `None`.
struct Dialog(Weak<AgentSession>);

impl Dialog {
    async fn ask_text(&self, title: String, placeholder: Option<String>) -> Option<String> {
        let method = UiMethod::Input {
            title,
            placeholder,
            timeout: None,
        };
        match self.0.upgrade()?.show_dialog(method).await {
            UiAnswer::Value(text) => Some(text),
            UiAnswer::Confirmed(_) | UiAnswer::Cancelled => None,
        }
    }

    async fn notify(&self, text: String) {
        if let Some(session) = self.0.upgrade() {
            session.notify(text, "info").await;
        }
    }
}

#[async_trait]
impl LoginDialog for Dialog {
    async fn open(&self, url: &str, instructions: Option<&str>) {
        let more = instructions.map(|text| format!("\n{text}"));
        self.notify(format!("Open {url}{}", more.unwrap_or_default()))
            .await;
    }

    async fn prompt(
        &self,
        message: &str,
        placeholder: Option<&str>,
        allow_empty: bool,
    ) -> Option<String> {
        loop {
            let title = message.to_owned();
            let answer = self.ask_text(title, placeholder.map(str::to_owned)).await?;
            if allow_empty || !answer.trim().is_empty() {
                return Some(answer);
            }
        }
    }

    async fn progress(&self, message: &str) {
        self.notify(message.to_owned()).await;
    }

    async fn select(&self, message: &str, options: &[LoginOption]) -> Option<String> {
        let method = UiMethod::Select {
            title: message.to_owned(),
            options: options.iter().map(|option| option.label.clone()).collect(),
            timeout: None,
        };
        let UiAnswer::Value(chosen) = self.0.upgrade()?.show_dialog(method).await else {
            return None;
        };
        let chosen = options.iter().find(|option| option.label == chosen);
        chosen.map(|option| option.id.clone())
    }

    async fn paste(&self) -> Option<String> {
        let message = "Waiting for the browser. Or paste the address that it ended at:";
        self.prompt(message, None, false).await
    }
}
