//! Ends `pi test` early. Ctrl-C, or a signal to this process alone, also ends everything that the
//! tests have started.

use std::process::Child;
use std::sync::{Arc, OnceLock};

use pi_modes::signals::{Interrupt, exit_signal};

#[derive(Clone, Default)]
pub(super) struct Interruption(Arc<OnceLock<u8>>);

impl Interruption {
    /// Listens for signals from now on. A second signal ends the process at once.
    pub(super) fn listen(runtime: &tokio::runtime::Runtime) -> Self {
        let interruption = Self::default();
        let (shared, _context) = (interruption.clone(), runtime.enter());
        let signal = exit_signal(Interrupt::Exits);
        runtime.spawn(async move {
            let code = signal.await;
            // Only this task sets the value.
            let _ = shared.0.set(code);
        });
        interruption
    }

    /// The exit code, once a signal has arrived.
    pub(super) fn code(&self) -> Option<u8> {
        self.0.get().copied()
    }
}

/// Asks the process to end. It ends its pi processes, which end what they have started
/// (`suite.ts`).
#[cfg(unix)]
pub(super) fn request_end(child: &Child) {
    send_signal(child, nix::sys::signal::Signal::SIGTERM);
}

/// Asks the process to write its stack (`js-runtime/src/attribution/stack_dump.rs`).
#[cfg(unix)]
pub(super) fn request_stack(child: &Child) {
    send_signal(child, nix::sys::signal::Signal::SIGQUIT);
}

#[cfg(unix)]
fn send_signal(child: &Child, signal: nix::sys::signal::Signal) {
    let process = nix::unistd::Pid::from_raw(child.id().cast_signed());
    // An error means that the process has ended.
    let _ = nix::sys::signal::kill(process, signal);
}

/// Does nothing: there are no signals. The process is killed when its time is over, and its pi
/// processes end when their stdin is closed.
#[cfg(not(unix))]
pub(super) fn request_end(_child: &Child) {}

#[cfg(not(unix))]
pub(super) fn request_stack(_child: &Child) {}
