//! Writes the cache's files on a thread of its own: to make a file takes longer than
//! to compile what goes into it, and nobody waits for it.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::checksum;

/// Shared by everything that uses the same folder. Its thread is there while there is
/// something to write.
#[derive(Clone, Debug, Default)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    hurried: Condvar,
    settled: Condvar,
}

/// It begins when nothing has come for so long: whoever loads extensions has a use for
/// the processor, and for the folder, in which nobody finds a file while one is made.
const QUIET: Duration = Duration::from_millis(50);
/// Something always comes.
const LONGEST: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Queue {
    /// In this order: some files say that others are there.
    order: VecDeque<PathBuf>,
    /// Until it is on the disk.
    contents: HashMap<PathBuf, Arc<[u8]>>,
    has_thread: bool,
    /// When the oldest and the newest of them came.
    came: Option<(Instant, Instant)>,
    /// Somebody waits.
    is_urgent: bool,
}

impl Queue {
    /// How long to wait before the next is written.
    fn pause(&self) -> Duration {
        let Some((oldest, newest)) = self.came.filter(|_| !self.is_urgent) else {
            return Duration::ZERO;
        };
        (newest + QUIET)
            .min(oldest + LONGEST)
            .saturating_duration_since(Instant::now())
    }
}

impl Writer {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds the lock; the data is whole in any case.
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self, path: PathBuf, data: &[u8]) {
        let mut queue = self.queue();
        let now = Instant::now();
        let (oldest, _) = queue.came.unwrap_or((now, now));
        queue.came = Some((oldest, now));
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

    /// What is not on the disk yet.
    pub fn waiting(&self, path: &Path) -> Option<Arc<[u8]>> {
        self.queue().contents.get(path).cloned()
    }

    /// Returns when everything is written, or after `limit`: what is lost is compiled
    /// again.
    pub fn settle(&self, limit: Duration) {
        let mut queue = self.queue();
        queue.is_urgent = queue.has_thread;
        self.0.hurried.notify_all();
        let writing = |queue: &mut Queue| queue.has_thread;
        let waited = self.0.settled.wait_timeout_while(queue, limit, writing);
        drop(waited);
    }

    fn run(&self) {
        let mut queue = self.queue();
        loop {
            let pause = queue.pause();
            if !pause.is_zero() {
                let waited = self.0.hurried.wait_timeout(queue, pause);
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
        queue.came = None;
        drop(queue);
        self.0.settled.notify_all();
    }
}

/// Through a temporary name, so that other processes see all or nothing; what a power
/// failure leaves of it, the checksum finds. A full disk costs only the caching.
fn write_file(path: &Path, data: &[u8]) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}-{number}.tmp", std::process::id()));
    if write_new(temporary.as_ref(), path, data).is_err() || fs::rename(&temporary, path).is_err() {
        _ = fs::remove_file(&temporary);
    }
}

/// What will be at `path`.
fn write_new(temporary: &Path, path: &Path, data: &[u8]) -> io::Result<()> {
    let mut file = File::create(temporary)?;
    file.write_all(data)?;
    file.write_all(&checksum(path, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the checksum.
    fn read(path: &Path) -> Option<Vec<u8>> {
        let mut file = fs::read(path).ok()?;
        file.truncate(file.len() - checksum(path, &[]).len());
        Some(file)
    }

    #[test]
    fn what_is_written_can_be_had_before_and_after_it_is_there() {
        let dir = std::env::temp_dir().join(format!("js-cache-writer-{}", std::process::id()));
        _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let writer = Writer::default();
        let files: Vec<PathBuf> = (0..50).map(|n| dir.join(format!("{n}.js"))).collect();
        for path in &files {
            writer.write(path.clone(), b"1");
            let there = writer.waiting(path).map(|data| data.to_vec());
            let there = there.or_else(|| read(path));
            assert_eq!(there.as_deref(), Some(&b"1"[..]));
        }
        writer.settle(Duration::from_secs(60));
        for path in &files {
            assert_eq!(writer.waiting(path), None);
            assert_eq!(read(path).unwrap(), b"1");
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), files.len());
        // The same once more, with another thread.
        writer.write(files[0].clone(), b"2");
        writer.settle(Duration::from_secs(60));
        assert_eq!(read(&files[0]).unwrap(), b"2");
        fs::remove_dir_all(dir).unwrap();
    }
}
