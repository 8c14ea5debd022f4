//! Signing in and out.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::ModelRegistry;
use crate::auth::oauth::{self, LoginDialog, SignIn, SignInError};
use crate::auth::store::{self, AuthFileError};

impl ModelRegistry {
    /// Returns the sign-in of a provider, of an extension or built in.
    pub fn sign_in(&self, provider: &str) -> Option<Arc<dyn SignIn>> {
        let provided = self.extension_providers().sign_in(provider);
        let provided = provided.or_else(|| self.overlays.sign_in(provider));
        provided.or_else(|| oauth::built_in(provider))
    }

    /// Returns all sign-ins: the built-in ones, then those of extensions.
    pub fn sign_ins(&self) -> Vec<(String, Arc<dyn SignIn>)> {
        let provided = self.extension_providers().sign_ins();
        let ours = oauth::BUILT_IN
            .into_iter()
            .filter_map(|id| Some((id.to_owned(), self.sign_in(id)?)));
        let others = provided
            .iter()
            .filter(|(id, _)| !oauth::BUILT_IN.contains(&id.as_str()));
        ours.chain(others.cloned()).collect()
    }

    /// Signs the user in and stores the credentials.
    pub async fn log_in(
        &self,
        provider: &str,
        dialog: Arc<dyn LoginDialog>,
        cancel: CancellationToken,
    ) -> Result<(), SignInError> {
        let sign_in = self
            .sign_in(provider)
            .ok_or_else(|| SignInError::new(format!("Unknown OAuth provider: {provider}")))?;
        let credentials = sign_in.login(dialog, cancel).await?;
        // The credentials apply even if they cannot be stored.
        let stored = (self.auth)
            .put(provider, store::oauth_entry(&credentials))
            .map_err(|error| SignInError::new(error.to_string()));
        let provided = self.extension_providers();
        if let Some(added) = provided.get(provider)
            && sign_in.modifies_models()
        {
            let models = self.models_with(provider, &added.config);
            let modified = sign_in.modify_models(models, &credentials).await?;
            provided.set_modified(provider, modified);
        }
        self.forget_models();
        stored
    }

    /// Removes the stored key or sign-in.
    pub fn log_out(&self, provider: &str) -> Result<(), AuthFileError> {
        let removed = self.auth.remove(provider);
        self.extension_providers().clear_modified(provider);
        self.forget_models();
        removed
    }
}
