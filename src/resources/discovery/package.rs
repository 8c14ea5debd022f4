//! The resources of a package: a folder with a manifest, or with folders named like the kinds
//! of resource.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use ignore::WalkBuilder;

use super::SearchLog;
use super::collect::{Manifest, collect_dir, collect_path, may_be_extension};
use super::patterns::{Patterns, is_override, is_pattern, matcher};
use crate::diagnostic::Diagnostic;
use crate::paths::ResourceKind;
use crate::settings::PackageFilter;
use pi_base::normalize;

/// Returns whether a source is a path: every source is one that has no other scheme.
pub fn is_local_source(source: &str) -> bool {
    const ELSEWHERE: [&str; 6] = ["npm:", "git:", "github:", "http:", "https:", "ssh:"];
    let source = source.trim();
    !ELSEWHERE.iter().any(|prefix| source.starts_with(prefix))
}

/// An installed package.
pub(super) struct Package<'a> {
    pub(super) root: &'a Path,
    pub(super) filter: Option<&'a PackageFilter>,
}

impl Package<'_> {
    /// Returns the files, each with whether the filter selects it.
    pub(super) fn resources(
        &self,
        kind: ResourceKind,
        log: &mut SearchLog,
    ) -> Vec<(PathBuf, bool)> {
        log.look_up(self.root);
        let manifest = Manifest::read(self.root, kind, log);
        let wanted = self.filter.and_then(|filter| filter.patterns(kind));
        let files = match &manifest {
            Some(manifest) => match manifest.entries(kind) {
                Some(entries) if !entries.is_empty() || wanted.is_none() => {
                    self.named(entries, kind, log)
                }
                // A manifest decides for all kinds, unless a filter asks for a single kind.
                None if self.filter.is_none() => Vec::new(),
                _ => self.conventional(kind, log),
            },
            None => self.conventional(kind, log),
        };
        let Some(wanted) = wanted else {
            return files.into_iter().map(|file| (file, true)).collect();
        };
        let patterns = self.parse(wanted, log);
        let allow = |file: &Path| !wanted.is_empty() && patterns.allow(file, self.root);
        let marked = files.into_iter().map(|file| (allow(&file), file));
        marked.map(|(allowed, file)| (file, allowed)).collect()
    }

    /// Returns whether the folder declares resources. A folder that does not may be a module
    /// itself.
    pub(super) fn declares_resources(&self, log: &mut SearchLog) -> bool {
        log.look_up(self.root);
        let mut kinds = ResourceKind::ALL.iter();
        self.filter.is_some()
            || kinds.any(|kind| self.root.join(kind.name()).exists())
            || Manifest::read(self.root, ResourceKind::Extensions, log).is_some()
    }

    /// Returns the files of the manifest's entries, which may be globs, filtered by its entries
    /// `!`, `+` and `-`.
    fn named(&self, entries: &[String], kind: ResourceKind, log: &mut SearchLog) -> Vec<PathBuf> {
        let (patterns, complaints) = Patterns::parse_overrides(entries);
        self.report(complaints, log);
        let mut files = Vec::new();
        for entry in entries.iter().filter(|entry| !is_override(entry)) {
            let paths = match is_pattern(entry) {
                true => self.expand(entry, kind, log),
                false => vec![normalize(&self.root.join(entry))],
            };
            for path in &paths {
                log.look_up(path);
            }
            let there: Vec<PathBuf> = paths.into_iter().filter(|path| path.exists()).collect();
            if there.is_empty() {
                let root = self.root.display();
                let message = format!("The package {root} names \"{entry}\", which does not exist");
                let path = normalize(&self.root.join(entry));
                log.problems.push(Diagnostic::warning(&path, message));
            }
            for path in there {
                files.extend(collect_path(&path, kind, log));
            }
        }
        let mut seen = HashSet::new();
        files.retain(|file| patterns.allow(file, self.root) && seen.insert(file.clone()));
        files
    }

    /// Expands a glob of the manifest, without hidden files and nested packages.
    fn expand(&self, entry: &str, kind: ResourceKind, log: &mut SearchLog) -> Vec<PathBuf> {
        let glob = entry.strip_prefix("./").unwrap_or(entry);
        let matcher = match matcher(entry, glob) {
            Ok(matcher) => matcher,
            Err(complaint) => {
                self.report(vec![complaint], log);
                return Vec::new();
            }
        };
        let parts = Path::new(glob).components();
        let is_literal = |part: &Component| !is_pattern(&part.as_os_str().to_string_lossy());
        let literal: PathBuf = parts.clone().take_while(is_literal).collect();
        let depth = parts.count() - literal.components().count();
        let walk = WalkBuilder::new(self.root.join(literal))
            .standard_filters(false)
            .hidden(true)
            .max_depth((!glob.contains("**")).then_some(depth))
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name() != "node_modules")
            .build();
        let found = walk.filter_map(|entry| {
            let path = entry.ok()?.into_path();
            if path.is_dir() {
                log.look_up(&path);
            }
            Some(path)
        });
        let wanted = |path: &PathBuf| {
            let relative = path.strip_prefix(self.root).unwrap_or(path);
            let is_other = kind == ResourceKind::Extensions && !may_be_extension(path);
            matcher.is_match(relative) && !is_other
        };
        let mut found: Vec<PathBuf> = found.filter(wanted).collect();
        found.sort();
        found
    }

    fn conventional(&self, kind: ResourceKind, log: &mut SearchLog) -> Vec<PathBuf> {
        collect_dir(&self.root.join(kind.name()), kind, log)
    }

    fn parse(&self, patterns: &[String], log: &mut SearchLog) -> Patterns {
        let (patterns, complaints) = Patterns::parse(patterns.iter().map(String::as_str));
        self.report(complaints, log);
        patterns
    }

    fn report(&self, complaints: Vec<String>, log: &mut SearchLog) {
        let reports = complaints.into_iter();
        log.problems
            .extend(reports.map(|message| Diagnostic::warning(self.root, message)));
    }
}
