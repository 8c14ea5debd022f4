//! What a package brings: a folder with a manifest or with folders named like
//! the kinds of resource. Here are packages that lie in a local folder; what
//! installs others will put them into one.

use std::path::{Path, PathBuf};

use super::collect::{Manifest, collect_dir, collect_path};
use super::patterns::{Patterns, is_pattern};
use crate::resources::diagnostic::Diagnostic;
use crate::resources::paths::{ResourceKind, normalize};
use crate::resources::settings::PackageFilter;

/// Whether a source is a path: everything is that names no other place.
pub fn is_local_source(source: &str) -> bool {
    const ELSEWHERE: [&str; 6] = ["npm:", "git:", "github:", "http:", "https:", "ssh:"];
    let source = source.trim();
    !ELSEWHERE.iter().any(|prefix| source.starts_with(prefix))
}

/// One package that is there.
pub(super) struct Package<'a> {
    pub(super) root: &'a Path,
    pub(super) filter: Option<&'a PackageFilter>,
}

impl Package<'_> {
    /// Files, each with whether the filter lets it through.
    pub(super) fn resources(
        &self,
        kind: ResourceKind,
        problems: &mut Vec<Diagnostic>,
    ) -> Vec<(PathBuf, bool)> {
        let manifest = Manifest::read(self.root, problems);
        let wanted = self.filter.and_then(|filter| filter.patterns(kind));
        let files = match &manifest {
            Some(manifest) => match manifest.entries(kind) {
                Some(entries) if !entries.is_empty() || wanted.is_none() => {
                    self.named(entries, kind, problems)
                }
                // A manifest speaks for the whole package, but a filter asks for
                // each kind alone.
                None if self.filter.is_none() => Vec::new(),
                _ => self.conventional(kind, problems),
            },
            None => self.conventional(kind, problems),
        };
        let Some(wanted) = wanted else {
            return files.into_iter().map(|file| (file, true)).collect();
        };
        let patterns = self.parse(wanted, problems);
        let allow = |file: &Path| !wanted.is_empty() && patterns.allow(file, self.root);
        let marked = files.into_iter().map(|file| (allow(&file), file));
        marked.map(|(allowed, file)| (file, allowed)).collect()
    }

    /// Whether the folder says anything about resources. One that does not may
    /// be a module itself.
    pub(super) fn is_laid_out(&self, problems: &mut Vec<Diagnostic>) -> bool {
        let mut kinds = ResourceKind::ALL.iter();
        self.filter.is_some()
            || kinds.any(|kind| self.root.join(kind.name()).exists())
            || Manifest::read(self.root, problems).is_some()
    }

    /// What a manifest's plain entries bring and its patterns let through.
    fn named(
        &self,
        entries: &[String],
        kind: ResourceKind,
        problems: &mut Vec<Diagnostic>,
    ) -> Vec<PathBuf> {
        let (globs, plain): (Vec<_>, Vec<_>) = entries.iter().cloned().partition(|e| is_pattern(e));
        let patterns = self.parse(&globs, problems);
        let mut files = Vec::new();
        for entry in plain {
            let path = normalize(&self.root.join(&entry));
            if path.exists() {
                files.extend(collect_path(&path, kind, problems));
            } else {
                let root = self.root.display();
                let message = format!("The package {root} names \"{entry}\", which does not exist");
                problems.push(Diagnostic::warning(&path, message));
            }
        }
        files.retain(|file| patterns.allow(file, self.root));
        files
    }

    fn conventional(&self, kind: ResourceKind, problems: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
        collect_dir(&self.root.join(kind.name()), kind, problems)
    }

    fn parse(&self, patterns: &[String], problems: &mut Vec<Diagnostic>) -> Patterns {
        let (patterns, complaints) = Patterns::parse(patterns.iter().map(String::as_str));
        let reports = complaints.into_iter();
        problems.extend(reports.map(|message| Diagnostic::warning(self.root, message)));
        patterns
    }
}
