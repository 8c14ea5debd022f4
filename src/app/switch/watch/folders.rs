//! Notifications of the operating system about folders. They only make the watch look sooner than
//! it would do anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use notify::event::ModifyKind;
use notify::{ErrorKind, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

/// A watcher that was dropped gives its watches back a moment later.
const RELEASE_PAUSE: Duration = Duration::from_millis(50);
const MAX_ATTEMPTS: u32 = 4;

pub(super) struct FolderWatcher {
    /// Receives a hint when something has changed. One pending hint is enough.
    hint: mpsc::Sender<()>,
    watcher: Option<RecommendedWatcher>,
    /// Device and inode of each folder: one that was replaced needs another watch.
    watched: BTreeMap<PathBuf, (u64, u64)>,
    /// Set when a watched folder was removed or renamed. Another may have its inode.
    is_outdated: Arc<AtomicBool>,
    was_limit_reported: bool,
}

/// A limit of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Watches,
    Instances,
}

impl FolderWatcher {
    pub fn new(hint: mpsc::Sender<()>) -> Self {
        Self {
            hint,
            watcher: None,
            watched: BTreeMap::new(),
            is_outdated: Arc::default(),
            was_limit_reported: false,
        }
    }

    /// Watches these folders and no others. Returns a message for the user if the operating system
    /// does not allow it; later ones are not reported.
    pub fn watch(&mut self, folders: BTreeSet<PathBuf>) -> Option<String> {
        let identified = folders.into_iter().filter_map(|folder| {
            let found = fs::metadata(&folder).ok()?;
            Some((folder, (found.dev(), found.ino())))
        });
        let wanted: BTreeMap<_, _> = identified.collect();
        if wanted == self.watched && !self.is_outdated.load(Ordering::Relaxed) {
            return None;
        }
        // In the old watcher, pending notifications about a removed folder would end the watch of
        // its successor. It is dropped first, so that there are never two.
        self.watcher = None;
        let mut reached = None;
        for _ in 0..MAX_ATTEMPTS {
            reached = self.start(&wanted);
            if reached.is_none() {
                break;
            }
            thread::sleep(RELEASE_PAUSE);
        }
        self.watched = wanted;
        let limit = reached?;
        // The next change of the folders tries again.
        (!std::mem::replace(&mut self.was_limit_reported, true)).then(|| limit.message())
    }

    fn start(&mut self, folders: &BTreeMap<PathBuf, (u64, u64)>) -> Option<Limit> {
        self.watcher = None;
        // Late notifications of the old watcher set the flag of that.
        self.is_outdated = Arc::default();
        let (hint, is_outdated) = (self.hint.clone(), self.is_outdated.clone());
        let watched: BTreeSet<PathBuf> = folders.keys().cloned().collect();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            // Our own reads cause access events.
            if event.kind.is_access() {
                return;
            }
            let is_moved = matches!(event.kind, EventKind::Modify(ModifyKind::Name(_)));
            if (event.kind.is_remove() || is_moved)
                && event.paths.iter().any(|path| watched.contains(path))
            {
                is_outdated.store(true, Ordering::Relaxed);
            }
            let _ = hint.try_send(());
        });
        let mut watcher = match watcher {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::debug!("no notifications about files: {error}");
                return limit_of(&error).map(|_| Limit::Instances);
            }
        };
        let mut limit = None;
        for folder in folders.keys() {
            if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
                // The folder may be gone again, or on a file system without notifications.
                tracing::debug!("no notifications about {}: {error}", folder.display());
                limit = limit.or(limit_of(&error));
                if limit.is_some() {
                    break;
                }
            }
        }
        self.watcher = Some(watcher);
        limit
    }
}

fn limit_of(error: &notify::Error) -> Option<Limit> {
    let full = |error: &io::Error| {
        let kind = error.kind();
        kind == io::ErrorKind::StorageFull || kind == io::ErrorKind::QuotaExceeded
    };
    match &error.kind {
        ErrorKind::MaxFilesWatch => Some(Limit::Watches),
        ErrorKind::Io(error) if full(error) => Some(Limit::Watches),
        // Too many open files, of the process or of the user's watchers.
        ErrorKind::Io(error) if matches!(error.raw_os_error(), Some(23 | 24)) => {
            Some(Limit::Instances)
        }
        _ => None,
    }
}

impl Limit {
    fn message(self) -> String {
        let (what, name, example) = match self {
            Self::Watches => ("watches", "max_user_watches", 524_288),
            Self::Instances => ("watchers", "max_user_instances", 1024),
        };
        let now = fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).unwrap_or_default();
        let now = match now.trim() {
            "" => String::new(),
            now => format!(", now {now}"),
        };
        format!(
            "extensionWatch: the system grants no more {what} of files, so pi looks at the files \
             every 2 s instead. To raise the limit (fs.inotify.{name}{now}): sudo sysctl \
             fs.inotify.{name}={example}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn change_in_a_folder_gives_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let (hint, mut hints) = mpsc::channel(1);
        let mut watcher = FolderWatcher::new(hint);
        let folders = BTreeSet::from([folder.path().to_path_buf(), folder.path().join("gone")]);
        assert_eq!(watcher.watch(folders.clone()), None);
        fs::write(folder.path().join("a"), "").unwrap();
        hints.recv().await.unwrap();
        // A folder that is replaced by another, which may have its inode, is watched again.
        let gone = folder.path().join("gone");
        fs::create_dir(&gone).unwrap();
        for _ in 0..3 {
            assert_eq!(watcher.watch(folders.clone()), None);
            while hints.try_recv().is_ok() {}
            fs::write(gone.join("b"), "").unwrap();
            hints.recv().await.unwrap();
            fs::remove_dir_all(&gone).unwrap();
            fs::create_dir(&gone).unwrap();
            while !watcher.is_outdated.load(Ordering::Relaxed) {
                hints.recv().await.unwrap();
            }
        }
    }

    #[test]
    fn limits_are_recognized() {
        let io = |code| notify::Error::io(io::Error::from_raw_os_error(code));
        let limits = [
            (
                notify::Error::new(ErrorKind::MaxFilesWatch),
                Some(Limit::Watches),
            ),
            (io(28), Some(Limit::Watches)),
            (io(24), Some(Limit::Instances)),
            (io(2), None),
            (notify::Error::path_not_found(), None),
        ];
        for (error, limit) in limits {
            assert_eq!(limit_of(&error), limit, "{error}");
        }
        let message = Limit::Watches.message();
        assert!(
            message.contains("sysctl fs.inotify.max_user_watches=524288"),
            "{message}"
        );
    }
}
