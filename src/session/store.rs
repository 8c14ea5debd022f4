//! The session file while this process is its one writer: locked, appended to
//! record by record, never left with half a record that the next could fuse with.

use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use uuid::Uuid;

use super::error::{SessionError, Warning};
use super::holder::Holder;
use super::paths;
use super::storage::{Storage, StoredFile};
use super::tree::fresh_id;

/// How long a lock may be there that nobody seems to hold: a process that was
/// killed is still ending, or its child has yet to become another program.
const LAST_BREATH: Duration = Duration::from_secs(2);

pub(super) struct SessionFile {
    /// Before the file, whose lock ends when it is dropped.
    unused: Option<Unused>,
    storage: Arc<dyn Storage>,
    path: PathBuf,
    file: Box<dyn StoredFile>,
    is_locked: bool,
    /// Where our last record ended.
    end: u64,
}

/// A file that was made only to be had: it goes unless something was written to it.
struct Unused {
    storage: Arc<dyn Storage>,
    path: PathBuf,
}

impl Drop for Unused {
    fn drop(&mut self) {
        // It may be another one by now.
        let there = self.storage.open(&self.path);
        if there.is_ok_and(|file| file.size().is_ok_and(|size| size == 0)) {
            // An empty file is no session, and the next who wants its id removes it.
            let _ = self.storage.remove(&self.path);
        }
    }
}

/// In the place of an end that no record ends at.
const OPEN: u64 = u64::MAX;

impl SessionFile {
    /// Opens and locks; `None` if there is no such file.
    pub(super) fn open(
        storage: &Arc<dyn Storage>,
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
            opened.lock_or_refuse(warnings)?;
            // A migration puts a new file in the place of the old one. Who opened
            // the old one just before holds a lock that protects nothing.
            if opened
                .file
                .is_at(path)
                .map_err(SessionError::io("look up", path))?
            {
                return Ok(Some(opened));
            }
        }
    }

    /// Opens an existing file to read it, whoever writes it.
    pub(super) fn open_unlocked(
        storage: &Arc<dyn Storage>,
        path: &Path,
    ) -> Result<Option<Self>, SessionError> {
        match storage.open(path) {
            Ok(file) => Ok(Some(Self::new(storage, path, file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SessionError::io("open", path)(error)),
        }
    }

    /// Makes and locks a file that must not hold anything yet.
    pub(super) fn create(
        storage: &Arc<dyn Storage>,
        path: &Path,
        warnings: &mut Vec<Warning>,
    ) -> Result<Self, SessionError> {
        let occupied = || SessionError::Occupied {
            path: path.to_owned(),
        };
        let created = match storage.create(path) {
            Ok(file) => {
                let mut created = Self::new(storage, path, file);
                created.lock_or_refuse(warnings)?;
                created
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::open(storage, path, warnings)?.ok_or_else(occupied)?
            }
            Err(error) => return Err(SessionError::io("create", path)(error)),
        };
        // Another pi may have come between our creating the file and locking it.
        match created
            .file
            .size()
            .map_err(SessionError::io("look up", path))?
        {
            0 => Ok(created),
            _ => Err(occupied()),
        }
    }

    fn new(storage: &Arc<dyn Storage>, path: &Path, file: Box<dyn StoredFile>) -> Self {
        Self {
            unused: None,
            storage: Arc::clone(storage),
            path: path.to_owned(),
            file,
            is_locked: false,
            end: 0,
        }
    }

    /// Waits only for a holder that is about to end.
    fn lock_or_refuse(&mut self, warnings: &mut Vec<Warning>) -> Result<(), SessionError> {
        let began = Instant::now();
        while !self.try_lock(warnings) {
            if self.file.lock_holder().is_some() || began.elapsed() > LAST_BREATH {
                return Err(self.locked());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Does not wait.
    pub(super) fn lock(&mut self) -> Result<(), SessionError> {
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
            // Some network file systems have no locks, each with another error
            // for it. Working there unprotected is better than not at all.
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
            holder: self.file.lock_holder().map(Holder::of),
        }
    }

    /// Another process may write from here on. A lock that cannot be given back is kept.
    pub(super) fn unlock(&mut self) {
        if self.is_locked && self.file.unlock().is_ok() {
            self.is_locked = false;
        }
    }

    pub(super) fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// True if another process added to the file after our last record, or after we read it.
    /// False for a file that is away or shorter: [`Self::append`] reports that.
    pub(super) fn has_grown(&self) -> Result<bool, SessionError> {
        let failed = |error| SessionError::io("look up", &self.path)(error);
        if !self.file.is_at(&self.path).map_err(failed)? {
            return Ok(false);
        }
        let size = self.file.size().map_err(failed)?;
        Ok(self.end == OPEN || size > self.end)
    }

    /// The file is removed with this, unless something is written to it.
    pub(super) fn give_up_if_empty(&mut self) {
        self.unused = Some(Unused {
            storage: self.storage(),
            path: self.path.clone(),
        });
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn storage(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.storage)
    }

    pub(super) fn read(&mut self) -> Result<Vec<u8>, SessionError> {
        let content = self
            .file
            .read()
            .map_err(SessionError::io("read", &self.path))?;
        self.end = content.len() as u64;
        Ok(content)
    }

    /// Adds whole lines. When this returns `Ok` they survive SIGKILL; when it
    /// returns an error the file is as before, or its next record starts on a
    /// line of its own.
    pub(super) fn append(&mut self, lines: &str) -> Result<(), SessionError> {
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
        if start < self.end && self.end != OPEN {
            return Err(SessionError::Shortened {
                path: self.path.clone(),
            });
        }
        // Somebody without our lock (the original takes none) or our own failed
        // write moved the end. An empty line too many disturbs no reader, half a
        // line in front of ours would cost both.
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
                // Only what we added is taken back, and if that fails too, `end`
                // no longer fits and the next record starts a new line.
                if self.file.size().is_ok_and(|size| size == start + written) {
                    let _ = self.file.truncate(start);
                }
                Err(SessionError::io("append to", &self.path)(error))
            }
        }
    }

    /// Cuts the file at `start`, after `tail`, which is what stands there, is
    /// safe in a file of its own.
    pub(super) fn move_aside(
        &mut self,
        start: usize,
        tail: &[u8],
    ) -> Result<PathBuf, SessionError> {
        let aside = self.sibling(&dated("torn"));
        self.write_sibling(&aside, tail)?;
        if let Err(error) = self.file.truncate(start as u64) {
            // It would be a second copy.
            let _ = self.storage.remove(&aside);
            return Err(SessionError::io("cut the torn last line off", &self.path)(
                error,
            ));
        }
        self.end = start as u64;
        Ok(aside)
    }

    /// The file as it is, a second time, under another name.
    pub(super) fn keep_copy(&mut self, content: &[u8]) -> Result<PathBuf, SessionError> {
        let aside = self.sibling(&dated("before"));
        self.write_sibling(&aside, content)?;
        Ok(aside)
    }

    /// What the file ends with is not a whole line, and stays so until the next
    /// record, which begins a line of its own.
    pub(super) fn leave_end_open(&mut self) {
        self.end = OPEN;
    }

    /// Puts new content in the place of the old, in one step, keeping the lock.
    pub(super) fn replace(&mut self, content: &[u8]) -> Result<(), SessionError> {
        let next = self.sibling(&format!("new-{}", Uuid::new_v4()));
        let file = self.write_sibling(&next, content)?;
        // Locked before anybody can find it.
        let mut locked = Self::new(&self.storage, &self.path, file);
        let replaced = locked.lock_or_refuse(&mut Vec::new()).and_then(|()| {
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

    /// A whole file or none.
    fn write_sibling(
        &self,
        path: &Path,
        content: &[u8],
    ) -> Result<Box<dyn StoredFile>, SessionError> {
        let created = self.storage.create(path);
        let mut file = created.map_err(SessionError::io("create", path))?;
        let written = write(&mut *file, content).map_err(|(_, error)| error);
        if let Err(error) = written.and_then(|()| file.sync()) {
            let _ = self.storage.remove(path);
            return Err(SessionError::io("write", path)(error));
        }
        Ok(file)
    }

    /// `<file>.<suffix>`: no reader of sessions takes it for one.
    fn sibling(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{suffix}"));
        PathBuf::from(name)
    }
}

/// Two of the same moment are told apart as well.
fn dated(what: &str) -> String {
    let time = paths::iso(Utc::now()).replace([':', '.'], "-");
    format!("{what}-{time}-{}", fresh_id(|_| false))
}

/// One `write` call, unless the system takes only a part of it: then the rest is
/// tried, because only that tells why. An error comes with how much was taken.
fn write(file: &mut dyn StoredFile, bytes: &[u8]) -> Result<(), (u64, io::Error)> {
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
