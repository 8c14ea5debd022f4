//! What others than the extensions in force have registered, and a registry counts, too: those
//! that it was opened by, and those of a session that looks up its models in it.

use std::sync::Arc;

use parking_lot::RwLock;

use super::ModelRegistry;
use crate::ai::oauth::SignIn;
use crate::ai::provided::{Provided, Providers};
use crate::ai::stream::Api;

#[derive(Default)]
pub(super) struct Layers(RwLock<Vec<Layer>>);

enum Layer {
    /// Wire APIs and sign-ins alone.
    Functions(Arc<Providers>),
    /// What is in force in another registry, which may be replaced.
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

    /// Another one after every change of any of them.
    pub(super) fn revision(&self) -> u64 {
        let layers = self.0.read();
        let providers = layers.iter().filter_map(Layer::providers);
        let revisions = providers.map(|providers| providers.revision());
        revisions.max().unwrap_or_default()
    }
}

impl ModelRegistry {
    /// What extensions say of a provider: those in force first.
    pub(super) fn added(&self, provider: &str) -> Option<Provided> {
        let beside = |layer: &Layer| layer.providers()?.get(provider);
        let provided = self.provided().get(provider);
        provided.or_else(|| self.beside.first(beside))
    }

    /// Their wire APIs and sign-ins can be used with it; their providers are not in it.
    pub fn opened_by(self, extensions: Arc<Providers>) -> Self {
        self.beside.0.write().push(Layer::Functions(extensions));
        self
    }

    /// What extensions register in `other` counts here as well, until [`Self::part_from`].
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
