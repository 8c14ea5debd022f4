//! Files that several running copies of pi write, this one and the original
//! alike: the lock is a directory beside the file, since making one is atomic
//! everywhere, and since the original does the same. This one also has the directory
//! open with a lock of the system, which is gone when its process is, and marks it, so
//! that nobody looks for that lock on a directory of the original.

use std::fs::{self, DirBuilder, File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::AbortHandle;

/// Many may be writing, each of them through to the disk.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between two attempts, at most.
const PAUSE: Duration = Duration::from_millis(20);
/// Whoever held a lock for so long without touching it has died. The original touches
/// one that it holds over a request every 15 seconds.
const STALE: Duration = Duration::from_secs(30);
/// A directory of ours that nobody has locked is that of somebody who has died, unless
/// it was made a moment ago.
const ABANDONED: Duration = Duration::from_secs(1);
/// The sticky bit marks directories of ours; it means nothing where no files are.
const MARK: u32 = 0o1000;
/// In which a lock is touched that is held for long.
const TOUCH: Duration = Duration::from_millis(300);
/// How long to wait for somebody who is renewing a token.
const LONGEST_WAIT: Duration = Duration::from_secs(40);

/// Held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    directory: PathBuf,
    /// Of the directory, which may have been taken for stale and made anew.
    inode: Option<u64>,
    /// Locked, which tells others that we live.
    _opened: Option<File>,
    /// Touches the directory.
    heart: Option<AbortHandle>,
}

impl FileLock {
    /// Waits up to [`PATIENCE`].
    pub fn acquire(file: &Path) -> io::Result<Self> {
        let directory = Self::directory(file);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Self::attempt(&directory)? {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= deadline => return Err(busy(&directory)),
                None => thread::sleep(pause()),
            }
        }
    }

    /// Waits as long as a request may take that somebody makes under the lock, and
    /// keeps the lock alive as long as it is held.
    pub async fn acquire_for_long(file: &Path) -> io::Result<Self> {
        let directory = Self::directory(file);
        let deadline = Instant::now() + LONGEST_WAIT;
        let mut pause = PAUSE;
        while Instant::now() < deadline {
            if let Some(mut lock) = Self::attempt(&directory)? {
                lock.heart = Some(tokio::spawn(touch(directory)).abort_handle());
                return Ok(lock);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
        Err(busy(&directory))
    }

    /// `None` if somebody else has it.
    fn attempt(directory: &Path) -> io::Result<Option<Self>> {
        let mut builder = DirBuilder::new();
        builder.mode(MARK | 0o700);
        let mut taken_over = false;
        loop {
            match builder.create(directory) {
                Ok(()) => {
                    let opened = File::open(directory).ok();
                    // Where directories cannot be locked, only age tells.
                    _ = opened.as_ref().map(File::try_lock);
                    return Ok(Some(Self {
                        directory: directory.to_owned(),
                        inode: inode(directory),
                        _opened: opened,
                        heart: None,
                    }));
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if !taken_over && take_over(directory) => taken_over = true,
                Err(_) => return Ok(None),
            }
        }
    }

    /// Whether somebody holds the lock right now.
    pub fn is_held(file: &Path) -> bool {
        Self::is_held_directory(&Self::directory(file))
    }

    /// The same for the lock itself.
    pub fn is_held_directory(directory: &Path) -> bool {
        directory.is_dir() && !is_stale(directory) && abandoned(directory).is_none()
    }

    fn directory(file: &Path) -> PathBuf {
        let mut name = file.as_os_str().to_owned();
        name.push(".lock");
        PathBuf::from(name)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some(heart) = &self.heart {
            heart.abort();
        }
        // Who was suspended for long may find that it is another's by now. If it is
        // gone already there is nothing to give back.
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
        tokio::time::sleep(TOUCH).await;
        // Whoever removed it has taken the lock for stale.
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

/// Not the same for all who wait, or else one may come too late each time.
fn pause() -> Duration {
    // A hasher's keys are random; a generator for this alone is not worth a crate.
    let random = RandomState::new().hash_one(0) % 256;
    PAUSE.mul_f64(random as f64 / 256.0)
}

/// Removes the directory of somebody who has died.
fn take_over(directory: &Path) -> bool {
    // Held until the directory is gone, so that nobody removes one that is made then.
    let abandoned = abandoned(directory);
    // Somebody else may have been faster, which the next try finds out.
    (abandoned.is_some() || is_stale(directory)) && fs::remove_dir(directory).is_ok()
}

/// The lock of one of ours who has died.
fn abandoned(directory: &Path) -> Option<File> {
    let handle = File::open(directory).ok()?;
    let metadata = handle.metadata().ok()?;
    let is_abandoned = metadata.mode() & MARK != 0
        && is_older(&metadata, ABANDONED)
        && handle.try_lock().is_ok()
        && inode(directory) == Some(metadata.ino());
    is_abandoned.then_some(handle)
}

fn is_stale(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|metadata| is_older(&metadata, STALE))
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
        // As when its process is killed.
        lock._opened.as_ref().unwrap().unlock().unwrap();
        assert!(!FileLock::is_held(&file));
        let next = FileLock::acquire(&file).unwrap();
        // It is not the other's any more.
        drop(lock);
        assert!(FileLock::is_held(&file));
        drop(next);
        // The original's processes show no sign of life.
        fs::create_dir(dir.path().join("auth.json.lock")).unwrap();
        age(&file, 2);
        FileLock::acquire(&file).unwrap_err();
    }
}
