//! Archives that are no versions of a registry. The resolver reads their manifests and the
//! installation unpacks them, so each is kept on disk and fetched once.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use tempfile::TempDir;

use crate::error::{NpmError, files};
use crate::registry::lock;

/// The kept archives, which are removed with this value.
#[derive(Debug, Default)]
pub(crate) struct Archives {
    root: OnceLock<TempDir>,
    /// By URL.
    known: Mutex<HashMap<String, PathBuf>>,
}

impl Archives {
    /// Returns an archive that was kept before.
    pub(crate) fn get(&self, url: &str) -> Option<Vec<u8>> {
        let path = lock(&self.known).get(url).cloned()?;
        // A file that another program has removed is fetched again.
        fs::read(path).ok()
    }

    pub(crate) fn keep(&self, url: &str, bytes: &[u8]) -> Result<(), NpmError> {
        if self.root.get().is_none() {
            let made = tempfile::tempdir().map_err(files(&std::env::temp_dir()))?;
            // Another thread may have made one meanwhile.
            let _ = self.root.set(made);
        }
        let root = self.root.get().expect("it was set").path();
        let mut known = lock(&self.known);
        let path = root.join(known.len().to_string());
        fs::write(&path, bytes).map_err(files(&path))?;
        known.insert(url.to_owned(), path);
        Ok(())
    }
}
