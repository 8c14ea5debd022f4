//! Detects that the reader of stdout has closed it although nothing is being written, so
//! that an agent without a client stops working.

use std::fs::File;
use std::io;

use js_runtime::{Output, Reader};
#[cfg(unix)]
use tokio::io::{Interest, unix::AsyncFd};

/// Waits until the other end of a pipe or a socket is closed. Never returns for any other
/// kind of stdout.
#[cfg(unix)]
pub fn wait_closed(output: &mut Output) -> impl Future<Output = ()> + use<> {
    let watched = watch(output);
    async move {
        match watched {
            Ok(Some((end, interest))) => {
                // If readiness cannot be awaited, the next write reports the error.
                if end.ready(interest).await.is_err() {
                    std::future::pending().await
                }
            }
            Ok(None) => std::future::pending().await,
            Err(error) => {
                tracing::debug!("the reader of stdout cannot be watched: {error}");
                std::future::pending().await
            }
        }
    }
}

#[cfg(unix)]
fn watch(output: &mut Output) -> io::Result<Option<(AsyncFd<File>, Interest)>> {
    let (end, interest) = match output.reader()? {
        None => return Ok(None),
        Some(Reader::Output(copy)) => (copy, Interest::ERROR),
        Some(Reader::Lifeline(end)) => (end, Interest::READABLE),
    };
    // SAFETY: the file owns its descriptor and keeps it open for as long as it lives.
    let watched = unsafe { AsyncFd::register_with_interest(end, interest) };
    Ok(Some((watched?, interest)))
}

#[cfg(not(unix))]
pub async fn wait_closed(_output: &mut Output) {
    std::future::pending().await
}
