//! How much memory JavaScript may have. V8's heap limit does not see what is outside the
//! heap. Array buffers come from
//! an allocator that refuses, so that the allocation throws a `RangeError`; for what
//! native code makes (file contents) the isolate is stopped. V8 counts neither the
//! memories of WebAssembly, of which one has at most [`WASM_PAGES`], nor what workers
//! hold: for these there is what the whole process has come to hold.

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

use crate::control::Control;

/// Native code that asks for a buffer cannot be refused: V8 would end the process. It
/// asks for small ones.
const SMALL: usize = 1 << 20;
const RESERVE: usize = 64 << 20;

/// Of 64 KB: a flag of V8, so it holds for the whole process, and before the settings
/// are known. A `RangeError`, or -1 from `memory.grow`, is what comes of more.
pub(crate) const WASM_PAGES: usize = 16_384;

/// As `malloc`: V8 expects no more.
const ALIGNMENT: usize = 16;

/// What an isolate holds, garbage included, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Of the heap.
    pub used: usize,
    pub total: usize,
    pub limit: usize,
    /// Outside it: array buffers, file contents.
    pub external: usize,
}

impl Memory {
    pub(crate) fn of(heap: &v8::HeapStatistics) -> Self {
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
    /// Memory that is counted, or null.
    fn take(&self, bytes: usize, get: unsafe fn(Layout) -> *mut u8) -> *mut c_void {
        let limit = match bytes {
            0..=SMALL => self.limit.saturating_add(RESERVE),
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

unsafe extern "C" fn zeroed(budget: &Budget, bytes: usize) -> *mut c_void {
    budget.take(bytes, alloc_zeroed)
}

unsafe extern "C" fn uninitialized(budget: &Budget, bytes: usize) -> *mut c_void {
    budget.take(bytes, alloc)
}

unsafe extern "C" fn free(budget: &Budget, data: *mut c_void, bytes: usize) {
    if let Some(layout) = layout(bytes)
        && !data.is_null()
    {
        // SAFETY: V8 gives back what `take` gave, with the same size.
        unsafe { dealloc(data.cast(), layout) };
        budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

unsafe extern "C" fn forget(budget: *const Budget) {
    // SAFETY: made by `into_raw` in `limited`; V8 calls this once.
    drop(unsafe { Arc::from_raw(budget) });
}

static ALLOCATOR: v8::RustAllocatorVtable<Budget> = v8::RustAllocatorVtable {
    allocate: zeroed,
    allocate_uninitialized: uninitialized,
    free,
    drop: forget,
};

/// For an isolate with so many bytes of heap, and as many for array buffers.
pub(crate) fn limited(bytes: usize) -> v8::CreateParams {
    let budget = Arc::new(Budget {
        used: AtomicUsize::new(0),
        limit: bytes,
    });
    // SAFETY: the pointer is valid until `forget`, and what it points to is a `Budget`.
    let allocator = unsafe { v8::new_rust_allocator(Arc::into_raw(budget), &ALLOCATOR) };
    v8::CreateParams::default()
        .heap_limits(0, bytes)
        .array_buffer_allocator(allocator)
}

/// What an isolate may hold outside the heap.
struct External {
    control: Control,
    limit: usize,
    /// Bytes of the whole process.
    limit_of_all: usize,
    looked: Instant,
}

/// How often that is looked at. WebAssembly's memory grows without a garbage collection.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

thread_local! {
    /// Of the isolate of this thread.
    static EXTERNAL: RefCell<Option<External>> = const { RefCell::new(None) };
    /// A buffer was refused, and V8 has not said yet that it is short of memory.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Room for unwinding, when the heap is full: V8 aborts the process when even this is
/// used up.
const UNWINDING: usize = 64 << 20;

/// In case that the heap happens to be full when a buffer is refused.
const ALLOWANCE: usize = 8 << 20;

/// How many refused buffers are an error of the extension's, and no more than that.
const REFUSALS: usize = 8;

/// What V8 does near the limit of the heap, which is also what it does when a buffer is
/// refused. Gives the limit to go on with.
pub(crate) fn near_limit(mut stop: impl FnMut(usize)) -> impl FnMut(usize, usize) -> usize {
    let mut refusals = 0;
    move |current, initial| {
        if REFUSED.take() && refusals < REFUSALS {
            refusals += 1;
            return current + ALLOWANCE;
        }
        stop(initial);
        current + initial.max(UNWINDING)
    }
}

/// Stops the isolate of this thread, which may have so many bytes of heap, when it holds
/// twice as much outside of it, or the process three times as much more than now.
pub(crate) fn watch_external(isolate: &mut v8::Isolate, control: Control, heap: usize) {
    let now = held_by_process().unwrap_or_default();
    let watched = External {
        control,
        limit: heap.saturating_mul(2),
        limit_of_all: now.saturating_add(heap.saturating_mul(3)),
        looked: Instant::now(),
    };
    EXTERNAL.with_borrow_mut(|external| *external = Some(watched));
    isolate.add_gc_epilogue_callback(collected, null_mut(), v8::GCType::kGCTypeMarkSweepCompact);
}

/// Before the isolate goes.
pub(crate) fn unwatch_external() {
    EXTERNAL.with_borrow_mut(|external| *external = None);
}

unsafe extern "C" fn collected(
    isolate: v8::UnsafeRawIsolatePtr,
    _kind: v8::GCType,
    _flags: v8::GCCallbackFlags,
    _data: *mut c_void,
) {
    // SAFETY: V8 calls this with the isolate that it collects, which outlives the call.
    look(&mut unsafe { v8::Isolate::from_raw_isolate_ptr(isolate) });
    EXTERNAL.with_borrow(|external| {
        if let Some(external) = external {
            external.control.charge();
        }
    });
}

/// Cheap enough for every stretch of JavaScript.
pub(crate) fn look_now_and_then(isolate: &mut v8::Isolate) {
    let due = EXTERNAL.with_borrow(|external| {
        let looked = external.as_ref().map(|external| external.looked);
        looked.is_some_and(|looked| looked.elapsed() >= LOOK)
    });
    if due {
        look(isolate);
    }
}

fn look(isolate: &mut v8::Isolate) {
    let held = isolate.get_heap_statistics().external_memory();
    EXTERNAL.with_borrow_mut(|external| {
        let Some(external) = external else {
            return;
        };
        external.looked = Instant::now();
        let is_too_much = held > external.limit
            || held_by_process().is_some_and(|held| held > external.limit_of_all);
        if is_too_much && external.control.stopped().is_none() {
            external.control.stop(Stop::OutOfMemory);
        }
    });
}

/// Bytes of memory that are the process's own. Only Linux says.
fn held_by_process() -> Option<usize> {
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
    fn the_process_knows_what_it_holds() {
        let before = held_by_process().unwrap();
        let page = vec![1_u8; 64 << 20];
        let after = held_by_process().unwrap();
        assert!(after >= before + (page.len() >> 1), "{before} {after}");
    }
}
