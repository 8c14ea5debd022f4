//! States of paths, by which unchanged files are recognized without reading them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pi_base::{FileState, FileTime};

/// Coarsest clock of a file system: FAT counts in steps of two seconds. A file that has changed
/// within this time may change again without another time stamp.
pub(in crate::switch) const CLOCK_STEP: Duration = Duration::from_millis(2500);

/// Returns the state of what a path leads to; `None` if nothing is there. Links are followed, so
/// that the state also changes when a link on the way leads elsewhere.
fn state_of(path: &Path) -> Option<FileState> {
    let found = fs::metadata(path).ok()?;
    Some(FileState::from_metadata(&found))
}

/// Returns whether a change from `now` on would give another state.
fn is_settled(state: FileState, now: SystemTime) -> bool {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let step = CLOCK_STEP.as_nanos().cast_signed();
    let now = now.as_nanos().cast_signed();
    // The clock of a server may be ahead.
    let is_recent = |time: FileTime| (now - time.total_nanoseconds()).abs() < step;
    !is_recent(state.modified) && !is_recent(state.changed)
}

/// The states of paths when they were looked at last.
#[derive(Default)]
pub(super) struct PathStates(HashMap<PathBuf, Looked>);

struct Looked {
    /// `None` for a missing path.
    state: Option<FileState>,
    is_settled: bool,
    /// Whether the path may have changed between the last two looks.
    is_suspect: bool,
}

impl PathStates {
    /// Adds a path. Must be called before what it leads to is read. Returns whether it is new.
    pub fn add(&mut self, path: &Path) -> bool {
        let is_new = !self.0.contains_key(path);
        if is_new {
            let state = state_of(path);
            let looked = Looked {
                is_settled: state.is_none_or(|state| is_settled(state, SystemTime::now())),
                state,
                is_suspect: false,
            };
            self.0.insert(path.to_path_buf(), looked);
        }
        is_new
    }

    /// Looks at all paths. Returns whether one may have changed.
    pub fn look(&mut self) -> bool {
        let mut is_any = false;
        let now = SystemTime::now();
        for (path, looked) in &mut self.0 {
            let state = state_of(path);
            looked.is_suspect = !looked.is_settled || state != looked.state;
            is_any |= looked.is_suspect;
            looked.is_settled = state.is_none_or(|state| is_settled(state, now));
            looked.state = state;
        }
        is_any
    }

    /// Returns whether the path may have changed between the last two looks.
    pub fn is_suspect(&self, path: &Path) -> bool {
        self.0.get(path).is_none_or(|looked| looked.is_suspect)
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Returns the path, or the first part of it that is missing: nothing below can appear before that
/// does.
pub(super) fn first_missing(path: &Path) -> &Path {
    let missing = path.ancestors().take_while(|part| !part.exists());
    missing.last().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(states: &mut PathStates, path: &Path) -> bool {
        states.look();
        states.is_suspect(path)
    }

    /// Sets the time of the last change of the content; that of the metadata is now.
    fn saved_at(path: &Path, text: &str, time: SystemTime) {
        fs::write(path, text).unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    }

    #[test]
    fn file_that_has_just_changed_stays_suspect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "1").unwrap();
        let mut states = PathStates::default();
        states.add(&path);
        assert!(look(&mut states, &path));
        assert!(look(&mut states, &path));
    }

    #[test]
    fn old_file_is_suspect_once_after_each_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let old = SystemTime::now() - Duration::from_secs(60);
        saved_at(&path, "1", old);
        std::thread::sleep(CLOCK_STEP);
        let mut states = PathStates::default();
        states.add(&path);
        assert!(!look(&mut states, &path));
        // An editor that restores the time of the last change.
        saved_at(&path, "2", old);
        assert!(look(&mut states, &path));
        assert!(look(&mut states, &path), "the last state was too recent");
        fs::remove_file(&path).unwrap();
        assert!(look(&mut states, &path));
        assert!(!look(&mut states, &path));
    }

    #[test]
    fn link_that_leads_elsewhere_is_suspect() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for store in ["one", "two"] {
            fs::create_dir(at(store)).unwrap();
            fs::write(at(store).join("a"), "1").unwrap();
        }
        std::os::unix::fs::symlink(at("one"), at("link")).unwrap();
        let before = state_of(&at("link/a"));
        fs::remove_file(at("link")).unwrap();
        std::os::unix::fs::symlink(at("two"), at("link")).unwrap();
        assert_ne!(state_of(&at("link/a")), before);
    }

    #[test]
    fn first_missing_part_of_a_path_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let existing = folder.path();
        let deep = existing.join("x/y/z");
        assert_eq!(first_missing(&deep), existing.join("x"));
        assert_eq!(first_missing(existing), existing);
        std::os::unix::fs::symlink("nowhere", existing.join("x")).unwrap();
        assert_eq!(first_missing(&deep), existing.join("x"), "a dangling link");
    }
}
