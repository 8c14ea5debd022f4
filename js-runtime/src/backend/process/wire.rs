//! The protocol between the two processes: frames with a kind, an id, a head and a body that is
//! passed on unchanged.
//!
//! `length of the rest: u32 | kind: u8 | id: u64 | length of head: u32 | head | body`, numbers in
//! little endian. Both ends are the same binary, so nothing is negotiated.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of kind, id and length of the head.
const HEADER_SIZE: usize = 1 + 8 + 4;
const LENGTH_SIZE: usize = 4;

/// Bytes of one read.
const READ_SIZE: usize = 64 * 1024;

/// Maximum size of a buffer that is kept while it is empty.
const MAX_IDLE_BUFFER: usize = 1 << 20;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            fn from_number(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    // From the program to the process of the isolate.
    /// Head: [`super::StartRequest`].
    Start = 1,
    /// Head: extension and limit; body: the bytes of the path.
    Load = 2,
    /// Head: the function; body: its argument.
    Call = 3,
    /// Abandons the call with that id.
    Abandon = 4,
    Memory = 5,
    HeapUsed = 6,
    RetainedHeap = 8,
    Release = 9,
    /// Head: class and message of the error, or empty; body: the result.
    HostResult = 7,

    // From the program, on the control channel.
    /// Head: the reason.
    Stop = 16,
    /// Head: minimum length of the time slice. Answered with the reason of the stop, if there is
    /// one.
    StopIfBusy = 17,
    /// Answered with the length of the current time slice, or nothing.
    Busy = 18,
    /// Ends the runtime.
    End = 19,
    /// Answered with the sources of all extensions.
    Sources = 20,

    // From the process of the isolate.
    /// Result of the request with that id. Body: the value.
    Value = 32,
    /// Result without a value.
    Nothing = 33,
    /// Head: the exception.
    Thrown = 34,
    /// Head: the method; body: its arguments. JavaScript waits for the result.
    HostCallSync = 36,
    HostCall = 37,
    /// Head: the method; body: its arguments. There is no result.
    HostNotify = 38,
    /// Head: the stream; body: the line.
    Console = 39,
    /// Head: the fault.
    Fault = 40,
    /// Head: the event.
    ThreadEvent = 43,
    /// Id: the extension; body: the bytes of a path.
    Imported = 41,
    /// Body: the bytes of a path.
    Packaged = 44,
    /// Head: [`super::InputFrame`]; body: the bytes of a path.
    LoadInput = 45,
    /// The isolate is gone, and the process ends.
    Bye = 42,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub kind: Kind,
    pub id: u64,
    pub head: String,
    pub body: Vec<u8>,
}

impl Frame {
    pub fn head<T: DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_str(&self.head).map_err(|_| not_a_frame())
    }

    pub fn text(self) -> io::Result<String> {
        String::from_utf8(self.body).map_err(|_| not_a_frame())
    }

    pub fn path(self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.body))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_first_chunk::<8>()?;
        let (head, rest) = rest.split_first_chunk::<4>()?;
        let head = usize::try_from(u32::from_le_bytes(*head)).ok()?;
        let (head, body) = rest.split_at_checked(head)?;
        Some(Self {
            kind: Kind::from_number(*kind)?,
            id: u64::from_le_bytes(*id),
            head: std::str::from_utf8(head).ok()?.to_owned(),
            body: body.to_vec(),
        })
    }
}

/// Error for bytes that are no frame: other code writes to the same descriptor.
pub(crate) fn not_a_frame() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a frame")
}

/// Serializes the head of a frame.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Heads are plain data without maps, so serializing cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// Maximum size of a body that is copied, so that one write takes the frame: each write wakes the
/// other side.
const MAX_COPIED_BODY: usize = 64 * 1024;

/// Encodes a frame in two parts, to be written one after the other. The second is empty or the
/// body.
pub(crate) fn parts<'a>(
    kind: Kind,
    id: u64,
    head: &str,
    body: &'a [u8],
) -> io::Result<(Vec<u8>, &'a [u8])> {
    if body.len() <= MAX_COPIED_BODY {
        return Ok((frame(kind, id, head, body)?, b""));
    }
    Ok((envelope(kind, id, head, body.len())?, body))
}

fn envelope(kind: Kind, id: u64, head: &str, body: usize) -> io::Result<Vec<u8>> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a text of 4 GB");
    let rest = u32::try_from(HEADER_SIZE + head.len() + body).map_err(too_long)?;
    let head_length = u32::try_from(head.len()).map_err(too_long)?;
    let copied = if body <= MAX_COPIED_BODY { body } else { 0 };
    let mut bytes = Vec::with_capacity(LENGTH_SIZE + HEADER_SIZE + head.len() + copied);
    bytes.extend_from_slice(&rest.to_le_bytes());
    bytes.push(kind as u8);
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&head_length.to_le_bytes());
    bytes.extend_from_slice(head.as_bytes());
    Ok(bytes)
}

/// Encodes a whole frame.
pub(crate) fn frame(kind: Kind, id: u64, head: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = envelope(kind, id, head, body.len())?;
    bytes.extend_from_slice(body);
    Ok(bytes)
}

/// Received bytes that are not taken yet.
#[derive(Default)]
pub(crate) struct Incoming {
    /// Stays at its length, so that it is not cleared for each read.
    buffer: Vec<u8>,
    /// Unread bytes are between `start` and `end`.
    start: usize,
    end: usize,
}

/// Outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Some,
    /// No bytes were available.
    Nothing,
    End,
}

impl Incoming {
    pub fn take(&mut self) -> io::Result<Option<Frame>> {
        let waiting = &self.buffer[self.start..self.end];
        let Some((length, rest)) = waiting.split_first_chunk::<LENGTH_SIZE>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| not_a_frame())?;
        if length < HEADER_SIZE {
            return Err(not_a_frame());
        }
        let Some(bytes) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Frame::parse(bytes).ok_or_else(not_a_frame)?;
        self.start += LENGTH_SIZE + length;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > MAX_IDLE_BUFFER {
                self.buffer = Vec::new();
            }
        }
        Ok(Some(frame))
    }

    /// Reads once with `read`, which may block or not.
    pub fn fill(
        &mut self,
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Read> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < self.end + READ_SIZE {
            // Doubles the buffer for a long frame, so that it is copied a few times only.
            self.buffer.resize(self.end + READ_SIZE.max(self.end), 0);
        }
        let received = loop {
            match read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                received => break received,
            }
        };
        match received {
            Ok(0) => Ok(Read::End),
            Ok(count) => {
                self.end += count;
                Ok(Read::Some)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Read::Nothing),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(bytes: &[u8], piece: usize) -> io::Result<Vec<Frame>> {
        let mut incoming = Incoming::default();
        let mut frames = Vec::new();
        let mut pieces = bytes.chunks(piece);
        loop {
            while let Some(frame) = incoming.take()? {
                frames.push(frame);
            }
            let read = incoming.fill(|buffer| {
                let piece = pieces.next().unwrap_or_default();
                buffer[..piece.len()].copy_from_slice(piece);
                Ok(piece.len())
            })?;
            if read == Read::End {
                return Ok(frames);
            }
        }
    }

    #[test]
    fn frames_survive_any_split_of_the_stream() {
        let long = "ä".repeat(READ_SIZE);
        let sent = [
            (Kind::Call, 7, "dispatch", long.as_bytes()),
            (Kind::Bye, 0, "", b"".as_slice()),
            (Kind::Imported, u64::MAX, "", b"/a\xff.ts"),
        ];
        let mut bytes = Vec::new();
        for (kind, id, head, body) in sent {
            bytes.extend(frame(kind, id, head, body).unwrap());
        }
        let expected: Vec<Frame> = sent
            .map(|(kind, id, head, body)| Frame {
                kind,
                id,
                head: head.to_owned(),
                body: body.to_vec(),
            })
            .into();
        for piece in [1, 7, 4096, READ_SIZE] {
            assert_eq!(received(&bytes, piece).unwrap(), expected, "{piece}");
        }
    }

    #[test]
    fn invalid_frame_is_an_error() {
        let unknown = [13, 0, 0, 0, 250, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut cut = frame(Kind::Call, 1, "name", b"").unwrap();
        cut[13] = 200;
        for bytes in [
            b"\0\0\0\0\0\0\0\0".as_slice(),
            b"\x01\0\0\0\x01",
            &unknown,
            &cut,
        ] {
            let error = received(bytes, READ_SIZE).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}
