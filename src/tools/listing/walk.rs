//! Walks folders for `grep` and `find` with several threads, respecting ignore files. The result
//! is the same every time, although the order of the threads differs.

use pi_base::regular_file;
use std::collections::BTreeMap;
use std::fs::FileType;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::WalkBuilder;
use parking_lot::Mutex;

use crate::tool::PathFilter;

/// Maximum number of reported paths that could not be read, or were left out by rules.
const MAX_PROBLEMS: usize = 1000;

/// Walks everything under `root`, hidden or not, that ignore files do not exclude. Files named
/// `own` count as ignore files, too.
pub(crate) fn builder(
    root: &Path,
    cwd: &Path,
    own: &'static str,
    problems: &Arc<Problems>,
) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .current_dir(cwd)
        .add_custom_ignore_filename(own);
    // Ignore files of the folders above apply, too.
    if root
        .ancestors()
        .any(|folder| is_blocked(folder, own, problems))
    {
        builder = WalkBuilder::new(root);
        builder.standard_filters(false).current_dir(cwd);
    }
    let problems = problems.clone();
    builder.filter_entry(move |entry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        !is_folder || !is_blocked(entry.path(), own, &problems)
    });
    builder
}

/// Returns true if an ignore file of a folder is a pipe or a device: the walk would open it and
/// wait forever.
fn is_blocked(folder: &Path, own: &str, problems: &Problems) -> bool {
    [".gitignore", ".ignore", own].into_iter().any(|name| {
        let path = folder.join(name);
        let error = regular_file::check(&path).err();
        let error = error.filter(|error| error.kind() == ErrorKind::InvalidInput);
        if let Some(error) = &error {
            problems.add(&path, error);
        }
        error.is_some()
    })
}

/// Returns `path` relative to `root`, in the form in which it is shown.
pub(crate) fn relative(path: &Path, root: &Path) -> String {
    let text = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    match cfg!(windows) {
        true => text.replace('\\', "/"),
        false => text.into_owned(),
    }
}

/// The first results in the order of their paths, out of all that the threads find in any order.
/// Once there are enough, paths after the last of them are not visited: a walk ends early without
/// being sequential.
pub(crate) struct FirstResults<T> {
    limit: usize,
    matches: Mutex<Matches<T>>,
}

struct Matches<T> {
    by_path: BTreeMap<PathBuf, (usize, T)>,
    count: usize,
}

impl<T> Default for Matches<T> {
    fn default() -> Self {
        Self {
            by_path: BTreeMap::new(),
            count: 0,
        }
    }
}

impl<T> FirstResults<T> {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            matches: Mutex::default(),
        }
    }

    /// Returns true if `path`, or a path below it, can be among the first. Paths are compared by
    /// component, so a folder comes right before its content.
    pub(crate) fn accepts(&self, path: &Path) -> bool {
        let matches = self.matches.lock();
        matches.count < self.limit
            || (matches.by_path.last_key_value()).is_none_or(|(last, _)| path < last.as_path())
    }

    /// Adds `found`, which stands for `count` results.
    pub(crate) fn add(&self, path: PathBuf, count: usize, found: T) {
        let mut matches = self.matches.lock();
        let matches = &mut *matches;
        matches.count += count;
        matches.by_path.insert(path, (count, found));
        while let Some(last) = matches.by_path.last_entry() {
            let without = matches.count - last.get().0;
            if without < self.limit {
                break;
            }
            last.remove();
            matches.count = without;
        }
    }

    /// Returns the results in order and leaves none behind.
    pub(crate) fn take_sorted(&self) -> impl Iterator<Item = (PathBuf, T)> + use<T> {
        let Matches { by_path, .. } = std::mem::take(&mut *self.matches.lock());
        by_path.into_iter().map(|(path, (_, found))| (path, found))
    }
}

/// Paths that could not be read, as far as they could have been among the first results, so that
/// they are the same every time.
pub(crate) struct Problems {
    first: FirstResults<String>,
}

impl Problems {
    pub(crate) fn new() -> Self {
        Self {
            first: FirstResults::new(MAX_PROBLEMS),
        }
    }

    pub(crate) fn add(&self, path: &Path, problem: &dyn std::fmt::Display) {
        let text = format!("{}: {problem}", path.display());
        self.first.add(path.to_owned(), 1, text);
    }

    /// Adds an error of the walk itself. Files that disappeared meanwhile are ignored.
    pub(crate) fn add_walk(&self, error: &ignore::Error) {
        let gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        if error.io_error().is_some_and(gone) {
            return;
        }
        match error {
            ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
                self.add_walk(err);
            }
            ignore::Error::WithPath { path, err } => self.add(path, err),
            other => self.first.add(PathBuf::new(), 1, other.to_string()),
        }
    }

    /// Returns the problems without those that only a walk beyond the first results meets.
    pub(crate) fn lines<T>(&self, results: &FirstResults<T>) -> Vec<String> {
        let before_end = |(path, text): (PathBuf, String)| results.accepts(&path).then_some(text);
        self.first.take_sorted().filter_map(before_end).collect()
    }
}

/// Files and folders that rules keep a walk from reading.
pub(crate) struct DeniedPaths {
    filter: PathFilter,
    first: FirstResults<()>,
}

impl DeniedPaths {
    pub(crate) fn new(filter: PathFilter) -> Self {
        Self {
            filter,
            first: FirstResults::new(MAX_PROBLEMS),
        }
    }

    /// Returns whether the walk leaves out a file or what is in a folder, and counts it.
    pub(crate) fn leaves_out(&self, path: &Path, kind: Option<FileType>) -> bool {
        let leaves_out = (self.filter)(path);
        // A pipe or a link would not be read anyway.
        if leaves_out && kind.is_some_and(|kind| kind.is_file() || kind.is_dir()) {
            self.first.add(path.to_owned(), 1, ());
        }
        leaves_out
    }

    /// Returns the notice for a result that lacks these files. Those that only a walk beyond the
    /// first results meets do not count.
    pub(crate) fn notice<T>(&self, results: &FirstResults<T>) -> Option<String> {
        let all = self.first.take_sorted();
        let count = all.filter(|(path, ())| results.accepts(path)).count();
        let (what, they) = match count {
            0 => return None,
            1 => ("1 file or folder was".to_owned(), "it"),
            MAX_PROBLEMS => (format!("{count} or more files and folders were"), "them"),
            _ => (format!("{count} files and folders were"), "them"),
        };
        Some(format!(
            "{what} left out, because rules in \"permissions\" deny or ask about reading {they}"
        ))
    }
}

/// Returns the notice for a result that lacks unreadable paths.
pub(crate) fn problem_notice(problems: &[String]) -> Option<String> {
    let (count, first) = (problems.len(), problems.first()?);
    let or_more = if count >= MAX_PROBLEMS {
        " or more"
    } else {
        ""
    };
    Some(format!(
        "Could not read {count}{or_more} of the files and folders, the first: {first}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(limit: usize, found: &[(&str, usize)]) -> Vec<String> {
        let results = FirstResults::new(limit);
        for (path, count) in found {
            if results.accepts(Path::new(path)) {
                results.add(path.into(), *count, ());
            }
        }
        let paths = results.take_sorted().map(|(path, ())| path);
        paths.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn the_order_of_finding_does_not_matter() {
        let found = [("a/z", 1), ("a", 1), ("b", 2), ("a.x", 1), ("c", 1)];
        for limit in 1..8 {
            let expected = first(limit, &found);
            for turn in 0..found.len() {
                let mut turned = found;
                turned.rotate_left(turn);
                assert_eq!(first(limit, &turned), expected, "{limit}");
                turned.reverse();
                assert_eq!(first(limit, &turned), expected, "{limit}");
            }
        }
        assert_eq!(first(2, &found), ["a", "a/z"]);
        assert_eq!(first(4, &found), ["a", "a/z", "a.x", "b"]);
    }

    #[test]
    fn enough_means_no_more_visits() {
        let results = FirstResults::new(2);
        assert!(results.accepts(Path::new("z")));
        results.add("m".into(), 3, ());
        assert!(results.accepts(Path::new("a")));
        assert!(!results.accepts(Path::new("m/below")));
        results.add("a".into(), 1, ());
        assert!(results.accepts(Path::new("b")));
        results.add("b".into(), 1, ());
        assert!(!results.accepts(Path::new("c")));
    }

    #[test]
    fn problems_behind_the_last_result_do_not_count() {
        let results = FirstResults::new(1);
        let problems = Problems::new();
        for name in ["z", "b", "a"] {
            problems.add(Path::new(name), &"no");
        }
        results.add("c".into(), 1, ());
        let lines = problems.lines(&results);
        assert_eq!(lines, ["a: no", "b: no"]);
        assert_eq!(
            problem_notice(&lines).unwrap(),
            "Could not read 2 of the files and folders, the first: a: no"
        );
        assert_eq!(problem_notice(&[]), None);
    }
}
