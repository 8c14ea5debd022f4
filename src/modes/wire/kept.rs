//! The last events, for a client that has missed some. Bounded in bytes: whoever was
//! away for longer is told so, and asks for the state instead.

use std::collections::VecDeque;

/// Bytes of events. A long answer is about half of it.
pub const LIMIT: usize = 4 * 1024 * 1024;

#[derive(Default)]
pub struct Kept {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The number of the first of `lines`.
    first: u64,
}

/// Events are missing of those that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The first that is kept; `None` if none is.
    pub oldest: Option<u64>,
    pub latest: u64,
}

pub struct Missed<'a> {
    pub events: Vec<&'a [u8]>,
    pub latest: u64,
}

impl Kept {
    pub fn push(&mut self, seq: u64, line: Vec<u8>) {
        if self.lines.is_empty() {
            self.first = seq;
        }
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > LIMIT {
            let Some(line) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= line.len();
            self.first += 1;
        }
    }

    pub fn after(&self, since: u64, latest: u64) -> Result<Missed<'_>, Gone> {
        let oldest = (!self.lines.is_empty()).then_some(self.first);
        let wanted = since.saturating_add(1);
        let there = match oldest {
            Some(oldest) => wanted >= oldest,
            None => false,
        };
        // To have seen the last one is to have missed nothing.
        if since > latest || (since < latest && !there) {
            return Err(Gone { oldest, latest });
        }
        let skipped = usize::try_from(wanted.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let events = self.lines.iter().skip(skipped).map(Vec::as_slice);
        Ok(Missed {
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

    fn numbers(kept: &Kept, since: u64, latest: u64) -> Result<Vec<u64>, Gone> {
        let number = |line: &[u8]| u64::from_le_bytes(line[..8].try_into().unwrap());
        let missed = kept.after(since, latest)?;
        Ok(missed.events.into_iter().map(number).collect())
    }

    #[test]
    fn what_was_missed_is_there_or_said_to_be_gone() {
        let mut kept = Kept::default();
        assert_eq!(numbers(&kept, 3, 3), Ok(vec![]));
        let gone = |oldest, latest| Err(Gone { oldest, latest });
        assert_eq!(numbers(&kept, 2, 3), gone(None, 3));
        for seq in 4..=6_u64 {
            kept.push(seq, seq.to_le_bytes().to_vec());
        }
        assert_eq!(numbers(&kept, 3, 6), Ok(vec![4, 5, 6]));
        assert_eq!(numbers(&kept, 5, 6), Ok(vec![6]));
        assert_eq!(numbers(&kept, 6, 6), Ok(vec![]));
        assert_eq!(numbers(&kept, 2, 6), gone(Some(4), 6));
        assert_eq!(numbers(&kept, 7, 6), gone(Some(4), 6));
        assert_eq!(numbers(&kept, u64::MAX, 6), gone(Some(4), 6));
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut kept = Kept::default();
        for seq in 1..=100_u64 {
            let mut line = seq.to_le_bytes().to_vec();
            line.resize(LIMIT / 10, 0);
            kept.push(seq, line);
        }
        assert!(kept.bytes <= LIMIT);
        assert_eq!(numbers(&kept, 90, 100).unwrap().len(), 10);
        assert!(numbers(&kept, 89, 100).is_err());
        // One that is larger than all the room there is.
        kept.push(101, vec![0; LIMIT + 1]);
        assert_eq!((kept.lines.len(), kept.bytes), (0, 0));
        assert_eq!(kept.after(100, 101).err().unwrap().oldest, None);
    }
}
