//! Registrations that a registry uses besides those of the current generation: those of the
//! extensions that opened the registry, and those of a registry to which a session belongs.

use std::sync::Arc;

use parking_lot::RwLock;

use super::ModelRegistry;
use crate::auth::oauth::SignIn;
use crate::extension_providers::{Provided, Providers};
use crate::stream::Api;

#[derive(Default)]
pub(super) struct Layers(RwLock<Vec<Layer>>);

enum Layer {
    /// Only wire APIs and sign-ins.
    Functions(Arc<Providers>),
    /// The current registrations of another registry, which may be replaced.
    Registry(Arc<ModelRegistry>),
}

impl Layer {
    fn functions(&self) -> Arc<Providers> {
        match self {
            Self::Functions(providers) => Arc::clone(providers),
            Self::Registry(registry) => registry.provided(),
        }
    }

    fn providers(&self) -> Option<Arc<Providers>> {
        match self {
            Self::Functions(_) => None,
            Self::Registry(registry) => Some(registry.provided()),
        }
    }
}

impl Layers {
    fn first<T>(&self, find: impl Fn(&Layer) -> Option<T>) -> Option<T> {
        self.0.read().iter().find_map(find)
    }

    pub(super) fn api(&self, name: &str) -> Option<Arc<dyn Api>> {
        self.first(|layer| layer.functions().api(name))
    }

    pub(super) fn sign_in(&self, provider: &str) -> Option<Arc<dyn SignIn>> {
        self.first(|layer| layer.functions().sign_in(provider))
    }

    pub(super) fn names(&self) -> Vec<String> {
        let layers = self.0.read();
        let providers = layers.iter().filter_map(Layer::providers);
        providers.flat_map(|providers| providers.names()).collect()
    }

    /// Returns a number that changes with every registration in any of the layers.
    pub(super) fn revision(&self) -> u64 {
        let layers = self.0.read();
        let providers = layers.iter().filter_map(Layer::providers);
        let revisions = providers.map(|providers| providers.revision());
        revisions.max().unwrap_or_default()
    }
}

impl ModelRegistry {
    /// Returns the registrations of a provider; those of the current generation come first.
    pub(super) fn added(&self, provider: &str) -> Option<Provided> {
        let beside = |layer: &Layer| layer.providers()?.get(provider);
        let provided = self.provided().get(provider);
        provided.or_else(|| self.beside.first(beside))
    }

    /// Adds the wire APIs and sign-ins of `extensions`; their providers are left out.
    pub fn opened_by(self, extensions: Arc<Providers>) -> Self {
        self.beside.0.write().push(Layer::Functions(extensions));
        self
    }

    /// Adds the registrations in `other`, until [`Self::part_from`] is called.
    pub fn join(&self, other: Arc<ModelRegistry>) {
        self.beside.0.write().push(Layer::Registry(other));
        self.forget_models();
    }

    pub fn part_from(&self, other: &Arc<ModelRegistry>) {
        let is_other =
            |layer: &Layer| matches!(layer, Layer::Registry(one) if Arc::ptr_eq(one, other));
        self.beside.0.write().retain(|layer| !is_other(layer));
        self.forget_models();
    }
}
