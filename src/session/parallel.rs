//! Maps a function over many items on all processors, if there is enough work. Long sessions
//! open faster.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

use pi_ai::nesting;

/// Bytes per thread: parsing fewer takes less time than starting a thread.
const WORTH_A_THREAD: usize = 1 << 20;

/// Returns `work` of each item, in order. `bytes` estimates the work for an item.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    bytes: impl Fn(&T) -> usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let total: usize = items.iter().map(&bytes).sum();
    let threads = match total / WORTH_A_THREAD {
        0 | 1 => 1,
        most => thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(most),
    };
    let parts = parts(items, bytes, total.div_ceil(threads));
    let Some((first, others)) = parts.split_first() else {
        return Vec::new();
    };
    let work_on = |part: &[T]| part.iter().map(&work).collect::<Vec<_>>();
    thread::scope(|scope| {
        let others: Vec<_> = others
            .iter()
            .map(|part| {
                let thread = thread::Builder::new().stack_size(nesting::STACK);
                (part, thread.spawn_scoped(scope, || work_on(part)))
            })
            .collect();
        let mut results = work_on(first);
        for (part, thread) in others {
            results.extend(match thread.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(results)) => results,
                Ok(Err(panic)) => resume_unwind(panic),
                // The system refused another thread: work on this one.
                Err(_) => work_on(part),
            });
        }
        results
    })
}

/// Splits `items` into parts of at least `size` bytes each, except for the last.
fn parts<T>(items: &[T], bytes: impl Fn(&T) -> usize, size: usize) -> Vec<&[T]> {
    let mut parts = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let mut sum = 0;
        let enough = rest.iter().position(|item| {
            sum += bytes(item);
            sum >= size.max(1)
        });
        let (part, others) = rest.split_at(enough.map_or(rest.len(), |last| last + 1));
        parts.push(part);
        rest = others;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_items() {
        let items: Vec<usize> = (0..1000).collect();
        for bytes in [0, 1, WORTH_A_THREAD] {
            assert_eq!(map(&items, |_| bytes, |item| *item), items);
        }
        assert!(map(&[], |_: &u8| 1, |item| *item).is_empty());
    }

    #[test]
    fn the_work_is_shared_fairly() {
        let items = [5, 5, 5, 30, 0, 0, 14, 1, 0];
        let shared = parts(&items, |item| *item, 15);
        assert_eq!(shared, [&items[..3], &[30], &[0, 0, 14, 1], &[0]]);
    }
}
