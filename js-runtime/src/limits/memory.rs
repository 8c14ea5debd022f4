//! Limits the memory of JavaScript outside V8's heap, which the heap limit does not cover. The
//! allocator of array buffers refuses, so that the allocation throws a `RangeError`. For memory of
//! native code (file contents) the isolate is stopped. V8 counts neither the memories of
//! WebAssembly, of which one has at most [`WASM_PAGES`], nor those of workers: for these the memory
//! of the whole process is limited.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use deno_core::v8;
use js_runtime_ext::Stop;
use serde::{Deserialize, Serialize};

use crate::limits::watchdog::Watchdog;

/// Maximum bytes of a small buffer. Native code asks for small buffers, and V8 would abort the
/// process if one were refused.
const SMALL_BUFFER: usize = 1 << 20;
const SMALL_BUFFER_RESERVE: usize = 64 << 20;

/// Maximum number of pages (64 KB) of one WebAssembly memory. It is a flag of V8, so it applies to
/// the whole process, and before the settings are known. More throws a `RangeError`, or returns -1
/// from `memory.grow`.
pub(crate) const WASM_PAGES: usize = 16_384;

/// Alignment of `malloc`: V8 expects no more.
const ALIGNMENT: usize = 16;

/// Memory of an isolate in bytes, garbage included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes of the heap in use.
    pub used: usize,
    pub total: usize,
    pub limit: usize,
    /// Bytes outside the heap: array buffers, file contents.
    pub external: usize,
}

impl Memory {
    pub(crate) fn from_statistics(heap: &v8::HeapStatistics) -> Self {
        Self {
            used: heap.used_heap_size(),
            total: heap.total_heap_size(),
            limit: heap.heap_size_limit(),
            external: heap.external_memory(),
        }
    }
}

struct Budget {
    used: AtomicUsize,
    limit: usize,
}

impl Budget {
    /// Returns counted memory, or null.
    fn allocate(&self, bytes: usize, get: unsafe fn(Layout) -> *mut u8) -> *mut c_void {
        let limit = match bytes {
            0..=SMALL_BUFFER => self.limit.saturating_add(SMALL_BUFFER_RESERVE),
            _ => self.limit,
        };
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = used.checked_add(bytes).is_some_and(|sum| sum <= limit);
        let found = match layout(bytes) {
            // SAFETY: a layout is never empty.
            Some(layout) if fits => unsafe { get(layout) },
            _ => null_mut(),
        };
        if found.is_null() {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
            REFUSED.set(true);
        }
        found.cast()
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()
}

unsafe extern "C" fn allocate_zeroed(budget: &Budget, bytes: usize) -> *mut c_void {
    budget.allocate(bytes, alloc_zeroed)
}

unsafe extern "C" fn allocate_uninitialized(budget: &Budget, bytes: usize) -> *mut c_void {
    budget.allocate(bytes, alloc)
}

unsafe extern "C" fn free(budget: &Budget, data: *mut c_void, bytes: usize) {
    if let Some(layout) = layout(bytes)
        && !data.is_null()
    {
        // SAFETY: V8 returns memory of `allocate` with the same size.
        unsafe { dealloc(data.cast(), layout) };
        budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

unsafe extern "C" fn drop_budget(budget: *const Budget) {
    // SAFETY: made by `into_raw` in `create_params`; V8 calls this once.
    drop(unsafe { Arc::from_raw(budget) });
}

static ALLOCATOR: v8::RustAllocatorVtable<Budget> = v8::RustAllocatorVtable {
    allocate: allocate_zeroed,
    allocate_uninitialized,
    free,
    drop: drop_budget,
};

/// Returns the parameters of an isolate with `bytes` of heap and as many for array buffers.
pub(crate) fn create_params(bytes: usize) -> v8::CreateParams {
    let budget = Arc::new(Budget {
        used: AtomicUsize::new(0),
        limit: bytes,
    });
    // SAFETY: the pointer is valid until `drop_budget`, and it points to a `Budget`.
    let allocator = unsafe { v8::new_rust_allocator(Arc::into_raw(budget), &ALLOCATOR) };
    v8::CreateParams::default()
        .heap_limits(0, bytes)
        .array_buffer_allocator(allocator)
}

/// Limits of an isolate outside the heap.
struct ExternalLimit {
    watchdog: Watchdog,
    limit: usize,
    /// Maximum memory of the whole process in bytes.
    process_limit: usize,
    polled_at: Instant,
}

/// Time between two polls. The memory of WebAssembly grows without a garbage collection.
pub(crate) const EXTERNAL_POLL_INTERVAL: Duration = Duration::from_millis(200);

thread_local! {
    /// Limit of the isolate on this thread.
    static EXTERNAL: RefCell<Option<ExternalLimit>> = const { RefCell::new(None) };
    /// Whether a buffer was refused and V8 has not reported a lack of memory yet.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Bytes for unwinding when the heap is full. V8 aborts the process when these are used up, too.
const UNWIND_RESERVE: usize = 64 << 20;

/// Bytes by which the heap may grow if it happens to be full when a buffer is refused.
const REFUSAL_ALLOWANCE: usize = 8 << 20;

/// Refused buffers that count as errors of the extension before the isolate is stopped.
const MAX_REFUSALS: usize = 8;

/// Returns V8's callback near the heap limit, which V8 also calls when a buffer is refused. The
/// callback returns the next limit.
pub(crate) fn near_heap_limit(mut stop: impl FnMut(usize)) -> impl FnMut(usize, usize) -> usize {
    let mut refusals = 0;
    move |current, initial| {
        if REFUSED.take() && refusals < MAX_REFUSALS {
            refusals += 1;
            return current + REFUSAL_ALLOWANCE;
        }
        stop(initial);
        current + initial.max(UNWIND_RESERVE)
    }
}

/// Stops the isolate of this thread when it holds more than twice `heap` bytes outside V8's heap,
/// or when the process grows by more than three times `heap` bytes.
pub(crate) fn limit_external(isolate: &mut v8::Isolate, watchdog: Watchdog, heap: usize) {
    let now = process_memory().unwrap_or_default();
    let watched = ExternalLimit {
        watchdog,
        limit: heap.saturating_mul(2),
        process_limit: now.saturating_add(heap.saturating_mul(3)),
        polled_at: Instant::now(),
    };
    EXTERNAL.with_borrow_mut(|external| *external = Some(watched));
    isolate.add_gc_epilogue_callback(
        on_collection,
        null_mut(),
        v8::GCType::kGCTypeMarkSweepCompact,
    );
}

/// Removes the limit; must be called before the isolate is dropped.
pub(crate) fn unlimit_external() {
    EXTERNAL.with_borrow_mut(|external| *external = None);
}

unsafe extern "C" fn on_collection(
    isolate: v8::UnsafeRawIsolatePtr,
    _kind: v8::GCType,
    _flags: v8::GCCallbackFlags,
    _data: *mut c_void,
) {
    // SAFETY: V8 calls this with the isolate that it collects, which outlives the call.
    check_external(&mut unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) });
    EXTERNAL.with_borrow(|external| {
        if let Some(external) = external {
            external.watchdog.request_heap_sample();
        }
    });
}

/// Checks the limit if it is due. Cheap enough for every time slice.
pub(crate) fn poll_external(isolate: &mut v8::Isolate) {
    let due = EXTERNAL.with_borrow(|external| {
        let polled_at = external.as_ref().map(|external| external.polled_at);
        polled_at.is_some_and(|polled_at| polled_at.elapsed() >= EXTERNAL_POLL_INTERVAL)
    });
    if due {
        check_external(isolate);
    }
}

fn check_external(isolate: &mut v8::Isolate) {
    let external_bytes = isolate.get_heap_statistics().external_memory();
    EXTERNAL.with_borrow_mut(|external| {
        let Some(external) = external else {
            return;
        };
        external.polled_at = Instant::now();
        let is_too_much = external_bytes > external.limit
            || process_memory().is_some_and(|bytes| bytes > external.process_limit);
        if is_too_much && external.watchdog.stopped().is_none() {
            external.watchdog.stop(Stop::OutOfMemory);
        }
    });
}

/// Returns the anonymous memory of the process in bytes. Known on Linux only.
fn process_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kilobytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_memory_is_measured() {
        let before = process_memory().unwrap();
        let page = vec![1_u8; 64 << 20];
        let after = process_memory().unwrap();
        assert!(after >= before + (page.len() >> 1), "{before} {after}");
    }
}
