//! Maps a function over many items on all processors, if there is enough work. Long sessions
//! open faster.

use std::num::NonZero;
use std::thread;

use pi_ai::json::depth;
use rayon::ThreadPoolBuilder;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

/// Bytes per thread: parsing fewer takes less time than starting a thread.
const MIN_BYTES_PER_THREAD: usize = 1 << 20;

/// Returns `work` of each item, in order. `bytes` estimates the work for an item. The threads
/// end with the call, and have stacks for deeply nested JSON.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    bytes: impl Fn(&T) -> usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let total: usize = items.iter().map(bytes).sum();
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = processors.min(total / MIN_BYTES_PER_THREAD);
    let pool = (threads > 1).then(|| {
        ThreadPoolBuilder::new()
            .num_threads(threads)
            .stack_size(depth::STACK_SIZE)
            .build()
    });
    match pool {
        Some(Ok(pool)) => pool.install(|| items.par_iter().map(&work).collect()),
        // The system refused threads, or one is enough.
        Some(Err(_)) | None => items.iter().map(work).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_items() {
        let items: Vec<usize> = (0..1000).collect();
        for bytes in [0, 1, MIN_BYTES_PER_THREAD] {
            assert_eq!(map(&items, |_| bytes, |item| *item), items);
        }
        assert!(map(&[], |_: &u8| 1, |item| *item).is_empty());
    }
}
