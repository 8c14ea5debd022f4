//! A read-only view of a session at one moment. It takes no lock and repairs nothing, so that
//! other processes can go on writing.

use pi_base::regular_file;
use std::path::Path;
use std::sync::Arc;

use crate::entry::Entry;
use crate::error::{SessionError, Warning};
use crate::format::header::Header;
use crate::format::load::load;
use crate::session::Session;

#[derive(Clone, Debug)]
pub struct ReadOnlySession {
    pub header: Header,
    /// Entries in file order.
    pub entries: Vec<Arc<Entry>>,
    /// The current leaf; `None` before the first entry.
    pub leaf: Option<String>,
}

impl ReadOnlySession {
    /// Reads a file, which another pi may have open; `None` if it holds nothing yet.
    pub fn read(path: &Path) -> Result<(Option<Self>, Vec<Warning>), SessionError> {
        let bytes = regular_file::read(path).map_err(SessionError::io("read", path))?;
        let mut warnings = Vec::new();
        // A torn tail may be a record that the other pi is writing at this moment.
        let loaded = load(path, bytes, &mut warnings)?;
        // The migration is only in memory: the file is not changed.
        warnings.retain(|warning| !matches!(warning, Warning::Migrated { .. }));
        let snapshot = loaded.session.map(|(header, tree)| Self {
            header,
            entries: tree.entries().to_vec(),
            leaf: tree.leaf().map(str::to_owned),
        });
        Ok((snapshot, warnings))
    }
}

impl Session {
    pub fn snapshot(&self) -> ReadOnlySession {
        ReadOnlySession {
            header: self.header.clone(),
            entries: self.tree.entries().to_vec(),
            leaf: self.tree.leaf().map(str::to_owned),
        }
    }
}
