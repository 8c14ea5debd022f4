//! Sessions that begin as a copy of a path of another session (fork, clone) or of a whole file
//! (`--fork`). The source file is only read.

use pi_base::regular_file;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::entry::{Entry, EntryKind};
use crate::error::{SessionError, Warning};
use crate::file::fs::{Disk, FileSystem};
use crate::file::persistence::Persistence;
use crate::format::entry_writer::{EntryPosition, Record};
use crate::format::json_line::with_parent;
use crate::format::load::load;
use crate::session::{NewSession, Session, absolute};
use crate::tree::Tree;

impl Session {
    /// Creates a session in `dir` with the entries from the root to `leaf`; `None` creates an
    /// empty one. Labels of copied entries are copied. A session in memory is copied in memory.
    pub fn fork_to(&self, leaf: Option<&str>, dir: &Path) -> Result<Self, SessionError> {
        let (storage, parent) = match &self.persistence {
            Persistence::Memory => (None, None),
            Persistence::Unwritten { storage, .. } => (Some(Arc::clone(storage)), None),
            Persistence::File(file) => (Some(file.storage()), Some(file.path().to_owned())),
        };
        self.fork_on(storage, parent, leaf, dir)
    }

    /// Like [`Self::fork_to`], on the given storage; `None` creates the copy in memory.
    pub(crate) fn fork_on(
        &self,
        storage: Option<Arc<dyn FileSystem>>,
        parent_session: Option<PathBuf>,
        leaf: Option<&str>,
        dir: &Path,
    ) -> Result<Self, SessionError> {
        if let Some(id) = leaf {
            self.tree.known(id)?;
        }
        let new = NewSession {
            id: None,
            parent_session,
        };
        let mut fork = match storage {
            None => Self::in_memory(&self.cwd),
            Some(storage) => Self::create_on(storage, dir, &self.cwd, new),
        };
        fork.tree = self.copy_path(leaf);
        fork.write_if_started()?;
        Ok(fork)
    }

    /// Creates a session in `dir` with working directory `cwd` and all entries of the file
    /// `source`, which another pi may have open. `None` as `id` generates one.
    pub fn fork_file(
        source: &Path,
        dir: &Path,
        cwd: &Path,
        id: Option<String>,
    ) -> Result<(Self, Vec<Warning>), SessionError> {
        let source = absolute(source);
        let bytes = regular_file::read(&source).map_err(SessionError::io("read", &source))?;
        let mut warnings = Vec::new();
        // A torn tail may be a record that the other pi is writing at this moment.
        let loaded = load(&source, bytes, &mut warnings)?;
        let Some((_, tree)) = loaded.session else {
            return Err(SessionError::NotASession { path: source });
        };
        // The source was not migrated, only the copy is.
        warnings.retain(|warning| !matches!(warning, Warning::Migrated { .. }));
        let new = NewSession {
            id,
            parent_session: Some(source),
        };
        let storage: Arc<dyn FileSystem> = Arc::new(Disk);
        let mut fork = Self::create_on(storage, dir, cwd, new);
        fork.tree = tree;
        fork.write_if_started()?;
        Ok((fork, warnings))
    }

    fn write_if_started(&mut self) -> Result<(), SessionError> {
        let entries = self.tree.entries();
        if !entries.iter().any(|entry| entry.justifies_file()) {
            return Ok(());
        }
        self.persistence
            .write(&self.header, entries.iter().map(|entry| &**entry))
    }

    /// Copies the path to `leaf` without label entries; children of a label entry become
    /// children of its parent (the original leaves them without a parent). The final labels are
    /// appended after the path.
    fn copy_path(&self, leaf: Option<&str>) -> Tree {
        let mut copy = Tree::default();
        for entry in self.tree.path_to(leaf) {
            if matches!(entry.kind, EntryKind::Label { .. }) {
                continue;
            }
            let parent = copy.leaf();
            let line = if entry.parent_id.as_deref() == parent {
                entry.raw.clone()
            } else {
                with_parent(&entry, copy.leaf_ref()).into()
            };
            copy.insert(Entry::parse(line).expect("the line of an entry is an entry"));
        }
        for (target_id, label) in self.tree.labels() {
            if copy.get(target_id).is_none() {
                continue;
            }
            let record = Record::Label {
                target_id: copy.id_ref(target_id),
                label: Some(&label.text),
            };
            let line = record.to_line(EntryPosition {
                id: &copy.new_id(),
                parent_id: copy.leaf_ref(),
                timestamp: &label.timestamp,
            });
            copy.insert(Entry::parse(line).expect("a line that was just written is an entry"));
        }
        copy
    }
}
