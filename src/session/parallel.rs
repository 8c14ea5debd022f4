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
    let total: usize = items.iter().map(&bytes).sum();
    let threads = match total / MIN_BYTES_PER_THREAD {
        0 | 1 => 1,
        // Asking for the number of processors reads files of the system.
        most => thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(most),
    };
    let pool = (threads > 1).then(|| {
        ThreadPoolBuilder::new()
            .num_threads(threads - 1)
            .stack_size(depth::STACK_SIZE)
            .build()
    });
    let Some(Ok(pool)) = pool else {
        // The system refused threads, or one is enough.
        return items.iter().map(work).collect();
    };
    // The calling thread takes a share, too: on other threads `malloc` needs a system call for
    // each page.
    let mut share = total / threads;
    let is_in_share = |item: &&T| {
        let rest = share.checked_sub(bytes(item));
        share = rest.unwrap_or(0);
        rest.is_some()
    };
    let (own, others) = items.split_at(items.iter().take_while(is_in_share).count());
    let (mut results, mut further) = (Vec::with_capacity(items.len()), Vec::new());
    pool.in_place_scope(|scope| {
        scope.spawn(|_| further = others.par_iter().map(&work).collect());
        results.extend(own.iter().map(&work));
    });
    results.append(&mut further);
    results
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
        // One item has nearly all of the work.
        for heavy in [0, 500, 999] {
            let bytes = |item: &usize| if *item == heavy { 1 << 30 } else { 1 };
            assert_eq!(map(&items, bytes, |item| *item), items);
        }
        assert!(map(&[], |_: &u8| 1, |item| *item).is_empty());
    }
}
