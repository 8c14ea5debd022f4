//! What goes between the two processes: frames with a name, a number and a text that is
//! passed on as it is.
//!
//! `length of the rest: u32 | kind: u8 | id: u64 | length of head: u32 | head | body`,
//! numbers in little endian. Both ends are the same binary, so nothing is negotiated.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Kind, id and the length of the head.
const FIXED: usize = 1 + 8 + 4;
const LENGTH: usize = 4;

/// How much is read at a time.
const CHUNK: usize = 64 * 1024;

/// A buffer that has become larger than this is let go when it is empty.
const ROOMY: usize = 1 << 20;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Kind {
            $($(#[$doc])* $name = $number,)*
        }

        impl Kind {
            fn of(number: u8) -> Option<Self> {
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
    /// Head: [`super::Start`].
    Start = 1,
    /// Head: extension and limit; body: the bytes of the path.
    Load = 2,
    /// Head: the function; body: its argument.
    Call = 3,
    /// Nobody waits for the answer of that id any more.
    Abandon = 4,
    Memory = 5,
    HeapUsed = 6,
    HeapOwners = 8,
    /// Head: class and so on of the error, or empty; body: the answer.
    HostAnswer = 7,

    // The same, on the channel that is read whatever JavaScript does.
    /// Head: why.
    Stop = 16,
    /// Head: nanoseconds that JavaScript must have run for. Answers why the isolate is
    /// stopped, if it is.
    StopIfBusy = 17,
    /// Answers with nanoseconds, or nothing.
    Busy = 18,
    /// The runtime is not wanted any more.
    End = 19,

    // From the process of the isolate.
    /// The answer to what has that id. Body: the value.
    Value = 32,
    /// The same, without a value.
    Nothing = 33,
    /// Head: what was thrown.
    Thrown = 34,
    /// Head: the method; body: its arguments. JavaScript stands still.
    HostCallSync = 36,
    HostCall = 37,
    /// The same, without an answer.
    HostTell = 38,
    /// Head: the stream; body: the line.
    Console = 39,
    /// Head: the fault.
    Fault = 40,
    /// Head: who has had the thread.
    Held = 43,
    /// Id: the extension; body: the bytes of a path.
    Imported = 41,
    /// Body: the bytes of a path.
    Packaged = 44,
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
        serde_json::from_str(&self.head).map_err(|_| broken())
    }

    pub fn text(self) -> io::Result<String> {
        String::from_utf8(self.body).map_err(|_| broken())
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
            kind: Kind::of(*kind)?,
            id: u64::from_le_bytes(*id),
            head: std::str::from_utf8(head).ok()?.to_owned(),
            body: body.to_vec(),
        })
    }
}

/// What comes is no frame of ours: somebody else writes to the same descriptor.
pub(crate) fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a frame")
}

/// For the head of a frame.
pub(crate) fn json(value: &impl Serialize) -> String {
    // Heads are plain data without maps, which nothing can go wrong with.
    serde_json::to_string(value).unwrap_or_default()
}

/// Bodies up to here are copied, so that one write takes the frame: each write wakes
/// the other side.
const SMALL: usize = 64 * 1024;

/// A frame in two parts, to be written one after the other; the second is empty or the
/// body.
pub(crate) fn parts<'a>(
    kind: Kind,
    id: u64,
    head: &str,
    body: &'a [u8],
) -> io::Result<(Vec<u8>, &'a [u8])> {
    if body.len() <= SMALL {
        return Ok((frame(kind, id, head, body)?, b""));
    }
    Ok((envelope(kind, id, head, body.len())?, body))
}

fn envelope(kind: Kind, id: u64, head: &str, body: usize) -> io::Result<Vec<u8>> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a text of 4 GB");
    let rest = u32::try_from(FIXED + head.len() + body).map_err(too_long)?;
    let head_length = u32::try_from(head.len()).map_err(too_long)?;
    let copied = if body <= SMALL { body } else { 0 };
    let mut bytes = Vec::with_capacity(LENGTH + FIXED + head.len() + copied);
    bytes.extend_from_slice(&rest.to_le_bytes());
    bytes.push(kind as u8);
    bytes.extend_from_slice(&id.to_le_bytes());
    bytes.extend_from_slice(&head_length.to_le_bytes());
    bytes.extend_from_slice(head.as_bytes());
    Ok(bytes)
}

/// A whole frame.
pub(crate) fn frame(kind: Kind, id: u64, head: &str, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = envelope(kind, id, head, body.len())?;
    bytes.extend_from_slice(body);
    Ok(bytes)
}

/// What has come and is not yet taken.
#[derive(Default)]
pub(crate) struct Incoming {
    /// Kept at its length, so that nothing is cleared for each read.
    buffer: Vec<u8>,
    /// From here to `end` it is waiting.
    start: usize,
    end: usize,
}

/// What a read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Some,
    /// Not now.
    Nothing,
    End,
}

impl Incoming {
    pub fn take(&mut self) -> io::Result<Option<Frame>> {
        let waiting = &self.buffer[self.start..self.end];
        let Some((length, rest)) = waiting.split_first_chunk::<LENGTH>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| broken())?;
        if length < FIXED {
            return Err(broken());
        }
        let Some(bytes) = rest.get(..length) else {
            return Ok(None);
        };
        let frame = Frame::parse(bytes).ok_or_else(broken)?;
        self.start += LENGTH + length;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > ROOMY {
                self.buffer = Vec::new();
            }
        }
        Ok(Some(frame))
    }

    /// Once; `read` is that of a stream, which blocks or not.
    pub fn fill(
        &mut self,
        mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Read> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < self.end + CHUNK {
            // Twice as much for what is long, so that it is copied a few times only.
            self.buffer.resize(self.end + CHUNK.max(self.end), 0);
        }
        let got = loop {
            match read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                got => break got,
            }
        };
        match got {
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
    fn frames_arrive_whole_however_they_are_cut() {
        let long = "ä".repeat(CHUNK);
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
        for piece in [1, 7, 4096, CHUNK] {
            assert_eq!(received(&bytes, piece).unwrap(), expected, "{piece}");
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        let unknown = [13, 0, 0, 0, 250, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut cut = frame(Kind::Call, 1, "name", b"").unwrap();
        cut[13] = 200;
        for bytes in [
            b"\0\0\0\0\0\0\0\0".as_slice(),
            b"\x01\0\0\0\x01",
            &unknown,
            &cut,
        ] {
            let error = received(bytes, CHUNK).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}
