//! Locks files that several processes write, of pi and of the original. The lock is a directory
//! beside the file, because creating one is atomic on all systems and because the original does
//! the same. Pi also holds a lock of the operating system on the open directory, which ends with
//! the process, and marks the directory, so that no process expects this lock on a directory of
//! the original.

use std::fs::{self, DirBuilder, File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::AbortHandle;

/// Time limit for acquiring a lock. Many processes may be writing, each through to the disk.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest pause between two attempts.
const MAX_RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Age of a lock whose holder is taken for dead. The original touches a lock that it holds during
/// a request every 15 seconds.
const STALE_AGE: Duration = Duration::from_secs(30);
/// Age after which a directory of pi without a lock of the system is taken for abandoned.
const ABANDONED_AGE: Duration = Duration::from_secs(1);
/// The sticky bit marks directories of pi; without files in the directory it has no effect.
const PI_MARK: u32 = 0o1000;
/// Interval in which a lock that is held for long is touched.
const TOUCH_INTERVAL: Duration = Duration::from_millis(300);
/// Time limit for acquiring a lock while another process renews a token.
const LONG_ACQUIRE_TIMEOUT: Duration = Duration::from_secs(40);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    directory: PathBuf,
    /// Inode of the directory, which another process may have removed as stale and created again.
    inode: Option<u64>,
    /// The open directory with a lock of the system, which shows that this process is alive.
    _opened: Option<File>,
    /// The task that touches the directory.
    touch_task: Option<AbortHandle>,
}

impl FileLock {
    /// Acquires the lock, waiting up to [`ACQUIRE_TIMEOUT`].
    pub fn acquire(file: &Path) -> io::Result<Self> {
        let directory = Self::directory(file);
        let deadline = Instant::now() + ACQUIRE_TIMEOUT;
        loop {
            match Self::try_acquire(&directory)? {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= deadline => return Err(busy(&directory)),
                None => thread::sleep(random_pause()),
            }
        }
    }

    /// Acquires the lock, waiting as long as a request under the lock of another process may
    /// take, and touches it until it is dropped.
    pub async fn acquire_for_request(file: &Path) -> io::Result<Self> {
        let directory = Self::directory(file);
        let deadline = Instant::now() + LONG_ACQUIRE_TIMEOUT;
        let mut random_pause = MAX_RETRY_PAUSE;
        while Instant::now() < deadline {
            if let Some(mut lock) = Self::try_acquire(&directory)? {
                lock.touch_task = Some(tokio::spawn(touch(directory)).abort_handle());
                return Ok(lock);
            }
            tokio::time::sleep(random_pause).await;
            random_pause = (random_pause * 2).min(Duration::from_millis(500));
        }
        Err(busy(&directory))
    }

    /// Returns `None` if another holder has the lock.
    fn try_acquire(directory: &Path) -> io::Result<Option<Self>> {
        let mut builder = DirBuilder::new();
        builder.mode(PI_MARK | 0o700);
        let mut taken_over = false;
        loop {
            match builder.create(directory) {
                Ok(()) => {
                    let opened = File::open(directory).ok();
                    // Where directories cannot be locked, only age shows that a lock is stale.
                    _ = opened.as_ref().map(File::try_lock);
                    return Ok(Some(Self {
                        directory: directory.to_owned(),
                        inode: inode(directory),
                        _opened: opened,
                        touch_task: None,
                    }));
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if !taken_over && remove_stale(directory) => taken_over = true,
                Err(_) => return Ok(None),
            }
        }
    }

    /// Returns true if the lock is held now.
    pub fn is_held(file: &Path) -> bool {
        Self::is_held_directory(&Self::directory(file))
    }

    /// Like [`Self::is_held`], for the path of the lock itself.
    pub fn is_held_directory(directory: &Path) -> bool {
        directory.is_dir() && !is_stale(directory) && open_abandoned(directory).is_none()
    }

    fn directory(file: &Path) -> PathBuf {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        PathBuf::from(name)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some(touch_task) = &self.touch_task {
            touch_task.abort();
        }
        // After a long suspension of this process the lock may belong to another one. If the
        // directory is gone, there is nothing to remove.
        if inode(&self.directory) == self.inode {
            fs::remove_dir(&self.directory).ok();
        }
    }
}

fn inode(directory: &Path) -> Option<u64> {
    let metadata = fs::metadata(directory);
    metadata.ok().map(|metadata| metadata.ino())
}

async fn touch(directory: PathBuf) {
    loop {
        tokio::time::sleep(TOUCH_INTERVAL).await;
        // If this fails, another process has removed the lock as stale.
        if let Ok(handle) = File::open(&directory) {
            handle.set_modified(SystemTime::now()).ok();
        }
    }
}

fn busy(directory: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        format!(
            "another process holds the lock {}; remove it if none is running",
            directory.display()
        ),
    )
}

/// Returns a random pause: with equal pauses one of several waiting processes could miss every
/// chance.
fn random_pause() -> Duration {
    // The keys of a hasher are random; a random number generator needs a crate.
    let random = RandomState::new().hash_one(0) % 256;
    MAX_RETRY_PAUSE.mul_f64(random as f64 / 256.0)
}

/// Removes the directory of a dead holder.
fn remove_stale(directory: &Path) -> bool {
    // The handle is held until the directory is gone, so that no process removes its successor.
    let handle = open_abandoned(directory);
    // If another process was faster, the next attempt shows that.
    (handle.is_some() || is_stale(directory)) && fs::remove_dir(directory).is_ok()
}

/// Returns the open directory of a dead process of pi.
fn open_abandoned(directory: &Path) -> Option<File> {
    let handle = File::open(directory).ok()?;
    let metadata = handle.metadata().ok()?;
    let is_abandoned = metadata.mode() & PI_MARK != 0
        && is_older(&metadata, ABANDONED_AGE)
        && handle.try_lock().is_ok()
        && inode(directory) == Some(metadata.ino());
    is_abandoned.then_some(handle)
}

fn is_stale(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|metadata| is_older(&metadata, STALE_AGE))
}

fn is_older(metadata: &Metadata, age: Duration) -> bool {
    let elapsed = metadata.modified().ok().and_then(|it| it.elapsed().ok());
    elapsed.is_some_and(|elapsed| elapsed > age)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(file: &Path, seconds: u64) {
        let directory = File::open(FileLock::directory(file)).unwrap();
        let then = SystemTime::now() - Duration::from_secs(seconds);
        directory.set_modified(then).unwrap();
    }

    #[test]
    fn one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("auth.json");
        let lock = FileLock::acquire(&file).unwrap();
        assert!(FileLock::is_held(&file));
        let error = FileLock::acquire(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        assert!(!FileLock::is_held(&file));
        FileLock::acquire(&file).unwrap();
    }

    #[test]
    fn a_lock_whose_owner_died_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("auth.json");
        fs::create_dir(dir.path().join("auth.json.lock")).unwrap();
        age(&file, 60);
        let _lock = FileLock::acquire(&file).unwrap();
        assert!(FileLock::is_held(&file));
    }

    #[test]
    fn whether_one_of_ours_has_died_is_known_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("auth.json");
        let lock = FileLock::acquire(&file).unwrap();
        age(&file, 2);
        assert!(FileLock::is_held(&file));
        FileLock::acquire(&file).unwrap_err();
        // This state is the same after a kill of the holder.
        lock._opened.as_ref().unwrap().unlock().unwrap();
        assert!(!FileLock::is_held(&file));
        let next = FileLock::acquire(&file).unwrap();
        // The lock now belongs to another holder.
        drop(lock);
        assert!(FileLock::is_held(&file));
        drop(next);
        // Processes of the original have no lock of the system.
        fs::create_dir(dir.path().join("auth.json.lock")).unwrap();
        age(&file, 2);
        FileLock::acquire(&file).unwrap_err();
    }
}
