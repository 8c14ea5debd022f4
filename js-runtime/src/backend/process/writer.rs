//! Writes frames to a host process. No caller may block because JavaScript does not read: bytes
//! that the socket does not take go into a backlog, and callers wait until it is small enough.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::wire::{self, Kind};

/// Maximum size of the backlog in bytes before callers wait.
const MAX_BACKLOG_BYTES: usize = 256 * 1024;

pub(super) struct FrameWriter {
    stream: UnixStream,
    backlog: Mutex<Backlog>,
    /// Notified when the backlog becomes non-empty, or is closed.
    blocked: Notify,
    /// Notified when the backlog shrinks, or is closed.
    space_freed: Notify,
}

#[derive(Default)]
struct Backlog {
    bytes: Vec<u8>,
    /// Number of bytes that were written.
    written: usize,
    /// Whether the process is gone.
    closed: bool,
}

impl Backlog {
    fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    fn close(&mut self) {
        *self = Self {
            closed: true,
            ..Self::default()
        };
    }
}

impl FrameWriter {
    /// `stream` must not block.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            backlog: Mutex::default(),
            blocked: Notify::new(),
            space_freed: Notify::new(),
        }
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        // No code panics while it holds the lock; the data is consistent in any case.
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a frame regardless of the size of the backlog. For results, of which there are only
    /// as many as the process requests.
    pub fn push(&self, kind: Kind, id: u64, head: &str, body: &[u8]) -> io::Result<()> {
        let (first, second) = wire::parts(kind, id, head, body)?;
        self.put(&mut self.backlog(), &first, second);
        Ok(())
    }

    /// Writes a frame as soon as the backlog is small enough.
    pub async fn send(&self, kind: Kind, id: u64, head: &str, body: &[u8]) -> io::Result<()> {
        let (first, second) = wire::parts(kind, id, head, body)?;
        loop {
            let freed = self.space_freed.notified();
            tokio::pin!(freed);
            // From here on notifications are received, so none is missed between the check and the
            // wait.
            freed.as_mut().enable();
            {
                let mut backlog = self.backlog();
                if backlog.closed {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                if backlog.len() < MAX_BACKLOG_BYTES {
                    self.put(&mut backlog, &first, second);
                    return Ok(());
                }
            }
            freed.await;
        }
    }

    fn put(&self, backlog: &mut Backlog, first: &[u8], second: &[u8]) {
        for mut left in [first, second] {
            if backlog.closed {
                return;
            }
            if backlog.len() > 0 {
                backlog.bytes.extend_from_slice(left);
                continue;
            }
            match self.write(&mut left) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    backlog.bytes = left.to_vec();
                    backlog.written = 0;
                    self.blocked.notify_one();
                }
                Err(_) => backlog.close(),
            }
        }
    }

    /// Writes the beginning of `bytes`, which becomes the remaining part.
    fn write(&self, bytes: &mut &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.stream).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Resolves when the backlog becomes non-empty.
    pub async fn blocked(&self) {
        self.blocked.notified().await;
    }

    pub fn is_blocked(&self) -> bool {
        self.backlog().len() > 0
    }

    /// Writes the backlog. The error `WouldBlock` says that some of it remains.
    pub fn flush(&self) -> io::Result<()> {
        let mut backlog = self.backlog();
        let bytes = std::mem::take(&mut backlog.bytes);
        let mut left = &bytes[backlog.written..];
        let flushed = self.write(&mut left);
        backlog.written = bytes.len() - left.len();
        match &flushed {
            Ok(()) => backlog.written = 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => backlog.bytes = bytes,
            Err(_) => backlog.close(),
        }
        if backlog.len() < MAX_BACKLOG_BYTES {
            self.space_freed.notify_waiters();
        }
        flushed
    }

    /// Drops the backlog, because the process is gone.
    pub fn close(&self) {
        self.backlog().close();
        self.space_freed.notify_waiters();
    }
}
