//! What a set of extensions has loaded, in order: the next start can have it read before
//! it is asked for (`ahead.rs`). A hint, and no more: what is wrong in it costs time.

use std::cell::RefCell;
use std::path::PathBuf;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use super::locales::Rules;
use crate::cache::{DiskCache, Key};

/// The ending of such a file in the cache.
const PART: &str = "trail";

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Step {
    /// An ES module in a file, by its URL.
    Module(String),
    /// A path that a file imports, as it is written there.
    Path(PathBuf),
    /// What a file imports of packages.
    Package { name: String, referrer: String },
    /// A file that is required.
    Text(PathBuf),
    /// V8's code cache of what is required, or of a module of the program.
    Compiled(Key),
    /// A module of the program that a file imports.
    Known(String),
    /// V8 was asked for what depends on the language.
    Locales(Rules),
}

impl Step {
    pub fn known(self) -> Option<String> {
        match self {
            Self::Known(name) => Some(name),
            _ => None,
        }
    }
}

/// While a set is loaded.
#[derive(Default)]
pub(crate) struct Trail(RefCell<Option<Steps>>);

struct Steps {
    key: Key,
    steps: IndexSet<Step>,
}

impl Trail {
    /// From now on, until it is kept.
    pub fn begin(&self, cache: &DiskCache, entries: &[(u32, PathBuf)]) {
        if cache.is_on() && !entries.is_empty() {
            *self.0.borrow_mut() = Some(Steps {
                key: key(cache, entries),
                steps: IndexSet::new(),
            });
        }
    }

    pub fn note(&self, step: impl FnOnce() -> Step) {
        if let Some(steps) = &mut *self.0.borrow_mut() {
            steps.steps.insert(step());
        }
    }

    pub fn keep(&self, cache: &DiskCache) {
        let Some(Steps { key, steps }) = self.0.take() else {
            return;
        };
        if let Ok(json) = serde_json::to_vec(&steps)
            && cache.read(key, PART).as_ref() != Some(&json)
        {
            cache.write(key, PART, &json);
        }
    }
}

/// What was kept of the same set.
pub(super) fn kept(cache: &DiskCache, entries: &[(u32, PathBuf)]) -> Vec<Step> {
    let json = cache.read(key(cache, entries), PART);
    json.and_then(|json| serde_json::from_slice(&json).ok())
        .unwrap_or_default()
}

fn key(cache: &DiskCache, entries: &[(u32, PathBuf)]) -> Key {
    let mut parts = vec![PART.as_bytes()];
    parts.extend((entries.iter()).map(|(_, path)| path.as_os_str().as_encoded_bytes()));
    cache.key(&parts)
}
