//! The signals that end a mode in order, and their exit codes.
//!
//! A thread of their own receives them: a second signal ends the process even if every other
//! thread is blocked, for example in a lock or in a write that has no reader.

/// Exit code of a process that ends because its terminal was closed: 128 + SIGHUP.
pub const HANG_UP_EXIT_CODE: u8 = 129;

/// Whether SIGINT ends the process. Where the user types on a terminal, Ctrl-C is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    Exits,
    IsKey,
}

#[cfg(unix)]
pub use unix::exit_signal;

#[cfg(not(unix))]
pub async fn exit_signal(_interrupt: Interrupt) -> u8 {
    std::future::pending().await
}

#[cfg(unix)]
mod unix {
    use std::thread;
    use std::time::Duration;

    use nix::sys::signal::{SigSet, Signal};
    use pi_base::process_tree;
    use pi_tools::command::process;
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use tokio::sync::oneshot;

    use super::Interrupt;
    use crate::line::editor;

    /// How long the terminal may take to be restored: a thread that is blocked may hold stdout.
    const RESTORE_TIMEOUT: Duration = Duration::from_millis(500);

    /// Waits for a signal that ends the process, and returns the exit code. Signals are
    /// received from this call on, not from the first poll: a `select!` may poll another
    /// branch first, and what that branch starts may send the signal.
    ///
    /// The signal after the first ends the process at once, with the exit code of the first.
    pub fn exit_signal(interrupt: Interrupt) -> impl Future<Output = u8> {
        let mut numbers = vec![SIGTERM, SIGHUP];
        if interrupt == Interrupt::Exits {
            numbers.push(SIGINT);
        }
        let (sender, first) = oneshot::channel();
        let listening = Signals::new(numbers).and_then(|signals| {
            let thread = thread::Builder::new().name("signals".into());
            thread.spawn(move || receive(signals, sender))
        });
        if let Err(error) = listening {
            tracing::warn!("signals end pi without session_shutdown: {error}");
        }
        async move {
            let Ok(code) = first.await else {
                return std::future::pending().await;
            };
            process::kill_all();
            code
        }
    }

    /// Passes the exit code of the first signal on, and ends the process at the second.
    fn receive(mut signals: Signals, first: oneshot::Sender<u8>) {
        let mut received = signals.forever();
        let Some(code) = received.next().map(|signal| 128 + signal) else {
            return;
        };
        // An error means that the mode is ending already, for another reason.
        _ = first.send(u8::try_from(code).unwrap_or(u8::MAX));
        if received.next().is_some() {
            restore_terminal();
            process_tree::kill_all();
            // Handlers of `exit` may wait for a thread that is blocked.
            signal_hook::low_level::exit(code);
        }
    }

    /// Restores a terminal that is read key by key.
    fn restore_terminal() {
        if !crossterm::terminal::is_raw_mode_enabled().unwrap_or(false) {
            return;
        }
        let (sender, restored) = std::sync::mpsc::channel();
        let restore = move || {
            // The system stops a background process that changes the terminal.
            _ = SigSet::from(Signal::SIGTTOU).thread_block();
            editor::restore();
            _ = sender.send(());
        };
        if thread::Builder::new().spawn(restore).is_ok() {
            _ = restored.recv_timeout(RESTORE_TIMEOUT);
        }
    }
}
