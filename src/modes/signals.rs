//! The signals that end a mode in order, and their exit codes.

#[cfg(unix)]
use pi_base::process_tree;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[cfg(unix)]
#[cfg(unix)]
use crate::tools::process;

/// Whether SIGINT is one of them: where a terminal is typed at, it is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    Ends,
    IsAKey,
}

/// Listens from the call on, not from the first poll: of what a `select!` waits for,
/// another may be polled before, and what that begins may ask for the end.
#[cfg(unix)]
pub fn ended(interrupt: Interrupt) -> impl Future<Output = u8> {
    let listen = |kind, code| signal(kind).ok().map(|signal| (signal, code));
    let mut signals = vec![
        listen(SignalKind::terminate(), 143),
        listen(SignalKind::hangup(), 129),
    ];
    if interrupt == Interrupt::Ends {
        signals.push(listen(SignalKind::interrupt(), 130));
    }
    first(signals.into_iter().flatten().collect())
}

/// Returns when the process is asked to end; the value is its exit code.
#[cfg(unix)]
async fn first(mut signals: Vec<(Signal, u8)>) -> u8 {
    let code = any(&mut signals).await;
    process::kill_all();
    // Who asks twice does not want to wait.
    tokio::spawn(async move {
        any(&mut signals).await;
        process_tree::kill_all();
        std::process::exit(i32::from(code));
    });
    code
}

#[cfg(unix)]
async fn any(signals: &mut [(Signal, u8)]) -> u8 {
    std::future::poll_fn(|context| {
        let mut came = signals.iter_mut().filter_map(|(signal, code)| {
            // A signal that cannot be heard of any more does not come.
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
pub async fn ended(_interrupt: Interrupt) -> u8 {
    std::future::pending().await
}
