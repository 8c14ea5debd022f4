//! The operations of a file system that session files need, as a trait, so that tests can
//! inject full, faulty or lying disks.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use crate::file::lock_holder;

/// Opens, moves and removes files. [`Disk`] is the real implementation.
pub trait FileSystem: Send + Sync {
    /// Opens an existing file for reading and appending.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Creates a file and the folders above it. Fails with `AlreadyExists` if the file exists.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Replaces `to` by `from` atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file. Only used for files that this process created and could not finish.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// One open file. Dropping it releases its lock.
pub trait OpenFile: Send {
    /// Takes the exclusive advisory lock. The operating system releases it when the process
    /// ends in any way.
    fn try_lock(&self) -> Result<(), TryLockError>;

    /// Releases the lock; the file stays open.
    fn unlock(&self) -> io::Result<()>;

    /// Returns the process that holds the lock; `None` if the system does not report it, or if
    /// that process is about to end.
    fn lock_holder(&self) -> Option<u32>;

    /// Reads the whole content.
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Makes one `write` call at the end of the file and returns the number of bytes written,
    /// which may be less than `bytes`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Waits until the content is on the medium. Needed before a rename. Appended records need
    /// no sync, because data accepted by `write` survives SIGKILL.
    fn sync(&mut self) -> io::Result<()>;

    fn size(&self) -> io::Result<u64>;

    /// Returns whether `path` still leads to this file.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// The file system of the machine.
pub struct Disk;

impl FileSystem for Disk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        // Opening a pipe would block, and some devices never end. `/dev/null` is accepted as
        // the path of a session that is not kept.
        if !fs::metadata(path)?.is_file() && path != Path::new("/dev/null") {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a regular file",
            ));
        }
        let file = OpenOptions::new().read(true).append(true).open(path)?;
        Ok(Box::new(DiskFile { file }))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        // Conversations are private: only the owner may read them.
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

/// Releases the lock explicitly. From fork to exec a child process holds a copy of every open
/// file, and a lock lasts as long as the last copy. Unlocking ends it for all copies, so that a
/// session can be reopened while another thread starts a process.
impl Drop for DiskFile {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl OpenFile for DiskFile {
    fn try_lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }

    fn lock_holder(&self) -> Option<u32> {
        lock_holder::find(&self.file)
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

    /// On other systems an open file cannot be replaced, so it is enough that the path exists.
    #[cfg(not(unix))]
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }
}
