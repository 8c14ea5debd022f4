//! `ulimit -f`: as in Node, it is an error to whoever writes beyond it, not the end of
//! the process.

use nix::libc::c_int;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// At the start of a program that runs JavaScript.
pub fn survive_file_size_limit() {
    // Not ignored: whatever the process starts would ignore it, too.
    let action = SigAction::new(
        SigHandler::Handler(nothing),
        SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    // SAFETY: the handler does nothing. Without it the limit is as hard as it was.
    _ = unsafe { sigaction(Signal::SIGXFSZ, &action) };
}

extern "C" fn nothing(_signal: c_int) {}
