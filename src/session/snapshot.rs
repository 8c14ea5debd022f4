//! A session as it is at one moment, for those who only look: no lock, no repair,
//! and whoever writes goes on writing.

use std::path::Path;
use std::sync::Arc;

use js_runtime::read_regular;

use super::entry::Entry;
use super::error::{SessionError, Warning};
use super::handle::Session;
use super::header::Header;
use super::load::load;

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub header: Header,
    /// In file order.
    pub entries: Vec<Arc<Entry>>,
    /// `None` before the first entry.
    pub leaf: Option<String>,
}

impl Snapshot {
    /// Of a file, which may be open in another pi; `None` if nothing is in it yet.
    pub fn read(path: &Path) -> Result<(Option<Self>, Vec<Warning>), SessionError> {
        let bytes = read_regular(path).map_err(SessionError::io("read", path))?;
        let mut warnings = Vec::new();
        // A torn tail may be a record that the other pi is writing just now.
        let loaded = load(path, bytes, &mut warnings)?;
        // Only in memory: the file stays as old as it is.
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
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            header: self.header.clone(),
            entries: self.tree.entries().to_vec(),
            leaf: self.tree.leaf().map(str::to_owned),
        }
    }
}
