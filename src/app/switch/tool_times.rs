//! When tools ran, by the clock of the file system. A file that changed meanwhile may have been changed
//! by a tool.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::watch::CLOCK_STEP;

/// More times are joined with the oldest one.
const MAX_TIMES: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct ToolTimes {
    /// Calls that run, by their id.
    running: BTreeMap<String, SystemTime>,
    past: Vec<(SystemTime, SystemTime)>,
    /// Start of the oldest call whose background processes may still run.
    background_since: Option<SystemTime>,
}

impl ToolTimes {
    pub fn begin(&mut self, call: &str) {
        self.running.insert(call.to_owned(), SystemTime::now());
    }

    /// Ends a call. `has_background` says whether a background process of a tool runs.
    pub fn end(&mut self, call: &str, has_background: impl FnOnce() -> bool) {
        if let Some(started) = self.running.remove(call) {
            self.add(started);
            if self.background_since.is_none() && has_background() {
                self.background_since = Some(started);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.running.is_empty() && self.past.is_empty()
    }

    /// Ends the calls that were given up. Called when no run is active.
    pub fn end_all(&mut self, has_background: impl FnOnce() -> bool) {
        let running = std::mem::take(&mut self.running);
        let first = running.values().min().copied();
        for started in running.into_values() {
            self.add(started);
        }
        let since = self.background_since.take().or(first);
        match since {
            Some(since) if has_background() => self.background_since = Some(since),
            // The processes have ended at an unknown time since the last look.
            Some(since) => self.add(since),
            None => {}
        }
    }

    fn add(&mut self, started: SystemTime) {
        self.past.push((started, SystemTime::now()));
        if self.past.len() > MAX_TIMES {
            let (_, end) = self.past.remove(1);
            self.past[0].1 = self.past[0].1.max(end);
        }
    }

    /// Returns whether the file, a link to it, or its place in one of `folders` above it changed while
    /// a tool ran. A program cannot set the time that decides.
    pub fn includes_change<'a>(
        &self,
        path: &'a Path,
        folders: impl Iterator<Item = &'a Path>,
    ) -> bool {
        let changed = |found: fs::Metadata| {
            let time = Duration::new(
                u64::try_from(found.ctime()).ok()?,
                u32::try_from(found.ctime_nsec()).ok()?,
            );
            UNIX_EPOCH.checked_add(time)
        };
        let found = [fs::symlink_metadata(path), fs::metadata(path)].into_iter();
        let found = found.chain(folders.map(fs::metadata));
        let mut times = found.flatten().filter_map(changed);
        times.any(|time| self.includes(time))
    }

    fn includes(&self, time: SystemTime) -> bool {
        let mut past = self.past.iter();
        self.background_since
            .is_some_and(|start| start <= time + CLOCK_STEP)
            || past.any(|(start, end)| *start <= time + CLOCK_STEP && time <= *end + CLOCK_STEP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_during_a_call_are_recognized() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.ts");
        fs::write(&file, "1").unwrap();
        let mut times = ToolTimes::default();
        let changed = |times: &ToolTimes| times.includes_change(&file, std::iter::empty());
        assert!(!changed(&times));
        times.begin("1");
        times.end("1", || false);
        times.end("unknown", || false);
        assert!(changed(&times));
        let long_ago = UNIX_EPOCH + Duration::from_secs(1_000_000);
        times.past = vec![(long_ago, long_ago + Duration::from_secs(60))];
        assert!(!changed(&times));
        times.begin("2");
        times.end_all(|| false);
        assert!(changed(&times));
        times = ToolTimes::default();
        times.begin("3");
        times.end("3", || true);
        times.past = vec![(long_ago, long_ago)];
        assert!(changed(&times), "a process goes on");
        times.end_all(|| true);
        assert!(changed(&times));
        times.end_all(|| false);
        assert!(changed(&times), "it has ended since");
        times.past = vec![(long_ago, long_ago + Duration::from_secs(60))];
        times.end_all(|| true);
        assert!(!changed(&times));
        for call in 0..=MAX_TIMES {
            times.begin(&call.to_string());
            times.end_all(|| false);
        }
        assert_eq!(times.past.len(), MAX_TIMES);
        assert!(times.includes(long_ago));
    }
}
