//! The storage of a session: memory only, a file, or a file that is created once the session
//! has something worth keeping.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::entry::Entry;
use crate::error::SessionError;
use crate::file::fs::FileSystem;
use crate::file::session_file::SessionFile;
use crate::format::header::Header;

pub(crate) enum Persistence {
    Memory,
    Unwritten {
        storage: Arc<dyn FileSystem>,
        path: PathBuf,
        /// A file that was created and locked in advance and is still empty.
        file: Option<SessionFile>,
    },
    File(SessionFile),
}

impl Persistence {
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Unwritten { path, .. } => Some(path),
            Self::File(file) => Some(file.path()),
        }
    }

    /// Stores `entry`. `earlier` are the entries before it; they are written first if there is
    /// no file yet.
    pub(crate) fn append(
        &mut self,
        header: &Header,
        earlier: &[Arc<Entry>],
        entry: &Entry,
    ) -> Result<(), SessionError> {
        match self {
            Self::Memory => Ok(()),
            Self::File(file) => file.append(&format!("{}\n", entry.raw)),
            Self::Unwritten { .. } if !entry.justifies_file() => Ok(()),
            Self::Unwritten { .. } => {
                let earlier = earlier.iter().map(|entry| &**entry);
                self.write(header, earlier.chain([entry]))
            }
        }
    }

    /// Writes the header and all entries in one `write`. Does nothing if the session is stored
    /// already.
    pub(crate) fn write<'a>(
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
                // Keep the file, so that the next attempt finds the empty file it created. If
                // the file was deleted, the next attempt creates another.
                if !matches!(error, SessionError::Vanished { .. }) {
                    *file = Some(created);
                }
                Err(error)
            }
        }
    }
}
