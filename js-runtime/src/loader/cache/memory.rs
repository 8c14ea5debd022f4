//! Memory cache of files and disk cache entries for later isolates of the same program (a reload,
//! another session). Entries are used as long as their files are unchanged.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deno_core::ModuleSpecifier;
use deno_package_json::PackageJsonRc;

use super::manifest::LoadStep;
use super::prefetched::{CacheItem, CachedText, FileStamp};
use crate::loader::cache::Key;

/// Maximum size in bytes. Texts of packages do not count, because they are interned in any case.
const MAX_BYTES: usize = 16 << 20;

/// Shared by the isolates that get it in their options.
#[derive(Clone, Debug, Default)]
pub struct MemoryCache(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    items: HashMap<LoadStep, CacheItem>,
    /// Size of the items in bytes.
    size: usize,
    /// Each with the digest of the file.
    package_json: HashMap<PathBuf, (FileStamp, PackageJsonRc, u64)>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {} bytes", self.items.len(), self.size)
    }
}

impl MemoryCache {
    /// Returns an item if its files are unchanged. The targets of a module's imports are not
    /// checked.
    pub(in crate::loader) fn get(&self, step: &LoadStep) -> Option<CacheItem> {
        let item = self.inner().items.get(step).cloned();
        item.filter(CacheItem::is_current)
    }

    pub(in crate::loader) fn insert(&self, step: &LoadStep, item: &CacheItem) {
        if matches!(item, CacheItem::Module(module) if module.dependencies.is_none()) {
            return;
        }
        let mut inner = self.inner();
        let old = inner.items.remove(step).map_or(0, |item| item.size());
        inner.size = inner.size - old + item.size();
        match inner.size > MAX_BYTES {
            true => inner.size -= item.size(),
            false => _ = inner.items.insert(step.clone(), item.clone()),
        }
    }

    pub(in crate::loader) fn text(&self, path: &Path) -> Option<CachedText> {
        match self.get(&LoadStep::Text(path.to_path_buf()))? {
            CacheItem::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(in crate::loader) fn insert_text(&self, path: &Path, text: CachedText) {
        self.insert(&LoadStep::Text(path.to_path_buf()), &CacheItem::Text(text));
    }

    pub(in crate::loader) fn compiled(&self, key: Key) -> Option<Vec<u8>> {
        match self.get(&LoadStep::CompiledCode(key))? {
            CacheItem::Compiled(data) => Some(data),
            _ => None,
        }
    }

    /// Removes a module or a script of which V8 rejected the code cache.
    pub(in crate::loader) fn remove(&self, specifier: &ModuleSpecifier, key: Key) {
        let mut inner = self.inner();
        for step in [
            LoadStep::Module(specifier.to_string()),
            LoadStep::CompiledCode(key),
        ] {
            let old = inner.items.remove(&step);
            inner.size -= old.map_or(0, |item| item.size());
        }
    }

    /// Returns a `package.json` and its digest.
    pub(in crate::loader) fn package_json(&self, path: &Path) -> Option<(PackageJsonRc, u64)> {
        let (stamp, package_json, digest) = self.inner().package_json.get(path).cloned()?;
        stamp.is_current().then_some((package_json, digest))
    }

    /// Inserts a `package.json` that was read just before.
    pub(in crate::loader) fn insert_package_json(
        &self,
        path: &Path,
        package_json: &PackageJsonRc,
        digest: u64,
    ) {
        if let Some(stamp) = FileStamp::of_settled(path) {
            let what = (stamp, package_json.clone(), digest);
            self.inner().package_json.insert(path.to_path_buf(), what);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
