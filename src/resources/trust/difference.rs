//! Differences of a project to what was trusted: files that were added, changed and removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pi_base::regular_file;
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::file_set::{FileRole, Files, path_of};
use super::record::kept_text;

/// Longer differences are cut.
const MAX_DIFF_LINES: usize = 400;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Change {
    Added,
    Changed,
    Removed,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: PathBuf,
    pub role: FileRole,
    pub change: Change,
    /// The hash of the contents before; `None` for an added file.
    before: Option<String>,
}

/// Changes of the files of a project, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub files: Vec<ChangedFile>,
}

impl Difference {
    pub fn between(project: &Path, before: &Files, now: &Files) -> Self {
        let mut files = Vec::new();
        for (key, file) in now {
            let change = match before.get(key) {
                None => Change::Added,
                Some(old) if old.sha256 != file.sha256 || old.role != file.role => Change::Changed,
                Some(_) => continue,
            };
            files.extend(path_of(project, key).map(|path| ChangedFile {
                path,
                role: file.role,
                change,
                before: before.get(key).map(|old| old.sha256.clone()),
            }));
        }
        for (key, file) in before.iter().filter(|(key, _)| !now.contains_key(*key)) {
            files.extend(path_of(project, key).map(|path| ChangedFile {
                path,
                role: file.role,
                change: Change::Removed,
                before: Some(file.sha256.clone()),
            }));
        }
        let modified = |file: &ChangedFile| {
            let found = fs::symlink_metadata(&file.path);
            found
                .and_then(|found| found.modified())
                .unwrap_or(SystemTime::UNIX_EPOCH)
        };
        files.sort_by_cached_key(|file| (std::cmp::Reverse(modified(file)), file.path.clone()));
        Self { files }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Describes the changes in one line, such as `changed .pi/extensions/a.ts, added .pi/SYSTEM.md`.
    pub fn summary(&self, project: &Path) -> String {
        let mut words: Vec<String> = self
            .files
            .iter()
            .map(|file| format!("{} {}", file.change.word(), shown_path(project, &file.path)))
            .collect();
        words.dedup();
        shortened(&words, words.len())
    }

    /// Returns the changes as a unified diff, for the user.
    pub fn diff(&self, agent_dir: &Path, project: &Path) -> String {
        let mut text = String::new();
        for file in self.files.iter().filter(|file| file.role != FileRole::Link) {
            let name = shown_path(project, &file.path);
            let kept = file.before.as_deref();
            let old = match kept {
                None => Some(String::new()),
                Some(sha256) => kept_text(agent_dir, sha256),
            };
            let new = match file.change {
                Change::Removed => Some(String::new()),
                _ => regular_file::read(&file.path)
                    .ok()
                    .and_then(|bytes| String::from_utf8(bytes).ok()),
            };
            match (old, new) {
                (Some(old), Some(new)) => {
                    let diff = TextDiff::from_lines(&old, &new);
                    let mut unified = diff.unified_diff();
                    let (from, to) = match file.change {
                        Change::Added => ("/dev/null", name.as_str()),
                        Change::Changed => (name.as_str(), name.as_str()),
                        Change::Removed => (name.as_str(), "/dev/null"),
                    };
                    text += &unified.context_radius(3).header(from, to).to_string();
                }
                _ => text += &format!("{} {name} (no text to compare)\n", file.change.word()),
            }
        }
        let lines: Vec<&str> = text.lines().collect();
        match lines.len() > MAX_DIFF_LINES {
            true => format!(
                "{}\n… {} more lines",
                lines[..MAX_DIFF_LINES].join("\n"),
                lines.len() - MAX_DIFF_LINES
            ),
            false => text,
        }
    }
}

/// Number of items that are listed.
pub(super) const SHOWN: usize = 10;

/// Joins the first ten of `count` items and counts the others.
pub(super) fn shortened(items: &[String], count: usize) -> String {
    let shown = &items[..items.len().min(SHOWN)];
    match count > shown.len() {
        true => format!("{} and {} more", shown.join(", "), count - shown.len()),
        false => shown.join(", "),
    }
}

/// Returns a path for the user: relative to the project, without control characters, which a
/// hostile name could contain.
pub(super) fn shown_path(project: &Path, path: &Path) -> String {
    let path = path.strip_prefix(project).unwrap_or(path);
    let text = path.to_string_lossy();
    text.chars()
        .flat_map(|c| {
            let hidden = c.is_control()
                || ('\u{200b}'..='\u{200f}').contains(&c)
                || ('\u{202a}'..='\u{202e}').contains(&c)
                || ('\u{2066}'..='\u{2069}').contains(&c);
            let escaped = hidden.then(|| c.escape_default());
            let plain = (!hidden).then_some(c);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}
