//! Files that several running copies of pi write, this one and the original
//! alike: the lock is a directory beside the file, since making one is atomic
//! everywhere, and since the original does the same.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::task::AbortHandle;

const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);
/// Whoever held a lock for so long without touching it has died. The original touches
/// one that it holds over a request every 15 seconds.
const STALE: Duration = Duration::from_secs(30);
/// In which a lock is touched that is held for long.
const TOUCH: Duration = Duration::from_secs(2);
/// How long to wait for somebody who is renewing a token.
const LONGEST_WAIT: Duration = Duration::from_secs(40);

/// Held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    directory: PathBuf,
    /// Of the directory, which may have been taken for stale and made anew.
    inode: Option<u64>,
    /// Touches the directory.
    heart: Option<AbortHandle>,
}

impl FileLock {
    /// Waits up to 200 ms.
    pub fn acquire(file: &Path) -> io::Result<Self> {
        let directory = Self::directory(file);
        for _ in 0..TRIES {
            match Self::attempt(&directory)? {
                Some(lock) => return Ok(lock),
                None => thread::sleep(PAUSE),
            }
        }
        Err(busy(&directory))
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
        let mut taken_over = false;
        loop {
            match fs::create_dir(directory) {
                Ok(()) => {
                    return Ok(Some(Self {
                        directory: directory.to_owned(),
                        inode: inode(directory),
                        heart: None,
                    }));
                }
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if !taken_over && is_stale(directory) => {
                    // Somebody else may have been faster, which the next try finds out.
                    fs::remove_dir(directory).ok();
                    taken_over = true;
                }
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
        directory.is_dir() && !is_stale(directory)
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
        if let Ok(handle) = fs::File::open(&directory) {
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

fn is_stale(directory: &Path) -> bool {
    let modified = fs::metadata(directory).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let directory = dir.path().join("auth.json.lock");
        fs::create_dir(&directory).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        let handle = fs::File::open(&directory).unwrap();
        handle.set_modified(long_ago).unwrap();
        let _lock = FileLock::acquire(&file).unwrap();
        assert!(FileLock::is_held(&file));
    }
}
