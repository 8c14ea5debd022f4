//! Who has filled the heap. It is full in the midst of anybody's code: what was there
//! before may be another's. So after each collection of all garbage whoever runs is
//! charged with what is there more than after the last one.

use std::collections::HashMap;

use js_runtime_ext::Author;

#[derive(Default)]
pub(crate) struct Shares {
    /// Bytes that were in use.
    last: Option<usize>,
    grown: HashMap<u32, usize>,
}

impl Shares {
    pub fn charge(&mut self, used: usize, extension: Option<u32>) {
        let before = self.last.replace(used);
        if let (Some(before), Some(extension)) = (before, extension) {
            let grown = self.grown.entry(extension).or_default();
            *grown = grown.saturating_add(used).saturating_sub(before);
        }
    }

    /// Whose fault it is that `limit` bytes are not enough: of whoever runs, unless
    /// another one has a good part of them, and they have next to nothing.
    pub fn culprit(&self, running: Option<Author>, limit: usize) -> Option<Author> {
        let of = |author: &Author| self.grown.get(&author.id).copied().unwrap_or_default();
        let own = running.as_ref().map_or(0, of);
        let most = self.grown.iter().max_by_key(|(_, grown)| **grown);
        match most {
            Some((id, grown)) if *grown >= limit / 4 && own < grown / 4 => Some(Author {
                id: *id,
                what: String::new(),
            }),
            _ => running,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    fn author(id: u32) -> Option<Author> {
        let what = String::new();
        Some(Author { id, what })
    }

    #[test]
    fn whoever_has_filled_it_is_to_blame() {
        let mut shares = Shares::default();
        // What was there before anybody ran.
        shares.charge(20 * MB, Some(2));
        for used in [40, 70, 60, 100] {
            shares.charge(used * MB, Some(1));
        }
        shares.charge(105 * MB, Some(2));
        shares.charge(110 * MB, None);
        for (running, culprit) in [(None, 1), (author(1), 1), (author(2), 1)] {
            assert_eq!(shares.culprit(running, 128 * MB), author(culprit));
        }
        // It is something else that is full.
        assert_eq!(shares.culprit(author(2), 512 * MB), author(2));
        assert_eq!(shares.culprit(None, 512 * MB), None);
        shares.charge(128 * MB, Some(2));
        assert_eq!(shares.culprit(author(2), 128 * MB), author(2));
    }
}
