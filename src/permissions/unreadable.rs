//! Files that rules keep from being read, where a call reads what it does not name: a search in
//! a folder, `grep -r`, `cat *`.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::decide::{Decision, Rules, Verdict, file_pattern};
use crate::paths::LocatedPattern;
use crate::rule::{Rule, text_matches};
use crate::shell::{Area, AreaKind, BaseFolders, Skipped, UnnamedReads};
use pi_base::follow_links;

/// Number of files and folders that are looked at for one command.
const MAX_ENTRIES: usize = 200_000;

/// The files that rules deny or ask about reading.
#[derive(Clone, Debug)]
pub struct Unreadable {
    base_folders: BaseFolders,
    /// The folder that is searched, and the one behind its links.
    root: (PathBuf, PathBuf),
    deny: Vec<(Rule, LocatedPattern)>,
    ask: Vec<(Rule, LocatedPattern)>,
    /// Rules without a wildcard; they win against rules to ask that have one.
    allow: Vec<Rule>,
}

impl Rules {
    /// Returns the files that a search leaves out; `None` if no rule is about reading files below
    /// `root`. A rule that asks about `root` itself does not count: the question was answered.
    pub fn unreadable_in(&self, root: &Path, base_folders: &BaseFolders) -> Option<Unreadable> {
        let resolved = follow_links(root)?;
        let mut unreadable = self.unreadable(base_folders);
        unreadable.root = (root.to_owned(), resolved.clone());
        unreadable
            .ask
            .retain(|(_, pattern)| !pattern.matches(root, &resolved));
        unreadable.keep_below(&[root, &resolved]);
        (!unreadable.is_empty()).then_some(unreadable)
    }

    fn unreadable(&self, base_folders: &BaseFolders) -> Unreadable {
        let located = |rules: &[Rule]| -> Vec<_> {
            let patterns = rules.iter().filter_map(|rule| {
                let pattern = file_pattern(rule, false)?;
                Some((rule.clone(), pattern.located(base_folders)))
            });
            patterns.collect()
        };
        Unreadable {
            base_folders: base_folders.clone(),
            root: Default::default(),
            deny: located(&self.deny),
            ask: located(&self.ask),
            allow: (self.allow.iter().filter(|rule| rule.is_exact()))
                .cloned()
                .collect(),
        }
    }

    /// Decides about a command that reads files which it does not name. Returns a question if a rule
    /// denies or asks about one of them.
    pub(crate) fn decide_unnamed(
        &self,
        reads: &UnnamedReads,
        base_folders: &BaseFolders,
    ) -> Option<Decision> {
        let unreadable = self.unreadable(base_folders);
        let (first, _) = unreadable.deny.first().or(unreadable.ask.first())?;
        let command = &reads.command;
        let Some(areas) = reads.areas(base_folders) else {
            let reason = format!("{command} may read what the rule {first} is about");
            return Some(Decision::new(Verdict::Ask, Some(first), reason));
        };
        let mut left = MAX_ENTRIES;
        for area in &areas {
            match unreadable.find(area, &reads.skipped, &mut left) {
                DeniedContent::Nothing => {}
                DeniedContent::File(path, rule) => {
                    let verb = match self.deny.contains(rule) {
                        true => "denies",
                        false => "asks about",
                    };
                    let reason = format!(
                        "{command} may read {}, which the rule {rule} {verb} (the tool grep leaves such \
                         files out)",
                        path.display()
                    );
                    return Some(Decision::new(Verdict::Ask, Some(rule), reason));
                }
                DeniedContent::History(rule) => {
                    let reason = format!(
                        "{command} may print earlier contents of files that the rule {rule} is \
                         about (it runs if it names other files: git … -- FILE)"
                    );
                    return Some(Decision::new(Verdict::Ask, Some(rule), reason));
                }
                DeniedContent::TooMany => {
                    let reason = format!(
                        "{command} reads more than {MAX_ENTRIES} files, and the rule {first} may be \
                         about one of them"
                    );
                    return Some(Decision::new(Verdict::Ask, Some(first), reason));
                }
            }
        }
        None
    }
}

enum DeniedContent<'r> {
    Nothing,
    File(PathBuf, &'r Rule),
    /// The rule may be about a file that existed before.
    History(&'r Rule),
    TooMany,
}

impl Unreadable {
    /// Returns whether the search leaves out a file or folder, which it found without following
    /// symbolic links.
    pub fn contains(&self, path: &Path) -> bool {
        let (root, resolved) = &self.root;
        let resolved = match path.strip_prefix(root) {
            Ok(below) => resolved.join(below),
            Err(_) => path.to_owned(),
        };
        self.rule_for(path, &resolved).is_some()
    }

    fn is_empty(&self) -> bool {
        self.deny.is_empty() && self.ask.is_empty()
    }

    /// Removes the rules that are about no path in one of the folders.
    fn keep_below(&mut self, folders: &[&Path]) {
        for rules in [&mut self.deny, &mut self.ask] {
            rules.retain(|(_, pattern)| folders.iter().any(|it| pattern.may_match_below(it)));
        }
    }

    /// Returns the rule that keeps a file from being read.
    fn rule_for(&self, plain: &Path, resolved: &Path) -> Option<&Rule> {
        let matching = |rules: &'_ [(Rule, LocatedPattern)]| {
            rules
                .iter()
                .position(|(_, pattern)| pattern.matches(plain, resolved))
        };
        if let Some(at) = matching(&self.deny) {
            return Some(&self.deny[at].0);
        }
        let (rule, _) = &self.ask[matching(&self.ask)?];
        let is_allowed = |allow: &Rule| {
            file_pattern(allow, false).is_some_and(|it| it.must_match(plain, &self.base_folders))
        };
        let is_answered = !rule.is_exact() && self.allow.iter().any(is_allowed);
        (!is_answered).then_some(rule)
    }

    /// Searches an area for a file that may not be read.
    fn find(&self, area: &Area, skipped: &Skipped, left: &mut usize) -> DeniedContent<'_> {
        let Some(folder) = follow_links(&area.folder) else {
            return DeniedContent::Nothing;
        };
        match area.kind {
            AreaKind::Folder => {}
            AreaKind::File => {
                let rule = self.rule_for(&area.folder, &folder);
                return rule.map_or(DeniedContent::Nothing, |rule| {
                    DeniedContent::File(area.folder.clone(), rule)
                });
            }
            AreaKind::History => {
                let mut rules = self.deny.iter().chain(&self.ask);
                let may_match = |(_, pattern): &&(Rule, LocatedPattern)| {
                    pattern.may_match_below(&area.folder) || pattern.may_match_below(&folder)
                };
                let rule = rules.find(may_match);
                return rule.map_or(DeniedContent::Nothing, |(rule, _)| {
                    DeniedContent::History(rule)
                });
            }
        }
        let mut rules = self.clone();
        rules.keep_below(&[&area.folder, &folder]);
        // A followed link leads to any base_folders.
        if rules.is_empty() && !skipped.follows_links {
            return DeniedContent::Nothing;
        }
        let names = skipped.clone();
        let mut builder = WalkBuilder::new(&folder);
        builder
            .standard_filters(skipped.is_ignoring)
            .hidden(skipped.without_hidden)
            .follow_links(skipped.follows_links)
            .max_depth(area.depth)
            .filter_entry(move |entry| {
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                entry.depth() == 0
                    || !names.leaves_out(&entry.file_name().to_string_lossy(), is_folder)
            });
        // An entry that cannot be read is none that the command can read.
        for entry in builder.build().flatten() {
            if entry.depth() == 0 {
                continue;
            }
            *left = left.saturating_sub(1);
            if *left == 0 {
                return DeniedContent::TooMany;
            }
            let path = entry.path();
            let below = path.strip_prefix(&folder).unwrap_or(path);
            let is_meant = area.pattern.as_ref().is_none_or(|pattern| {
                let mut all = below.ancestors();
                all.any(|part| text_matches(pattern, &part.to_string_lossy()))
            });
            if !is_meant {
                continue;
            }
            let plain = area.folder.join(below);
            let resolved = match skipped.follows_links || entry.path_is_symlink() {
                true => follow_links(path),
                false => Some(path.to_owned()),
            };
            if let Some(resolved) = resolved
                && let Some(rule) = self.rule_for(&plain, &resolved)
            {
                return DeniedContent::File(plain, rule);
            }
        }
        DeniedContent::Nothing
    }
}

#[cfg(test)]
mod tests;
