//! Notices that nobody reads stdout any more although nothing is written: an agent
//! whose answer nobody wants should not go on working.

use std::fs::File;
use std::io;

use js_runtime::{Output, Reader};
#[cfg(unix)]
use tokio::io::{Interest, unix::AsyncFd};

/// Returns when the other end of a pipe or a socket is closed; never for anything
/// else.
#[cfg(unix)]
pub fn gone(output: &mut Output) -> impl Future<Output = ()> + use<> {
    let watched = watch(output);
    async move {
        match watched {
            Ok(Some((end, interest))) => {
                // An error means that it cannot be waited for; a write will tell.
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
    // SAFETY: a file has one descriptor, and keeps it open for as long as it lives.
    let watched = unsafe { AsyncFd::register_with_interest(end, interest) };
    Ok(Some((watched?, interest)))
}

#[cfg(not(unix))]
pub async fn gone(_output: &mut Output) {
    std::future::pending().await
}
