//! The end of `pi test` before its tests have ended: whoever asks for it, with Ctrl-C or a
//! signal to this process alone, gets rid of all that the tests have started.

use std::process::Child;
use std::sync::{Arc, OnceLock};

use crate::modes::signals::{Interrupt, ended};

#[derive(Clone, Default)]
pub(super) struct Interruption(Arc<OnceLock<u8>>);

impl Interruption {
    /// Heard of from now on. A second signal ends the process at once.
    pub(super) fn listen(runtime: &tokio::runtime::Runtime) -> Self {
        let heard = Self::default();
        let (told, _context) = (heard.clone(), runtime.enter());
        let signal = ended(Interrupt::Ends);
        runtime.spawn(async move {
            let code = signal.await;
            // Nobody else sets it.
            let _ = told.0.set(code);
        });
        heard
    }

    /// The exit code, once the end was asked for.
    pub(super) fn code(&self) -> Option<u8> {
        self.0.get().copied()
    }
}

/// It ends its pis, which end what they have started (`suite.ts`).
#[cfg(unix)]
pub(super) fn ask_to_end(child: &Child) {
    send(child, nix::sys::signal::Signal::SIGTERM);
}

/// It says where it is (`js-runtime/src/whereabouts.rs`).
#[cfg(unix)]
pub(super) fn ask_where(child: &Child) {
    send(child, nix::sys::signal::Signal::SIGQUIT);
}

#[cfg(unix)]
fn send(child: &Child, signal: nix::sys::signal::Signal) {
    let process = nix::unistd::Pid::from_raw(child.id().cast_signed());
    // An error means that it has ended.
    let _ = nix::sys::signal::kill(process, signal);
}

/// There are no signals: it is killed when its time is over, and its pis end when nobody
/// talks to them any more.
#[cfg(not(unix))]
pub(super) fn ask_to_end(_child: &Child) {}

#[cfg(not(unix))]
pub(super) fn ask_where(_child: &Child) {}
