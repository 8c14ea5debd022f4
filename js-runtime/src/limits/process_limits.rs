//! How the C library's `malloc` takes memory from the system. An isolate is made out of many
//! small pieces and a few lists that double; by default the first cost a system call for each
//! page, and the second new pages each time.

/// Of which a thread's first allocation makes room.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ROOM: i32 = 4 << 20;

/// What is larger gets pages of its own, which go back to the system at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 1 << 20;

/// So much may be unused at the end of what a thread has.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const UNUSED: i32 = 8 << 20;

/// For threads that start later. What is not touched costs nothing.
pub(crate) fn take_more_at_once() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (option, value) in [
        (nix::libc::M_TOP_PAD, ROOM),
        (nix::libc::M_MMAP_THRESHOLD, LARGE),
        (nix::libc::M_TRIM_THRESHOLD, UNUSED),
    ] {
        // SAFETY: these are options of this C library. What it refuses stays as it is.
        unsafe { nix::libc::mallopt(option, value) };
    }
}
