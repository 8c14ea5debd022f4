//! Keeps two threads from compiling one file: the prefetch and the JavaScript thread come to a new
//! file at about the same time, and the second would repeat what the first is doing.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::Key;

/// The files that threads compile at the moment. Shared by all users of one cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Compiling(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    keys: Mutex<HashSet<Key>>,
    ended: Condvar,
}

impl Shared {
    fn keys(&self) -> MutexGuard<'_, HashSet<Key>> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets the next thread have the file when it is dropped.
pub(crate) struct CompileTurn {
    key: Key,
    shared: Arc<Shared>,
}

impl Compiling {
    /// Waits until no other thread compiles the file of `key`. The caller must look into the cache
    /// before it compiles.
    pub fn wait_turn(&self, key: Key) -> CompileTurn {
        let mut keys = self.0.keys();
        while !keys.insert(key) {
            let woken = self.0.ended.wait(keys);
            keys = woken.unwrap_or_else(PoisonError::into_inner);
        }
        CompileTurn {
            key,
            shared: self.0.clone(),
        }
    }
}

impl Drop for CompileTurn {
    fn drop(&mut self) {
        self.shared.keys().remove(&self.key);
        self.shared.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Compiling;
    use crate::loader::cache::DiskCache;

    #[test]
    fn a_file_is_compiled_by_one_of_two_threads() {
        let (compiling, start) = (Compiling::default(), Barrier::new(2));
        let (compiled, is_cached) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let cache = DiskCache::new(None, "1");
        let [key, other] = [&b"a.ts"[..], b"b.ts"].map(|name| cache.key(&[name]));
        let compile = || {
            start.wait();
            let _turn = compiling.wait_turn(key);
            if is_cached.load(Ordering::Relaxed) == 0 {
                compiled.fetch_add(1, Ordering::Relaxed);
                // Another file does not wait.
                drop(compiling.wait_turn(other));
                is_cached.store(1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(compile);
            scope.spawn(compile);
        });
        assert_eq!(compiled.into_inner(), 1);
    }
}
