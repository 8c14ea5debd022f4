//! The signals that end a mode in order, and their exit codes.

use crate::tools::process;

/// Returns when the process is asked to end; the value is its exit code.
#[cfg(unix)]
pub async fn ended() -> u8 {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut hup)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    ) else {
        return std::future::pending().await;
    };
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
