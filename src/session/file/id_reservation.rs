//! Reservation of a session id that a client chose. When two programs start a session with the
//! same id at the same moment, one gets the id and the other gets an error. Without this each
//! would create its own file, and the id would find only one of the two conversations.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::SessionError;
use crate::file::fs::{Disk, FileSystem};
use crate::file::persistence::Persistence;
use crate::file::session_file::SessionFile;
use crate::list::session_files;
use crate::session::Session;

/// Looking up an id and creating its file takes milliseconds; after this time the lock is given
/// up.
const FOLDER_LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Lock on a session folder. While it exists, no other process looks up or reserves an id in
/// this folder. On file systems that cannot lock folders it has no effect.
pub struct FolderLock {
    _folder: Option<File>,
}

impl FolderLock {
    pub fn take(dir: &Path) -> Self {
        // Ignored here: an error occurs again when an entry is stored in this folder.
        let _ = std::fs::create_dir_all(dir);
        let folder = File::open(dir).ok().filter(|folder| {
            let began = Instant::now();
            loop {
                match folder.try_lock() {
                    Err(TryLockError::WouldBlock) if began.elapsed() < FOLDER_LOCK_TIMEOUT => {
                        std::thread::sleep(LOCK_POLL_INTERVAL);
                    }
                    taken => return taken.is_ok(),
                }
            }
        });
        Self { _folder: folder }
    }
}

/// Fails if another process has reserved `id` and not stored anything yet. Removes the empty
/// file of a process that was killed.
pub fn check_id_free(dir: &Path, id: &str) -> Result<(), SessionError> {
    let storage: Arc<dyn FileSystem> = Arc::new(Disk);
    let ending = format!("_{id}.jsonl");
    let is_its = |path: &std::path::PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.ends_with(&ending))
            && path.metadata().is_ok_and(|about| about.len() == 0)
    };
    for path in session_files(dir)?.into_iter().filter(is_its) {
        match SessionFile::open(&storage, &path, &mut Vec::new()) {
            Ok(None) => {}
            // The file is locked by this process now and is removed if it is still empty.
            Ok(Some(mut file)) => file.remove_if_empty(),
            Err(SessionError::Locked { holder, .. }) => {
                return Err(SessionError::IdReserved {
                    id: id.to_owned(),
                    holder,
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Session {
    /// Reserves the id: creates the file now, empty and locked. The file is removed with the
    /// session if nothing is stored. A file that cannot be created is only logged here; the
    /// first append reports the error.
    pub fn reserve_id(&mut self) -> Result<(), SessionError> {
        let Persistence::Unwritten {
            storage,
            path,
            file: file @ None,
        } = &mut self.persistence
        else {
            return Ok(());
        };
        match SessionFile::create(storage, path, &mut Vec::new()) {
            Ok(mut made) => {
                made.remove_if_empty();
                *file = Some(made);
            }
            Err(error @ SessionError::Io { .. }) => {
                tracing::warn!("the id of the session is not claimed: {error}");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Frees a reserved id under which nothing was stored. Called when the program ends.
    pub fn release_id(&mut self) {
        if let Persistence::Unwritten { file, .. } = &mut self.persistence {
            *file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NewSession;

    fn named(dir: &Path, id: &str) -> Session {
        let new = NewSession {
            id: Some(id.into()),
            ..NewSession::default()
        };
        Session::create(dir, dir, new)
    }

    fn files(dir: &Path) -> usize {
        session_files(dir).unwrap().len()
    }

    #[test]
    fn id_is_reserved_until_session_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let mut session = named(dir.path(), "job-1");
        session.reserve_id().unwrap();
        assert_eq!(files(dir.path()), 1);
        let taken = check_id_free(dir.path(), "job-1").unwrap_err().to_string();
        assert!(taken.contains("job-1"), "{taken}");
        check_id_free(dir.path(), "job").unwrap();
        drop(session);
        assert_eq!(files(dir.path()), 0);
        check_id_free(dir.path(), "job-1").unwrap();
    }

    #[test]
    fn stored_file_stays_and_leftover_empty_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let mut session = named(dir.path(), "job-2");
        session.reserve_id().unwrap();
        session.append_session_info("said").unwrap();
        let written = session.path().unwrap().to_owned();
        session.release_id();
        drop(session);
        let stored = written.metadata().map_or(0, |about| about.len());
        // A name without a message does not justify a file.
        assert_eq!(stored, 0);
        let left = dir.path().join("2026-01-01T00-00-00-000Z_job-3.jsonl");
        std::fs::write(&left, "").unwrap();
        check_id_free(dir.path(), "job-3").unwrap();
        assert!(!left.exists());
    }
}
