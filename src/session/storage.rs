//! What the store needs from a file system, as a trait, so that tests can make
//! disks that are full, lie or fail.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use super::holder;

/// Opens and moves files. [`Disk`] is the real one.
pub trait Storage: Send + Sync {
    /// An existing file, for reading and appending.
    fn open(&self, path: &Path) -> io::Result<Box<dyn StoredFile>>;

    /// A new file, with the folders above it; `AlreadyExists` if there is one.
    fn create(&self, path: &Path) -> io::Result<Box<dyn StoredFile>>;

    /// Puts `from` in the place of `to`, in one step.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Only ever asked for files that this process made and could not finish.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// One open file. Dropping it ends its lock.
pub trait StoredFile: Send {
    /// Takes the exclusive advisory lock, which the operating system releases
    /// when the process ends in whichever way.
    fn try_lock(&self) -> Result<(), TryLockError>;

    /// Gives the lock back; the file stays open.
    fn unlock(&self) -> io::Result<()>;

    /// The process whose lock was in the way of ours: `None` if the system does
    /// not tell, or if that process is about to end.
    fn lock_holder(&self) -> Option<u32>;

    /// The whole content.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// One `write` call at the end of the file; may write less than it was given.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Waits until the content is on the medium. Needed before a rename; a
    /// record does without, because SIGKILL does not take what `write` took.
    fn sync(&mut self) -> io::Result<()>;

    fn size(&self) -> io::Result<u64>;

    /// Whether `path` still leads to this very file.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// The file system of the machine.
pub struct Disk;

impl Storage for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        // Opening a pipe waits for its other end, and some devices never end.
        // `/dev/null` is for those who want no session.
        if !fs::metadata(path)?.is_file() && path != Path::new("/dev/null") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            ));
        }
        let file = OpenOptions::new().read(true).append(true).open(path)?;
        Ok(Box::new(DiskFile { file }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        // A conversation holds what its user would not show to others.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        Ok(Box::new(DiskFile { file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
}

struct DiskFile {
    file: File,
}

/// A child process holds a copy of every open file from its fork until its exec,
/// and the lock lives as long as the last copy. Unlocking ends it for all, so
/// that a session can be reopened while another thread starts a process.
impl Drop for DiskFile {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl StoredFile for DiskFile {
    fn try_lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn lock_holder(&self) -> Option<u32> {
        holder::of(&self.file)
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.file.rewind()?;
        self.file.read_to_end(&mut content)?;
        Ok(content)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    #[cfg(unix)]
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let ours = self.file.metadata()?;
        match fs::metadata(path) {
            Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Elsewhere an open file cannot be replaced, so being there is enough.
    #[cfg(not(unix))]
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }
}
