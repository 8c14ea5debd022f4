//! The signals that end a mode in order, and their exit codes.

#[cfg(unix)]
use tokio::signal::unix::Signal;

use crate::tools::process;

/// Returns when the process is asked to end; the value is its exit code. From the
/// call on, not only from the first poll, the signals no longer kill.
#[cfg(unix)]
pub fn ended() -> impl Future<Output = u8> {
    use tokio::signal::unix::{SignalKind, signal};
    let term = signal(SignalKind::terminate());
    let hup = signal(SignalKind::hangup());
    async move {
        match (term, hup) {
            (Ok(term), Ok(hup)) => wait(term, hup).await,
            _ => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
async fn wait(mut term: Signal, mut hup: Signal) -> u8 {
    let code = tokio::select! {
        _ = term.recv() => 143,
        _ = hup.recv() => 129,
    };
    process::kill_all();
    // Who asks twice does not want to wait.
    tokio::spawn(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
        std::process::exit(i32::from(code));
    });
    code
}

#[cfg(not(unix))]
pub async fn ended() -> u8 {
    std::future::pending().await
}
