//! Limits and settings of the whole process: memory arenas, open files, file sizes, stacks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::libc::c_int;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Bytes of stack for threads that parse or run JavaScript. swc and V8 need a lot in debug
/// builds.
pub(crate) const JS_STACK_SIZE: usize = if cfg!(debug_assertions) { 16 } else { 8 } << 20;

/// Bytes by which a thread's arena grows at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENA_PAD: i32 = 4 << 20;

/// Bytes of an allocation that gets pages of its own, which are returned to the system at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD: i32 = 1 << 20;

/// Unused bytes that may stay at the end of an arena.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TRIM_THRESHOLD: i32 = 8 << 20;

/// Time between the first request to release unused memory and the release.
const RELEASE_DELAY: Duration = Duration::from_secs(1);

/// Whether a thread is about to release unused memory.
static IS_RELEASE_DUE: AtomicBool = AtomicBool::new(false);

/// Lets `malloc` take memory from the system in larger steps, for threads that start later. An
/// isolate consists of many small allocations and a few lists that double: by default the former
/// cost a system call for each page, and the latter new pages each time. Pages that are not touched
/// cost nothing.
pub(crate) fn tune_allocator() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (option, value) in [
        (nix::libc::M_TOP_PAD, ARENA_PAD),
        (nix::libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD),
        (nix::libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD),
    ] {
        // SAFETY: these are options of this C library. Options that it refuses keep their values.
        unsafe { nix::libc::mallopt(option, value) };
    }
}

/// Returns unused memory of all threads to the system, [`RELEASE_DELAY`] after the first call.
/// Called when an isolate has been replaced: `malloc` keeps what its threads used, up to 50 MB for
/// each thread that transpiled a large file. A release takes milliseconds, and the next isolate has
/// to get the memory from the system again, so calls within the delay share one.
pub fn release_unused_memory_soon() {
    if IS_RELEASE_DUE.swap(true, Ordering::Relaxed) {
        return;
    }
    let release = || {
        std::thread::sleep(RELEASE_DELAY);
        IS_RELEASE_DUE.store(false, Ordering::Relaxed);
        // SAFETY: the function may be called at any time by any thread.
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        unsafe {
            nix::libc::malloc_trim(0);
        }
    };
    let thread = std::thread::Builder::new().name("js-release-memory".into());
    if thread.spawn(release).is_err() {
        // The system has no thread left; the next call tries again.
        IS_RELEASE_DUE.store(false, Ordering::Relaxed);
    }
}

/// Maximum number of descriptors: more than a program can use, and the most that macOS accepts.
#[cfg(not(target_os = "macos"))]
const MAX_DESCRIPTORS: u64 = 1 << 20;
#[cfg(target_os = "macos")]
const MAX_DESCRIPTORS: u64 = 10_240;

/// Raises the limit of open files to the hard limit, as Node does: shells start with a small one.
pub(crate) fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard.min(MAX_DESCRIPTORS)
    {
        // On failure the limit stays as it is.
        _ = setrlimit(Resource::RLIMIT_NOFILE, hard.min(MAX_DESCRIPTORS), hard);
    }
}

/// Makes a write beyond `ulimit -f` an error of the writer, as in Node, instead of the end of the
/// process. Must be called at the start of a program that runs JavaScript.
pub fn survive_file_size_limit() {
    // The signal is not ignored, because child processes would inherit that.
    let action = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing. If the call fails, the limit still ends the process.
    _ = unsafe { sigaction(Signal::SIGXFSZ, &action) };
}

extern "C" fn nothing(_signal: c_int) {}
