//! Writes the files of the cache on a thread: creating a file takes longer than compiling its
//! content, and no caller waits for it.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use js_runtime_ext::program_file_options;

use super::store::checksum;

/// Shared by all users of one folder. The thread exists while there is something to write.
#[derive(Clone, Debug, Default)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    urgent: Condvar,
    finished: Condvar,
}

/// Time without new files after which writing begins. While extensions are loaded they need the
/// processor, and file creation blocks lookups in the folder.
const QUIET_PERIOD: Duration = Duration::from_millis(50);
/// Maximum delay while new files keep arriving.
const MAX_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Queue {
    /// Order of writing: some files imply that others exist.
    order: VecDeque<PathBuf>,
    /// Data that is not on the disk yet.
    contents: HashMap<PathBuf, Arc<[u8]>>,
    has_thread: bool,
    /// Times at which the oldest and the newest file were queued.
    queued_between: Option<(Instant, Instant)>,
    /// Whether a caller waits in `flush`.
    is_urgent: bool,
}

impl Queue {
    /// Returns the time to wait before the next file is written.
    fn pause(&self) -> Duration {
        let Some((oldest, newest)) = self.queued_between.filter(|_| !self.is_urgent) else {
            return Duration::ZERO;
        };
        (newest + QUIET_PERIOD)
            .min(oldest + MAX_DELAY)
            .saturating_duration_since(Instant::now())
    }
}

impl Writer {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self, path: PathBuf, data: &[u8]) {
        let mut queue = self.queue();
        let now = Instant::now();
        let (oldest, _) = queue.queued_between.unwrap_or((now, now));
        queue.queued_between = Some((oldest, now));
        if queue.contents.insert(path.clone(), data.into()).is_none() {
            queue.order.push_back(path);
        }
        if queue.has_thread {
            return;
        }
        queue.has_thread = true;
        drop(queue);
        let writer = self.clone();
        let thread = std::thread::Builder::new().name("js-cache".into());
        if thread.spawn(move || writer.run()).is_err() {
            self.run();
        }
    }

    /// Returns the data of a file that is not on the disk yet.
    pub fn queued(&self, path: &Path) -> Option<Arc<[u8]>> {
        self.queue().contents.get(path).cloned()
    }

    /// Returns when everything is written, or after `limit`. Lost data is compiled again.
    pub fn flush(&self, limit: Duration) {
        let mut queue = self.queue();
        queue.is_urgent = queue.has_thread;
        self.0.urgent.notify_all();
        let writing = |queue: &mut Queue| queue.has_thread;
        let waited = self.0.finished.wait_timeout_while(queue, limit, writing);
        drop(waited);
    }

    fn run(&self) {
        let mut queue = self.queue();
        loop {
            let pause = queue.pause();
            if !pause.is_zero() {
                let waited = self.0.urgent.wait_timeout(queue, pause);
                queue = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some(path) = queue.order.pop_front() else {
                break;
            };
            let data = queue.contents.get(&path).cloned();
            drop(queue);
            if let Some(data) = &data {
                write_file(&path, data);
            }
            queue = self.queue();
            let newest = queue.contents.get(&path);
            let is_written = match (newest, &data) {
                (Some(newest), Some(data)) => Arc::ptr_eq(newest, data),
                _ => true,
            };
            if is_written {
                queue.contents.remove(&path);
            } else {
                queue.order.push_back(path);
            }
        }
        queue.has_thread = false;
        queue.is_urgent = false;
        queue.queued_between = None;
        drop(queue);
        self.0.finished.notify_all();
    }
}

/// Writes through a temporary name, so that other processes see all or nothing. The checksum
/// detects what a power failure leaves. A full disk only disables caching.
fn write_file(path: &Path, data: &[u8]) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}-{number}.tmp", std::process::id()));
    if write_new(temporary.as_ref(), path, data).is_err() || fs::rename(&temporary, path).is_err() {
        _ = fs::remove_file(&temporary);
    }
}

/// Writes the file that will be at `path`.
fn write_new(temporary: &Path, path: &Path, data: &[u8]) -> io::Result<()> {
    let mut options = program_file_options();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .open(temporary)?;
    file.write_all(data)?;
    file.write_all(&checksum(path, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the content without the checksum.
    fn read(path: &Path) -> Option<Vec<u8>> {
        let mut file = fs::read(path).ok()?;
        file.truncate(file.len() - checksum(path, &[]).len());
        Some(file)
    }

    #[test]
    fn data_is_readable_before_and_after_writing() {
        let dir = std::env::temp_dir().join(format!("js-cache-writer-{}", std::process::id()));
        _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let writer = Writer::default();
        let files: Vec<PathBuf> = (0..50).map(|n| dir.join(format!("{n}.js"))).collect();
        for path in &files {
            writer.write(path.clone(), b"1");
            let stored = writer.queued(path).map(|data| data.to_vec());
            let stored = stored.or_else(|| read(path));
            assert_eq!(stored.as_deref(), Some(&b"1"[..]));
        }
        writer.flush(Duration::from_secs(60));
        for path in &files {
            assert_eq!(writer.queued(path), None);
            assert_eq!(read(path).unwrap(), b"1");
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), files.len());
        // A further write starts another thread.
        writer.write(files[0].clone(), b"2");
        writer.flush(Duration::from_secs(60));
        assert_eq!(read(&files[0]).unwrap(), b"2");
        fs::remove_dir_all(dir).unwrap();
    }
}
