//! Allows one writer per file at a time, in order of arrival: parallel tool calls, and extensions
//! through `withFileMutationQueue`, may read, change and write the same file without losing each
//! other's changes.

use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

type Queues = HashMap<PathBuf, Weak<AsyncMutex<()>>>;

/// The queues of all files in the process.
static QUEUES: LazyLock<Mutex<Queues>> = LazyLock::new(Mutex::default);

/// The right to change a file, until it is dropped. Callers should move it to the thread that
/// does the work: if a caller stops waiting, the next one must not start while a write is in
/// progress.
pub struct FileMutationGuard {
    held: Option<OwnedMutexGuard<()>>,
}

impl Drop for FileMutationGuard {
    fn drop(&mut self) {
        self.held = None;
        QUEUES.lock().retain(|_, queue| queue.strong_count() > 0);
    }
}

/// Waits for the right to change a file. The first poll takes the place in the queue; dropping
/// the future gives it up.
pub async fn lock_file(path: &Path) -> FileMutationGuard {
    // The path is resolved here, because the blocking pool could reorder two callers.
    let key = real_path(path);
    let queue = {
        let mut queues = QUEUES.lock();
        match queues.get(&key).and_then(Weak::upgrade) {
            Some(queue) => queue,
            None => {
                let queue = Arc::new(AsyncMutex::new(()));
                queues.insert(key, Arc::downgrade(&queue));
                queue
            }
        }
    };
    FileMutationGuard {
        held: Some(queue.lock_owned().await),
    }
}

/// Runs `work` while no other caller changes the file.
pub async fn with_file_mutation_queue<T>(path: &Path, work: impl Future<Output = T>) -> T {
    let _guard = lock_file(path).await;
    work.await
}

/// Returns the real path, which two names of one file share. For a missing file, the real path of
/// its closest existing ancestor is used.
fn real_path(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            return match path.strip_prefix(ancestor) {
                Ok(rest) if !rest.as_os_str().is_empty() => real.join(rest),
                _ => real,
            };
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn turns_are_taken_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let log = Arc::new(Mutex::new(Vec::new()));
        let first = lock_file(&file).await;
        let mut tasks = Vec::new();
        for number in 0..20 {
            let (file, log) = (file.clone(), log.clone());
            let waiting = async move {
                let _guard = lock_file(&file).await;
                log.lock().push(number);
                tokio::task::yield_now().await;
                log.lock().push(number);
            };
            tasks.push(tokio::spawn(waiting));
            tokio::task::yield_now().await;
        }
        assert!(log.lock().is_empty());
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        let expected: Vec<i32> = (0..20).flat_map(|number| [number, number]).collect();
        assert_eq!(*log.lock(), expected);
        assert!(!QUEUES.lock().contains_key(&real_path(&file)));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_and_its_target_share_a_queue() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let link = folder.path().join("b");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let _held = lock_file(&link).await;
        assert!(futures::FutureExt::now_or_never(lock_file(&file)).is_none());
        let other = folder.path().join("c");
        assert!(futures::FutureExt::now_or_never(lock_file(&other)).is_some());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_to_be_made_is_known_through_a_linked_folder() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        let link = folder.path().join("link");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let _held = lock_file(&link.join("new/file")).await;
        let same = real.join("new/file");
        assert!(futures::FutureExt::now_or_never(lock_file(&same)).is_none());
    }

    #[tokio::test]
    async fn an_abandoned_wait_blocks_no_caller() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let held = lock_file(&file).await;
        assert!(futures::FutureExt::now_or_never(lock_file(&file)).is_none());
        drop(held);
        assert_eq!(with_file_mutation_queue(&file, async { 7 }).await, 7);
    }
}
