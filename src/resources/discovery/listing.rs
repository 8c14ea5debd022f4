//! Lists folders for discovery: entries are sorted by bytes and links are followed; hidden
//! files, `node_modules` and entries that ignore files exclude are left out.

use pi_base::regular_file;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::SearchLog;
use crate::diagnostic::Diagnostic;

const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    pub(crate) is_dir: bool,
}

impl Entry {
    pub(crate) fn is_file_with(&self, extension: &str) -> bool {
        !self.is_dir
            && self
                .path
                .extension()
                .is_some_and(|found| found == extension)
    }
}

/// The ignore files of a folder and its ancestors. The innermost rule that matches applies.
#[derive(Default)]
pub(crate) struct IgnoreRules(Vec<Gitignore>);

impl IgnoreRules {
    /// Returns these rules with those of `dir` added.
    pub(crate) fn descend(&self, dir: &Path, log: &mut SearchLog) -> Self {
        let mut rules = self.0.clone();
        let mut builder = GitignoreBuilder::new(dir);
        for name in IGNORE_FILES {
            let path = dir.join(name);
            let text = match regular_file::read_text(&path) {
                Ok(text) => {
                    log.look_up(&path);
                    text
                }
                Err(error) => {
                    if error.kind() == io::ErrorKind::InvalidInput {
                        log.problems.push(Diagnostic::unreadable(&path, &error));
                    }
                    continue;
                }
            };
            for line in text.lines() {
                // A line that is not a pattern excludes nothing, as in git.
                let _ = builder.add_line(None, line);
            }
        }
        rules.extend(builder.build().ok().filter(|rules| !rules.is_empty()));
        Self(rules)
    }

    pub(crate) fn ignore(&self, path: &Path, is_dir: bool) -> bool {
        let opinions = self.0.iter().rev().map(|rules| rules.matched(path, is_dir));
        let mut decided = opinions.skip_while(|opinion| opinion.is_none());
        decided.next().is_some_and(|opinion| opinion.is_ignore())
    }
}

/// Returns whether a folder that may have resources does not exist, as most do not. Saves the search
/// for several files in it.
pub(crate) fn is_missing(dir: &Path, log: &mut SearchLog) -> bool {
    log.look_up(dir);
    matches!(dir.try_exists(), Ok(false))
}

/// Returns the entries of `dir`; none if it does not exist. A folder that cannot be read is
/// reported.
pub(crate) fn list(dir: &Path, rules: &IgnoreRules, log: &mut SearchLog) -> Vec<Entry> {
    log.look_up(dir);
    let read = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut found = match read {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            log.problems.push(Diagnostic::unreadable(dir, &error));
            return Vec::new();
        }
    };
    found.sort_by_key(fs::DirEntry::file_name);
    let entries = found.into_iter().filter_map(|entry| {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") || name == "node_modules" {
            return None;
        }
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            log.look_up(&path);
        }
        // Leaves out dangling links, and pipes, which would block their reader.
        let kind = fs::metadata(&path).ok()?.file_type();
        let is_dir = kind.is_dir();
        let wanted = (is_dir || kind.is_file()) && !rules.ignore(&path, is_dir);
        wanted.then_some(Entry { path, is_dir })
    });
    entries.collect()
}
