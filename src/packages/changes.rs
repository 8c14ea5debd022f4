//! The difference between an installed package and its new version, as text for a person.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use pi_npm::{PackageScripts, Tree};
use serde_json::Value;
use similar::TextDiff;

use super::printable;

/// Size of a file that is compared line by line.
const MAX_FILE_BYTES: u64 = 256 << 10;
/// Lines that are shown of all files together.
const MAX_LINES: usize = 2_000;
/// Files of a package that are compared.
const MAX_FILES: usize = 20_000;

/// Two states of a package. The new one is not in effect yet.
pub struct Changes<'a> {
    pub source: &'a str,
    pub old: &'a Path,
    pub new: &'a Path,
    /// The dependencies of the old one, if they were recorded.
    pub old_tree: Option<&'a Tree>,
    pub new_tree: &'a Tree,
    pub scripts: &'a [PackageScripts],
}

impl Changes<'_> {
    /// Describes the changes: the manifest, dependencies, install scripts, then each file.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        let [before, after] = [self.old, self.new].map(manifest);
        let version = |manifest: &Value| manifest["version"].as_str().unwrap_or("?").to_owned();
        let (was, is) = (version(&before), version(&after));
        let _ = writeln!(text, "{} {was} -> {is}", self.source);
        for line in manifest_lines(&before, &after) {
            let _ = writeln!(text, "  package.json: {line}");
        }
        for line in self.dependency_lines() {
            let _ = writeln!(text, "  dependency: {line}");
        }
        for package in self.scripts {
            for (name, script) in &package.scripts {
                let _ = writeln!(
                    text,
                    "  install script of {}, which does not run: {name}: {script}",
                    package.name
                );
            }
        }
        self.add_files(&mut text);
        printable(&text)
    }

    fn dependency_lines(&self) -> Vec<String> {
        let versions = |tree: &Tree| {
            let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for package in tree.distinct().filter(|package| !package.path.is_empty()) {
                let versions = all.entry(package.name.clone()).or_default();
                versions.insert(package.version.clone());
            }
            all
        };
        let before = self.old_tree.map(versions).unwrap_or_default();
        let after = versions(self.new_tree);
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let list = |set: Option<&BTreeSet<String>>| {
            set.map(|set| set.iter().cloned().collect::<Vec<_>>().join(", "))
        };
        let lines = names.into_iter().filter_map(|name| {
            match (list(before.get(name)), list(after.get(name))) {
                (None, Some(new)) => Some(format!("+ {name} {new}")),
                (Some(old), None) => Some(format!("- {name} {old}")),
                (Some(old), Some(new)) if old != new => Some(format!("{name} {old} -> {new}")),
                _ => None,
            }
        });
        lines.collect()
    }

    fn add_files(&self, text: &mut String) {
        let [before, after] = [self.old, self.new].map(files);
        let names: BTreeSet<&PathBuf> = before.iter().chain(&after).collect();
        let mut diffs = String::new();
        let mut lines = 0;
        let mut left_out = 0;
        for name in names {
            let (old, new) = (self.old.join(name), self.new.join(name));
            let mark = match (before.contains(name), after.contains(name)) {
                (true, true) if same(&old, &new) => continue,
                (true, true) => 'M',
                (true, false) => 'D',
                _ => 'A',
            };
            let _ = writeln!(text, "  {mark} {}", name.display());
            let (Some(old), Some(new)) = (readable(&old), readable(&new)) else {
                left_out += 1;
                continue;
            };
            let diff = TextDiff::from_lines(&old, &new);
            let name = name.to_string_lossy();
            let unified = diff.unified_diff().header(&name, &name).to_string();
            let count = unified.lines().count();
            match lines + count <= MAX_LINES {
                true => diffs += &unified,
                false => left_out += 1,
            }
            lines = (lines + count).min(MAX_LINES);
        }
        *text += &diffs;
        if left_out > 0 {
            let _ = writeln!(
                text,
                "  {left_out} files are not shown line by line: they are large or no text"
            );
        }
    }
}

/// Returns the differences of members that decide what runs.
fn manifest_lines(before: &Value, after: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for member in [
        "version",
        "main",
        "bin",
        "pi",
        "scripts",
        "dependencies",
        "optionalDependencies",
        "peerDependencies",
    ] {
        compare(member, &before[member], &after[member], &mut lines);
    }
    lines
}

fn compare(name: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let (old, new) = (&before[key], &after[key]);
                compare(&format!("{name}.{key}"), old, new, lines);
            }
        }
        (Value::Null, new) => lines.push(format!("+ {name}: {new}")),
        (old, Value::Null) => lines.push(format!("- {name}: {old}")),
        (old, new) => lines.push(format!("{name}: {old} -> {new}")),
    }
}

fn manifest(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("package.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the files of a package itself, relative to its folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(current) = pending.pop() {
        let entries = fs::read_dir(&current).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    if name != "node_modules" && name != ".git" {
                        pending.push(path);
                    }
                }
                _ if found.len() < MAX_FILES => {
                    found.insert(path.strip_prefix(folder).unwrap_or(&path).to_owned());
                }
                _ => return found,
            }
        }
    }
    found
}

fn same(old: &Path, new: &Path) -> bool {
    let length = |path: &Path| fs::symlink_metadata(path).ok().map(|meta| meta.len());
    length(old) == length(new) && fs::read(old).ok() == fs::read(new).ok()
}

/// Returns the text of a file; empty if it is missing, `None` if it is no text or too large.
fn readable(path: &Path) -> Option<String> {
    match fs::symlink_metadata(path) {
        Err(_) => Some(String::new()),
        Ok(meta) if !meta.is_file() || meta.len() > MAX_FILE_BYTES => None,
        Ok(_) => fs::read_to_string(path)
            .ok()
            .filter(|text| !text.contains('\0')),
    }
}
