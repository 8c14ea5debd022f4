//! Where a session is kept: nowhere, in a file, or in a file that does not exist
//! until there is something worth keeping.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::Entry;
use super::error::SessionError;
use super::header::Header;
use super::storage::Storage;
use super::store::SessionFile;

pub(super) enum Backing {
    Memory,
    Unwritten {
        storage: Arc<dyn Storage>,
        path: PathBuf,
        /// An empty file that is already there and already ours.
        file: Option<SessionFile>,
    },
    File(SessionFile),
}

impl Backing {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Unwritten { path, .. } => Some(path),
            Self::File(file) => Some(file.path()),
        }
    }

    /// Stores `entry`, which follows `earlier`.
    pub(super) fn append(
        &mut self,
        header: &Header,
        earlier: &[Arc<Entry>],
        entry: &Entry,
    ) -> Result<(), SessionError> {
        match self {
            Self::Memory => Ok(()),
            Self::File(file) => file.append(&format!("{}\n", entry.raw)),
            Self::Unwritten { .. } if !entry.starts_file() => Ok(()),
            Self::Unwritten { .. } => {
                let earlier = earlier.iter().map(|entry| &**entry);
                self.write(header, earlier.chain([entry]))
            }
        }
    }

    /// Writes the whole session, all of it in one `write`, if it is not yet
    /// written.
    pub(super) fn write<'a>(
        &mut self,
        header: &Header,
        entries: impl Iterator<Item = &'a Entry>,
    ) -> Result<(), SessionError> {
        let Self::Unwritten {
            storage,
            path,
            file,
        } = self
        else {
            return Ok(());
        };
        let mut text = format!("{}\n", header.raw);
        for entry in entries {
            text.push_str(&entry.raw);
            text.push('\n');
        }
        let mut created = match file.take() {
            Some(file) => file,
            None => {
                let mut warnings = Vec::new();
                let created = SessionFile::create(storage, path, &mut warnings)?;
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
                created
            }
        };
        match created.append(&text) {
            Ok(()) => {
                *self = Self::File(created);
                Ok(())
            }
            Err(error) => {
                // Kept, so that the next attempt finds its own empty file. Not if
                // it was deleted: then the next attempt makes another.
                if !matches!(error, SessionError::Vanished { .. }) {
                    *file = Some(created);
                }
                Err(error)
            }
        }
    }
}
