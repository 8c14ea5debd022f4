//! The manifest of a set of extensions: what it loaded, in order. The next start prefetches it
//! (`prefetch.rs`). The manifest is a hint; errors in it only cost time.

use std::cell::RefCell;
use std::path::PathBuf;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use super::locales::LocaleTable;
use crate::loader::cache::{DiskCache, Key};

/// File extension of a manifest in the cache.
const MANIFEST_PART: &str = "trail";

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum LoadStep {
    /// An ES module in a file, by its URL.
    Module(String),
    /// A path that a file imports, as it is written.
    Path(PathBuf),
    /// A package that a file imports.
    Package { name: String, referrer: String },
    /// A file that is `require`d.
    Text(PathBuf),
    /// V8's code cache of a CommonJS module, or of a built-in module.
    CompiledCode(Key),
    /// A built-in module that a file imports.
    Builtin(String),
    /// A list of locales that V8 used.
    Locales(LocaleTable),
}

impl LoadStep {
    pub fn into_builtin(self) -> Option<String> {
        match self {
            Self::Builtin(name) => Some(name),
            _ => None,
        }
    }
}

/// Records the manifest while a set is loaded.
#[derive(Default)]
pub(crate) struct ManifestRecorder(RefCell<Option<Recording>>);

struct Recording {
    key: Key,
    steps: IndexSet<LoadStep>,
}

impl ManifestRecorder {
    /// Starts to record until [`Self::save`].
    pub fn begin(&self, cache: &DiskCache, entries: &[(u32, PathBuf)]) {
        if cache.is_on() && !entries.is_empty() {
            *self.0.borrow_mut() = Some(Recording {
                key: key(cache, entries),
                steps: IndexSet::new(),
            });
        }
    }

    pub fn record(&self, step: impl FnOnce() -> LoadStep) {
        if let Some(steps) = &mut *self.0.borrow_mut() {
            steps.steps.insert(step());
        }
    }

    pub fn save(&self, cache: &DiskCache) {
        let Some(Recording { key, steps }) = self.0.take() else {
            return;
        };
        if let Ok(json) = serde_json::to_vec(&steps)
            && cache.read(key, MANIFEST_PART).as_ref() != Some(&json)
        {
            cache.write(key, MANIFEST_PART, &json);
        }
    }
}

/// Returns the manifest of the last start with the same set.
pub(in crate::loader) fn read_manifest(
    cache: &DiskCache,
    entries: &[(u32, PathBuf)],
) -> Vec<LoadStep> {
    let json = cache.read(key(cache, entries), MANIFEST_PART);
    json.and_then(|json| serde_json::from_slice(&json).ok())
        .unwrap_or_default()
}

fn key(cache: &DiskCache, entries: &[(u32, PathBuf)]) -> Key {
    let mut parts = vec![MANIFEST_PART.as_bytes()];
    parts.extend((entries.iter()).map(|(_, path)| path.as_os_str().as_encoded_bytes()));
    cache.key(&parts)
}
