//! Decodes Amazon's event streams: binary frames with headers, a payload and checksums.

use super::sse::SseEvent;

/// Bytes of the frame's length, the length of its headers, and the checksum of both.
const PRELUDE_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// Longest frame that AWS allows, in bytes.
const MAX_FRAME_BYTES: usize = 24 * 1024 * 1024;

/// Decodes frames that arrive in pieces.
#[derive(Default)]
pub(crate) struct FrameDecoder {
    buffer: Vec<u8>,
    /// True if the bytes cannot be a stream of frames.
    broken: bool,
}

impl FrameDecoder {
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        if self.broken {
            return events;
        }
        self.buffer.extend_from_slice(chunk);
        while let Some(length) = self.next_length() {
            let (headers_length, start) = (number(&self.buffer[4..8]), PRELUDE_BYTES);
            let end = length - CHECKSUM_BYTES;
            let sound = headers_length <= end - start
                && crc32(&self.buffer[..8]) == number(&self.buffer[8..12]) as u32
                && crc32(&self.buffer[..end]) == number(&self.buffer[end..length]) as u32;
            if !sound {
                self.broken = true;
                break;
            }
            let body = start + headers_length;
            let name = event_name(&self.buffer[start..body]);
            let data = String::from_utf8_lossy(&self.buffer[body..end]).into_owned();
            self.buffer.drain(..length);
            events.push(SseEvent { name, data });
        }
        events
    }

    /// Returns the length of the first frame, if it has arrived whole.
    fn next_length(&mut self) -> Option<usize> {
        if self.buffer.len() < PRELUDE_BYTES {
            return None;
        }
        let length = number(&self.buffer[..4]);
        if !(PRELUDE_BYTES + CHECKSUM_BYTES..=MAX_FRAME_BYTES).contains(&length) {
            self.broken = true;
            return None;
        }
        (self.buffer.len() >= length).then_some(length)
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// Returns the `:event-type` or `:exception-type`. Only text headers are read; AWS sends no
/// others here.
fn event_name(mut headers: &[u8]) -> String {
    let mut name = String::new();
    while let Some((length, rest)) = headers.split_first() {
        let length = usize::from(*length);
        let Some((key, rest)) = rest.split_at_checked(length) else {
            break;
        };
        let Some((7, rest)) = rest.split_first().map(|(kind, rest)| (*kind, rest)) else {
            break;
        };
        let Some((size, rest)) = rest.split_at_checked(2) else {
            break;
        };
        let Some((value, rest)) = rest.split_at_checked(number(size)) else {
            break;
        };
        if matches!(key, b":event-type" | b":exception-type") {
            name = String::from_utf8_lossy(value).into_owned();
        }
        headers = rest;
    }
    name
}

/// Computes the checksum of zip files. Frames are small, so no table is used.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |mut crc: u32, byte| {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
        }
        crc
    })
}
