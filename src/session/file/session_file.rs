//! The session file while this process may write to it: locked and appended record by record. A
//! new record is never appended to an incomplete one.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use uuid::Uuid;

use crate::error::{SessionError, Warning};
use crate::file::fs::{FileSystem, OpenFile};
use crate::file::lock_holder::LockHolder;
use crate::paths;
use crate::tree::fresh_id;

/// How long to wait for a lock whose holder seems to be gone: a killed process may still be
/// ending, or its child may not have called exec yet.
const ENDING_HOLDER_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct SessionFile {
    /// Declared before `file`: fields drop in order, and the lock ends when `file` is dropped.
    unused: Option<RemoveIfEmpty>,
    storage: Arc<dyn FileSystem>,
    path: PathBuf,
    file: Box<dyn OpenFile>,
    is_locked: bool,
    /// Offset in bytes at which the last record of this process ends.
    end: u64,
}

/// A file that was created in advance: it is removed on drop unless something was written to
/// it.
struct RemoveIfEmpty {
    storage: Arc<dyn FileSystem>,
    path: PathBuf,
}

impl Drop for RemoveIfEmpty {
    fn drop(&mut self) {
        // Another file may be at this path by now.
        let there = self.storage.open(&self.path);
        if there.is_ok_and(|file| file.size().is_ok_and(|size| size == 0)) {
            // An empty file is not a session; the next process that reserves its id removes it.
            let _ = self.storage.remove(&self.path);
        }
    }
}

/// Value of `end` if the file does not end with a complete record.
const END_INCOMPLETE: u64 = u64::MAX;

impl SessionFile {
    /// Opens and locks a file; `None` if there is none.
    pub(crate) fn open(
        storage: &Arc<dyn FileSystem>,
        path: &Path,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<Self>, SessionError> {
        loop {
            let file = match storage.open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(SessionError::io("open", path)(error)),
            };
            let mut opened = Self::new(storage, path, file);
            opened.lock_with_grace(warnings)?;
            // A migration replaces the file. A process that opened the old file just before
            // holds a lock that protects nothing, so it opens again.
            if opened
                .file
                .is_at(path)
                .map_err(SessionError::io("look up", path))?
            {
                return Ok(Some(opened));
            }
        }
    }

    /// Opens an existing file for reading, whether or not another process has the lock.
    pub(crate) fn open_unlocked(
        storage: &Arc<dyn FileSystem>,
        path: &Path,
    ) -> Result<Option<Self>, SessionError> {
        match storage.open(path) {
            Ok(file) => Ok(Some(Self::new(storage, path, file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SessionError::io("open", path)(error)),
        }
    }

    /// Creates and locks a file, which must not exist or must be empty.
    pub(crate) fn create(
        storage: &Arc<dyn FileSystem>,
        path: &Path,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, SessionError> {
        let occupied = || SessionError::Occupied {
            path: path.to_owned(),
        };
        let created = match storage.create(path) {
            Ok(file) => {
                let mut created = Self::new(storage, path, file);
                created.lock_with_grace(warnings)?;
                created
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::open(storage, path, warnings)?.ok_or_else(occupied)?
            }
            Err(error) => return Err(SessionError::io("create", path)(error)),
        };
        // Another pi may have locked and written the file between its creation and our lock.
        match created
            .file
            .size()
            .map_err(SessionError::io("look up", path))?
        {
            0 => Ok(created),
            _ => Err(occupied()),
        }
    }

    fn new(storage: &Arc<dyn FileSystem>, path: &Path, file: Box<dyn OpenFile>) -> Self {
        Self {
            unused: None,
            storage: Arc::clone(storage),
            path: path.to_owned(),
            file,
            is_locked: false,
            end: 0,
        }
    }

    /// Takes the lock. Waits only for a holder that is about to end.
    fn lock_with_grace(&mut self, warnings: &mut Vec<Warning>) -> Result<(), SessionError> {
        let began = Instant::now();
        while !self.try_lock(warnings) {
            if self.file.lock_holder().is_some() || began.elapsed() > ENDING_HOLDER_TIMEOUT {
                return Err(self.locked());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Takes the lock without waiting.
    pub(crate) fn lock(&mut self) -> Result<(), SessionError> {
        let mut warnings = Vec::new();
        if !self.try_lock(&mut warnings) {
            return Err(self.locked());
        }
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        Ok(())
    }

    fn try_lock(&mut self, warnings: &mut Vec<Warning>) -> bool {
        match self.file.try_lock() {
            Ok(()) => self.is_locked = true,
            Err(TryLockError::WouldBlock) => {}
            // Some network file systems have no locks and report that with different errors.
            // Working there without a lock is better than not at all.
            Err(TryLockError::Error(error)) => {
                warnings.push(Warning::NoLock {
                    path: self.path.clone(),
                    reason: error.to_string(),
                });
                self.is_locked = true;
            }
        }
        self.is_locked
    }

    fn locked(&self) -> SessionError {
        SessionError::Locked {
            path: self.path.clone(),
            holder: self.file.lock_holder().map(LockHolder::from_process_id),
        }
    }

    /// Lets other processes write. A lock that cannot be released is kept.
    pub(crate) fn unlock(&mut self) {
        if self.is_locked && self.file.unlock().is_ok() {
            self.is_locked = false;
        }
    }

    pub(crate) fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Returns whether another process appended after our last record or our last read. False
    /// for a file that is missing or shorter: [`Self::append`] reports that.
    pub(crate) fn has_grown(&self) -> Result<bool, SessionError> {
        let failed = |error| SessionError::io("look up", &self.path)(error);
        if !self.file.is_at(&self.path).map_err(failed)? {
            return Ok(false);
        }
        let size = self.file.size().map_err(failed)?;
        Ok(self.end == END_INCOMPLETE || size > self.end)
    }

    /// Removes the file on drop, unless something is written to it.
    pub(crate) fn remove_if_empty(&mut self) {
        self.unused = Some(RemoveIfEmpty {
            storage: self.storage(),
            path: self.path.clone(),
        });
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn storage(&self) -> Arc<dyn FileSystem> {
        Arc::clone(&self.storage)
    }

    pub(crate) fn read(&mut self) -> Result<Vec<u8>, SessionError> {
        let content = self
            .file
            .read()
            .map_err(SessionError::io("read", &self.path))?;
        self.end = content.len() as u64;
        Ok(content)
    }

    /// Appends whole lines. After `Ok` they survive SIGKILL. After an error the file is as
    /// before, or its next record starts on a new line.
    pub(crate) fn append(&mut self, lines: &str) -> Result<(), SessionError> {
        let at = self.file.is_at(&self.path);
        if !at.map_err(SessionError::io("look up", &self.path))? {
            return Err(SessionError::Vanished {
                path: self.path.clone(),
            });
        }
        let start = self
            .file
            .size()
            .map_err(SessionError::io("look up", &self.path))?;
        if start < self.end && self.end != END_INCOMPLETE {
            return Err(SessionError::Shortened {
                path: self.path.clone(),
            });
        }
        // A process without our lock (the original takes none) or our own failed write moved
        // the end. An extra empty line is harmless to readers; a record after an incomplete
        // line would make both unreadable.
        let separated;
        let record = if start == self.end {
            lines
        } else {
            separated = format!("\n{lines}");
            &separated
        };
        match write(&mut *self.file, record.as_bytes()) {
            Ok(()) => {
                self.end = start + record.len() as u64;
                Ok(())
            }
            Err((written, error)) => {
                // Remove only the bytes that this call wrote. If that fails too, `end` no
                // longer matches and the next record starts a new line.
                if self.file.size().is_ok_and(|size| size == start + written) {
                    let _ = self.file.truncate(start);
                }
                Err(SessionError::io("append to", &self.path)(error))
            }
        }
    }

    /// Stores `tail`, the content from `start` on, in a file of its own and then cuts the
    /// session file at `start`. Returns the path of the new file.
    pub(crate) fn move_tail_aside(
        &mut self,
        start: usize,
        tail: &[u8],
    ) -> Result<PathBuf, SessionError> {
        let aside = self.sibling(&dated_suffix("torn"));
        self.write_sibling(&aside, tail)?;
        if let Err(error) = self.file.truncate(start as u64) {
            // Remove the copy: the tail is still in the session file.
            let _ = self.storage.remove(&aside);
            return Err(SessionError::io("cut the torn last line off", &self.path)(
                error,
            ));
        }
        self.end = start as u64;
        Ok(aside)
    }

    /// Stores the content of the file under another name and returns the path.
    pub(crate) fn write_backup(&mut self, content: &[u8]) -> Result<PathBuf, SessionError> {
        let aside = self.sibling(&dated_suffix("before"));
        self.write_sibling(&aside, content)?;
        Ok(aside)
    }

    /// Marks the end of the file as an incomplete line, so that the next record starts on a new
    /// line.
    pub(crate) fn mark_end_incomplete(&mut self) {
        self.end = END_INCOMPLETE;
    }

    /// Replaces the content atomically and keeps the lock.
    pub(crate) fn replace(&mut self, content: &[u8]) -> Result<(), SessionError> {
        let next = self.sibling(&format!("new-{}", Uuid::new_v4()));
        let file = self.write_sibling(&next, content)?;
        // The new file is locked before other processes can open it.
        let mut locked = Self::new(&self.storage, &self.path, file);
        let replaced = locked.lock_with_grace(&mut Vec::new()).and_then(|()| {
            let renamed = self.storage.rename(&next, &self.path);
            renamed.map_err(SessionError::io("replace", &self.path))
        });
        replaced.inspect_err(|_| {
            let _ = self.storage.remove(&next);
        })?;
        *self = Self {
            end: content.len() as u64,
            ..locked
        };
        Ok(())
    }

    /// Writes a file completely or not at all.
    fn write_sibling(
        &self,
        path: &Path,
        content: &[u8],
    ) -> Result<Box<dyn OpenFile>, SessionError> {
        let created = self.storage.create(path);
        let mut file = created.map_err(SessionError::io("create", path))?;
        let written = write(&mut *file, content).map_err(|(_, error)| error);
        if let Err(error) = written.and_then(|()| file.sync()) {
            let _ = self.storage.remove(path);
            return Err(SessionError::io("write", path)(error));
        }
        Ok(file)
    }

    /// Returns `<file>.<suffix>`, which no reader takes for a session.
    fn sibling(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{suffix}"));
        PathBuf::from(name)
    }
}

/// Returns a suffix with the time and a random part, since two calls may have the same time.
fn dated_suffix(what: &str) -> String {
    let time = paths::iso(Utc::now()).replace([':', '.'], "-");
    format!("{what}-{time}-{}", fresh_id(|_| false))
}

/// Writes `bytes` with one call, or more if the system accepts only a part: the following call
/// reports why. The error contains the number of bytes written.
fn write(file: &mut dyn OpenFile, bytes: &[u8]) -> Result<(), (u64, io::Error)> {
    let mut written = 0;
    while written < bytes.len() {
        match file.append(&bytes[written..]) {
            Ok(0) => return Err((written as u64, io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err((written as u64, error)),
        }
    }
    Ok(())
}
