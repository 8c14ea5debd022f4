//! What was read of files and looked up in the cache on the disk, for the isolates to come of
//! the same program: a reload, another session. As long as the files are as they were, nothing
//! of it is read again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deno_core::ModuleSpecifier;
use deno_package_json::PackageJsonRc;

use super::prepared::{Found, Stamp, Text};
use super::trail::Step;
use crate::cache::Key;

/// In bytes. Texts of packages do not count: they are there once in any case.
const MOST: usize = 16 << 20;

/// Shared by the isolates that are given it.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    found: HashMap<Step, Found>,
    /// Of these.
    size: usize,
    package_json: HashMap<PathBuf, (Stamp, PackageJsonRc)>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {} bytes", self.found.len(), self.size)
    }
}

impl Kept {
    /// Where the imports of a module lead nobody has looked.
    pub(super) fn found(&self, step: &Step) -> Option<Found> {
        let found = self.inner().found.get(step).cloned();
        found.filter(Found::holds)
    }

    pub(super) fn keep(&self, step: &Step, found: &Found) {
        if matches!(found, Found::Module(module) if module.terms.is_none()) {
            return;
        }
        let mut inner = self.inner();
        let old = inner.found.remove(step).map_or(0, |found| found.size());
        inner.size = inner.size - old + found.size();
        match inner.size > MOST {
            true => inner.size -= found.size(),
            false => _ = inner.found.insert(step.clone(), found.clone()),
        }
    }

    pub(super) fn text(&self, path: &Path) -> Option<Text> {
        match self.found(&Step::Text(path.to_path_buf()))? {
            Found::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn keep_text(&self, path: &Path, text: Text) {
        self.keep(&Step::Text(path.to_path_buf()), &Found::Text(text));
    }

    pub(super) fn compiled(&self, key: Key) -> Option<Vec<u8>> {
        match self.found(&Step::Compiled(key))? {
            Found::Compiled(data) => Some(data),
            _ => None,
        }
    }

    /// V8 did not take what it is said to have compiled of a module or a script.
    pub(super) fn forget(&self, specifier: &ModuleSpecifier, key: Key) {
        let mut inner = self.inner();
        for step in [Step::Module(specifier.to_string()), Step::Compiled(key)] {
            let old = inner.found.remove(&step);
            inner.size -= old.map_or(0, |found| found.size());
        }
    }

    pub(super) fn package_json(&self, path: &Path) -> Option<PackageJsonRc> {
        let (stamp, package_json) = self.inner().package_json.get(path).cloned()?;
        stamp.holds().then_some(package_json)
    }

    /// `package_json` was read a moment ago.
    pub(super) fn keep_package_json(&self, path: &Path, package_json: &PackageJsonRc) {
        if let Some(stamp) = Stamp::of(path) {
            let what = (stamp, package_json.clone());
            self.inner().package_json.insert(path.to_path_buf(), what);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it holds the lock; what is kept is whole in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
