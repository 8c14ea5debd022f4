//! What was read and looked up on another thread before the JavaScript thread asked
//! (`ahead.rs`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use deno_core::ModuleSpecifier;

use super::absent::Absent;
use super::emit::Consulted;
use super::texts::Code;
use super::trail::Step;
use crate::cache::Key;

/// A file that has been left alone for so long has another time when it changes.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// Shared by both threads; by default there is nothing in it, nor will be.
#[derive(Clone, Default)]
pub(crate) struct Prepared(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// `None` of what has been asked for: nobody asks twice.
    found: HashMap<Step, Option<Found>>,
    /// Modules of the program that will be imported.
    known: Vec<String>,
    /// Something may still be asked for.
    is_open: bool,
}

#[derive(Clone)]
pub(super) enum Found {
    Module(Module),
    Text(Text),
    Compiled(Vec<u8>),
}

impl Found {
    pub fn holds(&self) -> bool {
        match self {
            Self::Module(module) => {
                let more = module.terms.iter().flat_map(|terms| &terms.files);
                module.made_of.iter().chain(more).all(Stamp::holds)
            }
            Self::Text(text) => text.file.holds(),
            // It is named by what it was made of.
            Self::Compiled(_) => true,
        }
    }

    /// Bytes
    pub fn size(&self) -> usize {
        match self {
            Self::Module(module) => module.code.size() + module.compiled.len(),
            Self::Text(text) => text.code.size(),
            Self::Compiled(data) => data.len(),
        }
    }
}

/// What `require` reads.
#[derive(Clone)]
pub(super) struct Text {
    pub file: Stamp,
    pub code: Code,
    /// What the code is instead of, if it is.
    pub instead: Option<Key>,
}

/// JavaScript that V8 has compiled before.
#[derive(Clone)]
pub(super) struct Module {
    /// The file, and others that had a say in it.
    pub made_of: Vec<Stamp>,
    /// `None` if it is not worth keeping: not all that had a say in it is known.
    pub terms: Option<Terms>,
    pub code: Code,
    /// What the code is instead of, if it is.
    pub instead: Option<Key>,
    /// By which the source map is found.
    pub map: Option<Key>,
    /// What it imports that is not there.
    pub absent: Vec<Absent>,
    /// Passed through V8.
    pub hash: u64,
    pub compiled: Vec<u8>,
}

/// What else has to be as it was, to be the same much later.
#[derive(Clone, Default)]
pub(super) struct Terms {
    pub files: Vec<Stamp>,
    pub ways: Vec<Consulted>,
}

impl Prepared {
    pub(super) fn begin() -> Self {
        let prepared = Self::default();
        prepared.inner().is_open = true;
        prepared
    }

    /// Something is worth the work: nobody has asked for it yet.
    pub(super) fn is_wanted(&self, step: &Step) -> bool {
        !self.inner().found.contains_key(step)
    }

    pub(super) fn put(&self, step: Step, found: Found) {
        let mut inner = self.inner();
        if inner.is_open {
            inner.found.entry(step).or_insert(Some(found));
        }
    }

    pub(super) fn expect(&self, known: Vec<String>) {
        self.inner().known = known;
    }

    /// Modules of the program that are worth importing before files do: to whoever imports a
    /// module that it does not have yet, deno_core tells the line, and counts up to it for each.
    pub(super) fn known(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().known)
    }

    pub(super) fn module(&self, specifier: &ModuleSpecifier) -> Option<Module> {
        match self.take(Step::Module(specifier.to_string()))? {
            found @ Found::Module(_) if !found.holds() => None,
            Found::Module(module) => Some(module),
            _ => None,
        }
    }

    pub(super) fn text(&self, path: &Path) -> Option<Text> {
        match self.take(Step::Text(path.to_path_buf()))? {
            Found::Text(text) if text.file.holds() => Some(text),
            _ => None,
        }
    }

    pub(super) fn compiled(&self, key: Key) -> Option<Vec<u8>> {
        match self.take(Step::Compiled(key))? {
            Found::Compiled(data) => Some(data),
            _ => None,
        }
    }

    fn take(&self, step: Step) -> Option<Found> {
        let mut inner = self.inner();
        if !inner.is_open {
            return None;
        }
        inner.found.insert(step, None).flatten()
    }

    /// Nothing is asked for any more.
    pub(super) fn end(&self) {
        let mut inner = self.inner();
        inner.is_open = false;
        inner.found = HashMap::new();
    }

    pub(super) fn is_over(&self) -> bool {
        !self.inner().is_open
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it holds the lock; the data is whole in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a file was before it was read.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    path: PathBuf,
    length: u64,
    modified: SystemTime,
}

impl Stamp {
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

    /// `None` if it was changed just now: another change might not be seen.
    pub fn of(path: &Path) -> Option<Self> {
        let stamp = Self::now(path)?;
        let age = stamp.modified.elapsed().ok()?;
        (age > LEFT_ALONE).then_some(stamp)
    }

    pub fn holds(&self) -> bool {
        Self::now(&self.path).is_some_and(|now| now == *self)
    }
}
