//! Keeps the last lines of output for a client that connects again. The buffer is bounded in
//! bytes; a client that was away for longer gets an error and asks for the state instead.

use std::collections::VecDeque;

/// Maximum bytes of lines. A long answer takes about half of it.
pub const MAX_REPLAY_BYTES: usize = 4 * 1024 * 1024;

#[derive(Default)]
pub struct ReplayBuffer {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Sequence number of the first line.
    first: u64,
}

/// Error: some of the requested events were evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// Sequence number of the oldest line in the buffer; `None` if it is empty.
    pub oldest: Option<u64>,
    pub latest: u64,
}

pub struct MissedEvents<'a> {
    pub events: Vec<&'a [u8]>,
    pub latest: u64,
}

impl ReplayBuffer {
    pub fn push(&mut self, seq: u64, line: Vec<u8>) {
        if self.lines.is_empty() {
            self.first = seq;
        }
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > MAX_REPLAY_BYTES {
            let Some(line) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= line.len();
            self.first += 1;
        }
    }

    pub fn after(&self, since: u64, latest: u64) -> Result<MissedEvents<'_>, Evicted> {
        let oldest = (!self.lines.is_empty()).then_some(self.first);
        let next = since.saturating_add(1);
        let is_complete = match oldest {
            Some(oldest) => next >= oldest,
            None => false,
        };
        // A client that has seen the last event missed nothing.
        if since > latest || (since < latest && !is_complete) {
            return Err(Evicted { oldest, latest });
        }
        let skipped = usize::try_from(next.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let events = self.lines.iter().skip(skipped).map(Vec::as_slice);
        Ok(MissedEvents {
            events: match since == latest {
                true => Vec::new(),
                false => events.collect(),
            },
            latest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(buffer: &ReplayBuffer, since: u64, latest: u64) -> Result<Vec<u64>, Evicted> {
        let number = |line: &[u8]| u64::from_le_bytes(line[..8].try_into().unwrap());
        let missed = buffer.after(since, latest)?;
        Ok(missed.events.into_iter().map(number).collect())
    }

    #[test]
    fn missed_events_are_returned_or_reported_as_evicted() {
        let mut buffer = ReplayBuffer::default();
        assert_eq!(numbers(&buffer, 3, 3), Ok(vec![]));
        let evicted = |oldest, latest| Err(Evicted { oldest, latest });
        assert_eq!(numbers(&buffer, 2, 3), evicted(None, 3));
        for seq in 4..=6_u64 {
            buffer.push(seq, seq.to_le_bytes().to_vec());
        }
        assert_eq!(numbers(&buffer, 3, 6), Ok(vec![4, 5, 6]));
        assert_eq!(numbers(&buffer, 5, 6), Ok(vec![6]));
        assert_eq!(numbers(&buffer, 6, 6), Ok(vec![]));
        assert_eq!(numbers(&buffer, 2, 6), evicted(Some(4), 6));
        assert_eq!(numbers(&buffer, 7, 6), evicted(Some(4), 6));
        assert_eq!(numbers(&buffer, u64::MAX, 6), evicted(Some(4), 6));
    }

    #[test]
    fn the_oldest_lines_are_evicted() {
        let mut buffer = ReplayBuffer::default();
        for seq in 1..=100_u64 {
            let mut line = seq.to_le_bytes().to_vec();
            line.resize(MAX_REPLAY_BYTES / 10, 0);
            buffer.push(seq, line);
        }
        assert!(buffer.bytes <= MAX_REPLAY_BYTES);
        assert_eq!(numbers(&buffer, 90, 100).unwrap().len(), 10);
        assert!(numbers(&buffer, 89, 100).is_err());
        // A line larger than the buffer.
        buffer.push(101, vec![0; MAX_REPLAY_BYTES + 1]);
        assert_eq!((buffer.lines.len(), buffer.bytes), (0, 0));
        assert_eq!(buffer.after(100, 101).err().unwrap().oldest, None);
    }
}
