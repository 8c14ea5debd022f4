//! Notices that nobody reads stdout any more although nothing is written: an agent
//! whose answer nobody wants should not go on working.

use std::fs::File;
use std::io;

#[cfg(unix)]
use tokio::io::{Interest, unix::AsyncFd};

/// Returns when the other end of a pipe or a socket is closed; never for anything
/// else.
#[cfg(unix)]
pub fn gone(output: &File) -> impl Future<Output = ()> + use<> {
    let watched = watch(output);
    async move {
        match watched {
            Ok(Some(end)) => {
                // An error means that it cannot be waited for; a write will tell.
                if end.ready(Interest::ERROR).await.is_err() {
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
fn watch(output: &File) -> io::Result<Option<AsyncFd<File>>> {
    use std::os::unix::fs::FileTypeExt;

    let kind = output.metadata()?.file_type();
    if !kind.is_fifo() && !kind.is_socket() {
        return Ok(None);
    }
    let end = output.try_clone()?;
    // SAFETY: a file has one descriptor, and keeps it open for as long as it lives.
    let watched = unsafe { AsyncFd::register_with_interest(end, Interest::ERROR) };
    Ok(Some(watched?))
}

#[cfg(not(unix))]
pub async fn gone(_output: &File) {
    std::future::pending().await
}
