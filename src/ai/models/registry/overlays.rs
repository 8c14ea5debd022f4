//! Registrations that a registry uses besides those of the current generation: those of the
//! extensions that opened the registry, and those of a registry to which a session belongs.

use std::sync::Arc;

use parking_lot::RwLock;

use super::ModelRegistry;
use crate::auth::oauth::SignIn;
use crate::extension_providers::{ExtensionProvider, ExtensionProviders};
use crate::stream::Api;

#[derive(Default)]
pub(super) struct Overlays(RwLock<Vec<Overlay>>);

enum Overlay {
    /// Only wire APIs and sign-ins.
    Functions(Arc<ExtensionProviders>),
    /// The current registrations of another registry, which may be replaced.
    Registry(Arc<ModelRegistry>),
}

impl Overlay {
    fn functions(&self) -> Arc<ExtensionProviders> {
        match self {
            Self::Functions(providers) => Arc::clone(providers),
            Self::Registry(registry) => registry.extension_providers(),
        }
    }

    fn providers(&self) -> Option<Arc<ExtensionProviders>> {
        match self {
            Self::Functions(_) => None,
            Self::Registry(registry) => Some(registry.extension_providers()),
        }
    }
}

impl Overlays {
    fn first<T>(&self, find: impl Fn(&Overlay) -> Option<T>) -> Option<T> {
        self.0.read().iter().find_map(find)
    }

    pub(super) fn api(&self, name: &str) -> Option<Arc<dyn Api>> {
        self.first(|overlay| overlay.functions().api(name))
    }

    pub(super) fn sign_in(&self, provider: &str) -> Option<Arc<dyn SignIn>> {
        self.first(|overlay| overlay.functions().sign_in(provider))
    }

    pub(super) fn names(&self) -> Vec<String> {
        let overlays = self.0.read();
        let providers = overlays.iter().filter_map(Overlay::providers);
        providers.flat_map(|providers| providers.names()).collect()
    }

    /// Returns a number that changes with every registration in any of the layers.
    pub(super) fn revision(&self) -> u64 {
        let overlays = self.0.read();
        let providers = overlays.iter().filter_map(Overlay::providers);
        let revisions = providers.map(|providers| providers.revision());
        revisions.max().unwrap_or_default()
    }
}

impl ModelRegistry {
    /// Returns the registrations of a provider; those of the current generation come first.
    pub(super) fn added(&self, provider: &str) -> Option<ExtensionProvider> {
        let find = |overlay: &Overlay| overlay.providers()?.get(provider);
        let provided = self.extension_providers().get(provider);
        provided.or_else(|| self.overlays.first(find))
    }

    /// Adds the wire APIs and sign-ins of `extensions`; their providers are left out.
    pub fn opened_by(self, extensions: Arc<ExtensionProviders>) -> Self {
        self.overlays.0.write().push(Overlay::Functions(extensions));
        self
    }

    /// Adds the registrations in `other`, until [`Self::leave`] is called.
    pub fn join(&self, other: Arc<ModelRegistry>) {
        self.overlays.0.write().push(Overlay::Registry(other));
        self.forget_models();
    }

    pub fn leave(&self, other: &Arc<ModelRegistry>) {
        let is_other = |overlay: &Overlay| matches!(overlay, Overlay::Registry(one) if Arc::ptr_eq(one, other));
        self.overlays.0.write().retain(|overlay| !is_other(overlay));
        self.forget_models();
    }
}
