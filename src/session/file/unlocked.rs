//! A session that is locked only while something is written to it. Extensions open files to
//! read them, keep them open as long as they like, and cannot be relied on to close them.

use pi_base::regular_file;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{SessionError, Warning};
use crate::file::fs::{Disk, FileSystem};
use crate::file::persistence::Persistence;
use crate::file::session_file::SessionFile;
use crate::format::load::{Tail, load};
use crate::session::{NewSession, Session, absolute};

pub struct UnlockedSession {
    /// The session. If it has a file, its persistence is memory except during a write.
    session: Session,
    /// Path of the file and its length in bytes when this process last read or wrote it.
    file: Option<(PathBuf, usize)>,
    /// Folder for sessions that branch off this one; `None` in memory.
    dir: Option<PathBuf>,
}

impl UnlockedSession {
    pub fn create(dir: &Path, cwd: &Path, new: NewSession) -> Result<Self, SessionError> {
        check_id(new.id.as_deref())?;
        Ok(Self {
            session: Session::create(dir, cwd, new),
            file: None,
            dir: Some(dir.to_owned()),
        })
    }

    pub fn in_memory(cwd: &Path, new: NewSession) -> Result<Self, SessionError> {
        check_id(new.id.as_deref())?;
        Ok(Self {
            session: Session::in_memory_with(cwd, new),
            file: None,
            dir: None,
        })
    }

    /// Opens a file, which may be in use. A file that does not exist or is empty becomes a new
    /// session at that path. `dir` defaults to the folder of the file, `cwd` to the working
    /// directory in the file.
    pub fn open(
        path: &Path,
        dir: Option<&Path>,
        cwd: Option<&Path>,
        here: &Path,
    ) -> Result<(Self, Vec<Warning>), SessionError> {
        let path = absolute(path);
        let dir = dir.or(path.parent()).map(absolute);
        let mut warnings = Vec::new();
        let bytes = match regular_file::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(SessionError::io("read", &path)(error)),
        };
        let length = bytes.len();
        let loaded = load(&path, bytes, &mut warnings)?;
        let (mut session, file) = match loaded.session {
            // The file is migrated too, so that memory has the ids that the migration assigned.
            Some(_) if loaded.migrated.is_some() => {
                let (session, opened) = Session::open(&path, here)?;
                warnings = opened;
                (session, None)
            }
            Some((header, tree)) => {
                let seen = match loaded.tail {
                    Tail::Nothing => length,
                    // Read and repair the file before anything is written.
                    Tail::Record | Tail::Torn(_) => usize::MAX,
                };
                let cwd = header.cwd.clone().unwrap_or_else(|| here.to_owned());
                let persistence = Persistence::Memory;
                let session = Session {
                    header,
                    cwd,
                    persistence,
                    tree,
                };
                (session, Some((path, seen)))
            }
            None => {
                let storage: Arc<dyn FileSystem> = Arc::new(Disk);
                (Session::unwritten(storage, path, None, here), None)
            }
        };
        if let Some(cwd) = cwd {
            session.override_cwd(cwd);
        }
        let mut unlocked = Self { session, file, dir };
        unlocked.release_lock();
        Ok((unlocked, warnings))
    }

    /// Creates a session with all entries of `source`.
    pub fn fork_file(
        source: &Path,
        dir: &Path,
        cwd: &Path,
        id: Option<String>,
    ) -> Result<Self, SessionError> {
        check_id(id.as_deref())?;
        let (session, _) = Session::fork_file(source, dir, cwd, id)?;
        let mut unlocked = Self {
            session,
            file: None,
            dir: Some(dir.to_owned()),
        };
        unlocked.release_lock();
        Ok(unlocked)
    }

    /// Returns the session to read it and to move in its tree. Entries that are appended here
    /// are not stored: see [`Self::write`].
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    pub fn path(&self) -> Option<&Path> {
        match &self.file {
            Some((path, _)) => Some(path),
            None => self.session.path(),
        }
    }

    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Runs `work` while this process has the lock. Fails with the error of `work`, or if
    /// another process has the lock.
    pub fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Session) -> Result<T, SessionError>,
    ) -> Result<T, SessionError> {
        self.acquire_lock()?;
        let done = work(&mut self.session);
        self.release_lock();
        done
    }

    /// Takes the lock for good.
    pub fn into_session(mut self) -> Result<Session, SessionError> {
        self.acquire_lock()?;
        Ok(self.session)
    }

    /// Continues in a new session with the entries up to `leaf`.
    pub fn branch_off(&mut self, leaf: &str) -> Result<(), SessionError> {
        let (parent, dir) = match &self.dir {
            Some(dir) => (Some(self.path().map(Path::to_owned)), dir.clone()),
            None => (None, PathBuf::new()),
        };
        self.session = match parent {
            Some(parent) => {
                let storage: Arc<dyn FileSystem> = Arc::new(Disk);
                self.session
                    .fork_on(Some(storage), parent, Some(leaf), &dir)?
            }
            None => self.session.fork_on(None, None, Some(leaf), &dir)?,
        };
        self.file = None;
        self.release_lock();
        Ok(())
    }

    /// Replaces this session by a new one.
    pub fn begin(&mut self, new: NewSession) -> Result<(), SessionError> {
        let cwd = self.session.cwd().to_owned();
        *self = match &self.dir {
            Some(dir) => Self::create(dir, &cwd, new)?,
            None => Self::in_memory(&cwd, new)?,
        };
        Ok(())
    }

    fn acquire_lock(&mut self) -> Result<(), SessionError> {
        let Some((path, seen)) = &self.file else {
            return Ok(());
        };
        let vanished = || SessionError::Vanished { path: path.clone() };
        let storage: Arc<dyn FileSystem> = Arc::new(Disk);
        let mut file = SessionFile::open(&storage, path, &mut Vec::new())?.ok_or_else(vanished)?;
        if file.read()?.len() == *seen {
            self.session.persistence = Persistence::File(file);
            return Ok(());
        }
        // Another process wrote since. Read its entries first, then append ours at our leaf.
        drop(file);
        let (mut session, _) = Session::open(path, self.session.cwd())?;
        let leaf = self.session.leaf_id();
        if leaf.is_none_or(|leaf| session.entry(leaf).is_some()) {
            session.set_leaf(leaf)?;
        }
        session.override_cwd(self.session.cwd());
        self.session = session;
        Ok(())
    }

    /// Releases the lock, if this process has it.
    fn release_lock(&mut self) {
        let Persistence::File(file) = &self.session.persistence else {
            return;
        };
        let path = file.path().to_owned();
        let length = fs::metadata(&path).map_or(u64::MAX, |metadata| metadata.len());
        self.session.persistence = Persistence::Memory;
        self.file = Some((path, usize::try_from(length).unwrap_or(usize::MAX)));
    }
}

/// Checks an id, which becomes part of a file name.
fn check_id(id: Option<&str>) -> Result<(), SessionError> {
    let is_good = |id: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !id.is_empty() && id.len() <= 128 && id.chars().all(plain)
    };
    match id {
        Some(id) if !is_good(id) => Err(SessionError::BadId { id: id.to_owned() }),
        _ => Ok(()),
    }
}
