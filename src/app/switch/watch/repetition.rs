//! Files that change right after each reload, because an extension writes what it imports. Reloads
//! for such files become rarer, so that they do not follow each other for ever.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Time after a reload within which another change may be its consequence. An author who saves one
/// file again and again is slower.
const CONSEQUENCE_TIME: Duration = Duration::from_secs(1);
/// Number of consecutive reloads for one file that are not delayed.
const FREE_RELOADS: u32 = 5;
const MAX_DELAY: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Repetition {
    /// When the last reload ended.
    reloaded: Option<Instant>,
    /// Number of consecutive reloads for a file that has changed right after each.
    counts: HashMap<PathBuf, u32>,
}

impl Repetition {
    /// Returns how long to wait before a reload for `changed`, which was noticed at `noticed`.
    pub fn delay(&self, changed: &BTreeSet<PathBuf>, noticed: Instant) -> Duration {
        let counts = changed.iter().map(|path| self.count(path, noticed));
        // One file that has changed for the first time is enough for a reload.
        let count = counts.min().unwrap_or_default();
        match count.checked_sub(FREE_RELOADS) {
            None => Duration::ZERO,
            Some(more) => Duration::from_secs(1 << more.min(6)).min(MAX_DELAY),
        }
    }

    /// Returns whether the next reload is the first that is delayed.
    pub fn begins(&self, changed: &BTreeSet<PathBuf>, noticed: Instant) -> bool {
        let mut counts = changed.iter().map(|path| self.count(path, noticed));
        counts.any(|count| count == FREE_RELOADS)
    }

    /// Counts a reload for `changed` that has just ended.
    pub fn reloaded(&mut self, changed: &BTreeSet<PathBuf>, noticed: Instant) {
        let counts = changed.iter();
        self.counts = counts
            .map(|path| (path.clone(), self.count(path, noticed) + 1))
            .collect();
        self.reloaded = Some(Instant::now());
    }

    /// Number of reloads for the file that its change follows.
    fn count(&self, path: &PathBuf, noticed: Instant) -> u32 {
        let is_consequence = self
            .reloaded
            .is_some_and(|reloaded| noticed.duration_since(reloaded) < CONSEQUENCE_TIME);
        match is_consequence {
            true => self.counts.get(path).copied().unwrap_or_default(),
            false => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reloads_for_one_file_become_rarer() {
        let mut repetition = Repetition::default();
        let changed = BTreeSet::from([PathBuf::from("/a/state.json")]);
        let mut delays = Vec::new();
        for _ in 0..12 {
            let now = Instant::now();
            delays.push(repetition.delay(&changed, now).as_secs());
            repetition.reloaded(&changed, now);
        }
        assert_eq!(delays, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60]);
        let later = Instant::now() + CONSEQUENCE_TIME;
        assert_eq!(repetition.delay(&changed, later), Duration::ZERO);
        let with_another = changed.iter().cloned().chain(["/b.ts".into()]).collect();
        assert_eq!(
            repetition.delay(&with_another, Instant::now()),
            Duration::ZERO
        );
    }
}
