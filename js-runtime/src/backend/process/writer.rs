//! What the program says to the process of an isolate. Nobody here may stand still
//! because JavaScript does not listen: what the socket does not take is kept, and
//! whoever calls then waits until that is less.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::wire::{self, Kind};

/// How much may be kept before callers wait.
const KEPT: usize = 256 * 1024;

pub(super) struct Outgoing {
    stream: UnixStream,
    rest: Mutex<Rest>,
    /// There is something to keep, or not any more.
    blocked: Notify,
    room: Notify,
}

#[derive(Default)]
struct Rest {
    bytes: Vec<u8>,
    /// Up to here they are written.
    written: usize,
    /// Nobody reads any more.
    closed: bool,
}

impl Rest {
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

impl Outgoing {
    /// `stream` does not block.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            rest: Mutex::default(),
            blocked: Notify::new(),
            room: Notify::new(),
        }
    }

    fn rest(&self) -> MutexGuard<'_, Rest> {
        // Nothing panics while it holds the lock; the data is whole in any case.
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At once, whatever is kept already: for answers, of which there are as many as
    /// the other side asks for.
    pub fn push(&self, kind: Kind, id: u64, head: &str, body: &[u8]) -> io::Result<()> {
        let (first, second) = wire::parts(kind, id, head, body)?;
        self.put(&mut self.rest(), &first, second);
        Ok(())
    }

    /// When there is room.
    pub async fn send(&self, kind: Kind, id: u64, head: &str, body: &[u8]) -> io::Result<()> {
        let (first, second) = wire::parts(kind, id, head, body)?;
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            // From now on it hears, so nothing is missed between the look and the wait.
            room.as_mut().enable();
            {
                let mut rest = self.rest();
                if rest.closed {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                if rest.len() < KEPT {
                    self.put(&mut rest, &first, second);
                    return Ok(());
                }
            }
            room.await;
        }
    }

    fn put(&self, rest: &mut Rest, first: &[u8], second: &[u8]) {
        for mut left in [first, second] {
            if rest.closed {
                return;
            }
            if rest.len() > 0 {
                rest.bytes.extend_from_slice(left);
                continue;
            }
            match self.write(&mut left) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    rest.bytes = left.to_vec();
                    rest.written = 0;
                    self.blocked.notify_one();
                }
                Err(_) => rest.close(),
            }
        }
    }

    /// Moves the beginning of `bytes`, which are then the rest.
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

    /// Resolves when something is kept.
    pub async fn blocked(&self) {
        self.blocked.notified().await;
    }

    pub fn is_blocked(&self) -> bool {
        self.rest().len() > 0
    }

    /// Writes what is kept. For readiness: the error says that there is more.
    pub fn flush(&self) -> io::Result<()> {
        let mut rest = self.rest();
        let bytes = std::mem::take(&mut rest.bytes);
        let mut left = &bytes[rest.written..];
        let flushed = self.write(&mut left);
        rest.written = bytes.len() - left.len();
        match &flushed {
            Ok(()) => rest.written = 0,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => rest.bytes = bytes,
            Err(_) => rest.close(),
        }
        if rest.len() < KEPT {
            self.room.notify_waiters();
        }
        flushed
    }

    /// The other side is gone.
    pub fn close(&self) {
        self.rest().close();
        self.room.notify_waiters();
    }
}
