//! Files that several running copies of pi write, this one and the original
//! alike: the lock is a directory beside the file, since making one is atomic
//! everywhere, and since the original does the same.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);
/// Whoever held a lock for so long has died.
const STALE: Duration = Duration::from_secs(10);

/// Held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    directory: PathBuf,
}

impl FileLock {
    /// Waits up to 200 ms.
    pub fn acquire(file: &Path) -> io::Result<Self> {
        let directory = Self::directory(file);
        for _ in 0..TRIES {
            match fs::create_dir(&directory) {
                Ok(()) => return Ok(Self { directory }),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) if is_stale(&directory) => {
                    // Somebody else may have been faster, which the next try finds out.
                    fs::remove_dir(&directory).ok();
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            format!(
                "another process holds the lock {}; remove it if none is running",
                directory.display()
            ),
        ))
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
        // If it is gone already there is nothing to give back.
        fs::remove_dir(&self.directory).ok();
    }
}

fn is_stale(directory: &Path) -> bool {
    let modified = fs::metadata(directory).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > STALE))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

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
