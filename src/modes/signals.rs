//! The signals that end a mode in order, and their exit codes.

#[cfg(unix)]
use pi_base::process_tree;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[cfg(unix)]
#[cfg(unix)]
use pi_tools::command::process;

/// Whether SIGINT ends the process. Where the user types on a terminal, Ctrl-C is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    Exits,
    IsKey,
}

/// Waits for a signal that ends the process, and returns the exit code. Signals are
/// received from this call on, not from the first poll: a `select!` may poll another
/// branch first, and what that branch starts may send the signal.
#[cfg(unix)]
pub fn exit_signal(interrupt: Interrupt) -> impl Future<Output = u8> {
    let listen = |kind, code| signal(kind).ok().map(|signal| (signal, code));
    let mut signals = vec![
        listen(SignalKind::terminate(), 143),
        listen(SignalKind::hangup(), 129),
    ];
    if interrupt == Interrupt::Exits {
        signals.push(listen(SignalKind::interrupt(), 130));
    }
    first_signal(signals.into_iter().flatten().collect())
}

/// Waits for the first signal and returns its exit code.
#[cfg(unix)]
async fn first_signal(mut signals: Vec<(Signal, u8)>) -> u8 {
    let code = next_signal(&mut signals).await;
    process::kill_all();
    // A second signal ends the process at once.
    tokio::spawn(async move {
        next_signal(&mut signals).await;
        process_tree::kill_all();
        std::process::exit(i32::from(code));
    });
    code
}

#[cfg(unix)]
async fn next_signal(signals: &mut [(Signal, u8)]) -> u8 {
    std::future::poll_fn(|context| {
        let mut came = signals.iter_mut().filter_map(|(signal, code)| {
            // A closed signal stream never delivers.
            match signal.poll_recv(context) {
                std::task::Poll::Ready(Some(())) => Some(*code),
                _ => None,
            }
        });
        came.next()
            .map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    })
    .await
}

#[cfg(not(unix))]
pub async fn exit_signal(_interrupt: Interrupt) -> u8 {
    std::future::pending().await
}
