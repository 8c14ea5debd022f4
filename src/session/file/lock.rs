//! The lock of a session that several processes share: it is taken before the first append and
//! released when the session is idle, so that the processes take turns. Each process reads what
//! the others stored before it appends.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::entry::Entry;
use crate::error::{SessionError, Warning};
use crate::file::fs::{Disk, FileSystem};
use crate::file::persistence::Persistence;
use crate::file::session_file::SessionFile;
use crate::format::json_line::with_parent;
use crate::format::load::{Tail, load};
use crate::session::{Session, absolute};

const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The result of [`Session::acquire_lock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOutcome {
    /// No other process has changed the file.
    Unchanged,
    /// Other processes have appended this many entries, which are in memory now.
    CaughtUp(usize),
}

impl Session {
    /// Opens a session to which other processes may write until [`Self::acquire_lock`]. Damage that a
    /// crash left in the file is repaired now if no process has the lock, and otherwise at the
    /// first append.
    pub fn open_shared(path: &Path, cwd: &Path) -> Result<(Self, Vec<Warning>), SessionError> {
        match Self::open(path, cwd) {
            Ok((mut session, warnings)) => {
                session.release_lock();
                Ok((session, warnings))
            }
            Err(SessionError::Locked { .. }) => Self::read_unlocked(path, cwd),
            Err(error) => Err(error),
        }
    }

    fn read_unlocked(path: &Path, cwd: &Path) -> Result<(Self, Vec<Warning>), SessionError> {
        let storage: Arc<dyn FileSystem> = Arc::new(Disk);
        let path = absolute(path);
        let mut warnings = Vec::new();
        let Some(mut file) = SessionFile::open_unlocked(&storage, &path)? else {
            return Ok((Self::unwritten(storage, path, None, cwd), warnings));
        };
        let bytes = file.read()?;
        let loaded = load(&path, bytes, &mut warnings)?;
        let Some((header, tree)) = loaded.session else {
            return Ok((Self::unwritten(storage, path, None, cwd), warnings));
        };
        if loaded.tail != Tail::Nothing || loaded.migrated.is_some() {
            // The file is read again under the lock: the lock holder may be in the middle of a
            // record, and the ids that a migration assigns must be those of the file.
            file.mark_end_incomplete();
            warnings.retain(|warning| !matches!(warning, Warning::Migrated { .. }));
        }
        let cwd = header.cwd.clone().unwrap_or_else(|| cwd.to_owned());
        let session = Self {
            header,
            cwd,
            persistence: Persistence::File(file),
            tree,
        };
        Ok((session, warnings))
    }

    /// Takes the lock, if this process does not have it, and reads what other processes have
    /// stored since. Does not wait. Every append calls this first.
    pub fn acquire_lock(&mut self) -> Result<LockOutcome, SessionError> {
        let Persistence::File(file) = &mut self.persistence else {
            return Ok(LockOutcome::Unchanged);
        };
        if file.is_locked() {
            return Ok(LockOutcome::Unchanged);
        }
        file.lock()?;
        match file.has_grown() {
            Ok(false) => Ok(LockOutcome::Unchanged),
            Ok(true) => {
                file.unlock();
                let (storage, path) = (file.storage(), file.path().to_owned());
                self.catch_up(storage, &path)
            }
            Err(error) => {
                file.unlock();
                Err(error)
            }
        }
    }

    /// Like [`Self::acquire_lock`], but waits up to `timeout` while another process holds the lock.
    pub fn acquire_lock_within(&mut self, timeout: Duration) -> Result<LockOutcome, SessionError> {
        let began = Instant::now();
        loop {
            match self.acquire_lock() {
                Err(SessionError::Locked { .. }) if began.elapsed() < timeout => {
                    std::thread::sleep(LOCK_POLL_INTERVAL);
                }
                held => return held,
            }
        }
    }

    /// Lets other processes write, unless entries are still to be written to the file.
    pub fn release_lock(&mut self) {
        if self.unsaved_count() > 0 {
            return;
        }
        if let Persistence::File(file) = &mut self.persistence {
            file.unlock();
        }
    }

    /// Reads the file again. A session whose leaf was the last entry moves to the new last
    /// entry; any other leaf stays.
    fn catch_up(
        &mut self,
        storage: Arc<dyn FileSystem>,
        path: &Path,
    ) -> Result<LockOutcome, SessionError> {
        let (mut fresh, warnings) = Self::open_on(storage, path, &self.cwd)?;
        if !fresh.is_stored() {
            return Err(SessionError::Vanished {
                path: path.to_owned(),
            });
        }
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        fresh.override_cwd(&self.cwd);
        let known = self.entries().len() - self.unsaved_count();
        let added = fresh.entries().len().saturating_sub(known);
        let at_end = self.tree.is_at_end();
        for unsaved in &self.entries()[known..] {
            fresh.insert_unsaved(unsaved, at_end)?;
        }
        if !at_end {
            let leaf = self.leaf_id().filter(|leaf| fresh.entry(leaf).is_some());
            fresh.set_leaf(leaf)?;
        }
        *self = fresh;
        Ok(LockOutcome::CaughtUp(added))
    }

    /// Adds an entry that could not be stored yet: at the end, or under its parent.
    fn insert_unsaved(&mut self, unsaved: &Entry, at_end: bool) -> Result<(), SessionError> {
        let parent = unsaved.parent_id.as_deref();
        if !at_end && parent.is_none_or(|parent| self.entry(parent).is_some()) {
            self.set_leaf(parent)?;
        }
        let line = match parent == self.leaf_id() {
            true => unsaved.raw.clone(),
            false => with_parent(unsaved, self.tree.leaf_ref()).into(),
        };
        let entry = Entry::parse(line).expect("the line of an entry is an entry");
        self.tree.insert(entry);
        self.tree.mark_last_unsaved();
        Ok(())
    }
}
