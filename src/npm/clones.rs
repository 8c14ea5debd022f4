//! Clones of repositories outside of any tree. The resolver reads their manifests and the
//! installation copies their files, so each is cloned once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use tempfile::TempDir;

use crate::error::{NpmError, files};
use crate::git;
use crate::registry::lock;

/// A clone at a commit.
#[derive(Clone, Debug)]
pub(crate) struct Clone {
    pub folder: PathBuf,
    pub commit: String,
}

/// The clones, which are removed with this value.
#[derive(Debug, Default)]
pub(crate) struct Clones {
    root: OnceLock<TempDir>,
    count: AtomicUsize,
    /// By URL and reference, which may be a commit.
    known: Mutex<HashMap<(String, Option<String>), Clone>>,
}

impl Clones {
    /// Returns the clone of a repository at a reference or at its default branch.
    pub(crate) async fn at(&self, url: &str, reference: Option<&str>) -> Result<Clone, NpmError> {
        let key = (url.to_owned(), reference.map(str::to_owned));
        if let Some(clone) = lock(&self.known).get(&key) {
            return Ok(clone.clone());
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let folder = self.root()?.join(number.to_string());
        let commit = git::clone(url, reference, &folder).await?;
        let clone = Clone { folder, commit };
        let mut known = lock(&self.known);
        let by_commit = (url.to_owned(), Some(clone.commit.clone()));
        known.insert(by_commit, clone.clone());
        known.insert(key, clone.clone());
        Ok(clone)
    }

    fn root(&self) -> Result<&Path, NpmError> {
        if self.root.get().is_none() {
            let made = tempfile::tempdir().map_err(files(&std::env::temp_dir()))?;
            // Another thread may have made one meanwhile.
            let _ = self.root.set(made);
        }
        Ok(self.root.get().expect("it was set").path())
    }
}
