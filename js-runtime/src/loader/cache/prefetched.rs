//! Results of the prefetch thread (`prefetch.rs`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use deno_core::ModuleSpecifier;

use super::external_string::Code;
use super::manifest::LoadStep;
use crate::loader::cache::Key;
use crate::loader::interop::missing_exports::MissingExport;
use crate::loader::transpile::emit::Consulted;

/// Minimum age of a change after which a further change gets another time stamp.
const MIN_SETTLED_AGE: Duration = Duration::from_secs(1);

/// Shared by both threads. The default value is empty and stays so.
#[derive(Clone, Default)]
pub(crate) struct Prefetched(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// Items by step; `None` if the step was requested. No step is requested twice.
    items: HashMap<LoadStep, Option<CacheItem>>,
    /// Built-in modules that will be imported.
    builtins: Vec<String>,
    /// Whether items may still be requested.
    is_open: bool,
}

#[derive(Clone)]
pub(in crate::loader) enum CacheItem {
    Module(CachedModule),
    Text(CachedText),
    Compiled(Vec<u8>),
}

impl CacheItem {
    pub fn is_current(&self) -> bool {
        match self {
            Self::Module(module) => {
                let more = module
                    .dependencies
                    .iter()
                    .flat_map(|dependencies| &dependencies.files);
                module.sources.iter().chain(more).all(FileStamp::is_current)
            }
            Self::Text(text) => text.file.is_current(),
            // The key is a hash of everything the cache depends on.
            Self::Compiled(_) => true,
        }
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Module(module) => {
                module.code.size() + module.compiled.len() + length(&module.text)
            }
            Self::Text(text) => text.code.size() + length(&text.source),
            Self::Compiled(data) => data.len(),
        }
    }
}

/// Returns the size of a text in bytes, 0 without one.
fn length(text: &Option<Arc<str>>) -> usize {
    text.as_ref().map_or(0, |text| text.len())
}

/// A text that `require` reads.
#[derive(Clone)]
pub(in crate::loader) struct CachedText {
    pub file: FileStamp,
    /// Digest of the file.
    pub digest: u64,
    /// The text of the file. Absent for files of packages.
    pub source: Option<Arc<str>>,
    pub code: Code,
    /// Key of the ASCII text, if the code is one.
    pub ascii_key: Option<Key>,
}

/// JavaScript of which V8's code cache exists.
#[derive(Clone)]
pub(in crate::loader) struct CachedModule {
    /// The file itself, and others that influenced the text.
    pub sources: Vec<FileStamp>,
    /// Digest of the file itself.
    pub digest: u64,
    /// `None` if not all dependencies are known; such a module is not kept.
    pub dependencies: Option<Dependencies>,
    /// The text of the file. Absent for files of packages.
    pub text: Option<Arc<str>>,
    pub code: Code,
    /// Key of the ASCII text, if the code is one.
    pub ascii_key: Option<Key>,
    /// Key of the source map.
    pub map: Option<Key>,
    /// Imported names that do not exist.
    pub missing_exports: Vec<MissingExport>,
    /// Hash of the code that V8 passes through.
    pub hash: u64,
    pub compiled: Vec<u8>,
}

/// Further conditions under which a module is still valid much later.
#[derive(Clone, Default)]
pub(in crate::loader) struct Dependencies {
    pub files: Vec<FileStamp>,
    pub lookups: Vec<Consulted>,
}

impl Prefetched {
    pub(in crate::loader) fn open() -> Self {
        let prefetched = Self::default();
        prefetched.inner().is_open = true;
        prefetched
    }

    /// Returns true if the step was neither prefetched nor requested.
    pub(in crate::loader) fn is_missing(&self, step: &LoadStep) -> bool {
        !self.inner().items.contains_key(step)
    }

    pub(in crate::loader) fn insert(&self, step: LoadStep, item: CacheItem) {
        let mut inner = self.inner();
        if inner.is_open {
            inner.items.entry(step).or_insert(Some(item));
        }
    }

    pub(in crate::loader) fn set_builtins(&self, builtins: Vec<String>) {
        self.inner().builtins = builtins;
    }

    /// Returns the built-in modules that are imported before files are. deno_core computes the line
    /// of each import of a module that it does not have yet, which takes time for each.
    pub(in crate::loader) fn take_builtins(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().builtins)
    }

    pub(in crate::loader) fn module(&self, specifier: &ModuleSpecifier) -> Option<CachedModule> {
        match self.take(LoadStep::Module(specifier.to_string()))? {
            item @ CacheItem::Module(_) if !item.is_current() => None,
            CacheItem::Module(module) => Some(module),
            _ => None,
        }
    }

    pub(in crate::loader) fn text(&self, path: &Path) -> Option<CachedText> {
        match self.take(LoadStep::Text(path.to_path_buf()))? {
            CacheItem::Text(text) if text.file.is_current() => Some(text),
            _ => None,
        }
    }

    pub(in crate::loader) fn compiled(&self, key: Key) -> Option<Vec<u8>> {
        match self.take(LoadStep::CompiledCode(key))? {
            CacheItem::Compiled(data) => Some(data),
            _ => None,
        }
    }

    fn take(&self, step: LoadStep) -> Option<CacheItem> {
        let mut inner = self.inner();
        if !inner.is_open {
            return None;
        }
        inner.items.insert(step, None).flatten()
    }

    /// Drops all items: no step is requested any more.
    pub(in crate::loader) fn close(&self) {
        let mut inner = self.inner();
        inner.is_open = false;
        inner.items = HashMap::new();
    }

    pub(in crate::loader) fn is_closed(&self) -> bool {
        !self.inner().is_open
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Length and modification time of a file before it was read.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::loader) struct FileStamp {
    path: PathBuf,
    length: u64,
    modified: SystemTime,
}

impl FileStamp {
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn now(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            path: path.to_path_buf(),
            length: metadata.len(),
            modified: metadata.modified().ok()?,
        })
    }

    /// Returns the stamp of a file, or `None` if it was changed just before: another change might
    /// have the same stamp.
    pub fn of_settled(path: &Path) -> Option<Self> {
        let stamp = Self::now(path)?;
        let age = stamp.modified.elapsed().ok()?;
        (age > MIN_SETTLED_AGE).then_some(stamp)
    }

    pub fn is_current(&self) -> bool {
        Self::now(&self.path).is_some_and(|now| now == *self)
    }
}
