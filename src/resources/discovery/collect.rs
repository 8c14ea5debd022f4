//! Finds the resources of each kind in a folder.

use pi_base::nearest;
use pi_base::regular_file;
use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::SearchLog;
use super::listing::{IgnoreRules, is_missing, list};
use crate::diagnostic::Diagnostic;
use crate::paths::ResourceKind;
use pi_base::normalize;

/// Layout of a folder of skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SkillLayout {
    /// Files `*.md` at the top are skills, too.
    Pi,
    /// Only folders with a `SKILL.md` are skills, as in `.agents/skills`.
    Agents,
}

/// Returns the resources of a path that a user or a manifest names: the file itself, or the
/// resources in the folder.
pub(crate) fn collect_path(path: &Path, kind: ResourceKind, log: &mut SearchLog) -> Vec<PathBuf> {
    log.look_up(path);
    if path.is_dir() {
        collect_dir(path, kind, log)
    } else {
        vec![path.to_owned()]
    }
}

/// Returns the resources in a folder of that kind, as packages and settings name them.
pub fn collect_dir(dir: &Path, kind: ResourceKind, log: &mut SearchLog) -> Vec<PathBuf> {
    match kind {
        ResourceKind::Extensions => extensions(dir, log),
        ResourceKind::Skills => skills(dir, SkillLayout::Pi, log),
        ResourceKind::Prompts => files_below(dir, "md", log),
        ResourceKind::Themes => files_below(dir, "json", log),
    }
}

/// Returns the files directly in `dir`, which is how `prompts` and `themes` of a root are read.
pub(crate) fn files_in(dir: &Path, extension: &str, log: &mut SearchLog) -> Vec<PathBuf> {
    if is_missing(dir, log) {
        return Vec::new();
    }
    let rules = IgnoreRules::default().descend(dir, log);
    let entries = list(dir, &rules, log).into_iter();
    let files = entries.filter(|entry| entry.is_file_with(extension));
    files.map(|entry| entry.path).collect()
}

/// Returns the extensions in a folder: the folder itself if it is an extension, or else its
/// files and those of its subfolders that are extensions.
fn extensions(dir: &Path, log: &mut SearchLog) -> Vec<PathBuf> {
    if is_missing(dir, log) {
        return Vec::new();
    }
    if let Some(entries) = extension_entries(dir, log) {
        return entries;
    }
    let rules = IgnoreRules::default().descend(dir, log);
    let mut found = Vec::new();
    for entry in list(dir, &rules, log) {
        if entry.is_dir {
            found.extend(extension_entries(&entry.path, log).unwrap_or_default());
        } else if (entry.is_file_with("ts") || entry.is_file_with("js"))
            && may_be_extension(&entry.path)
        {
            found.push(entry.path);
        } else if OTHER_ENDINGS
            .iter()
            .any(|ending| entry.is_file_with(ending))
            && exports_default(&entry.path)
        {
            let message = format!(
                "{} is not loaded: only files that end in .ts or .js are extensions. Rename it, \
                 or import it from one",
                entry.path.display()
            );
            log.problems.push(Diagnostic::warning(&entry.path, message));
        }
    }
    found
}

/// Endings of modules that are no extensions.
const OTHER_ENDINGS: [&str; 6] = ["mts", "cts", "tsx", "jsx", "mjs", "cjs"];

/// Returns whether a module seems to be meant as an extension and not as a helper of one.
fn exports_default(path: &Path) -> bool {
    let text = regular_file::read_text(path).unwrap_or_default();
    text.contains("export default") || text.contains("module.exports =")
}

/// Returns whether a file by its name may be an extension: tests, configurations of tools and
/// declarations of types are not.
pub(super) fn may_be_extension(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
    let kind = stem
        .rsplit_once('.')
        .filter(|(before, _)| !before.is_empty());
    !matches!(kind, Some((_, "d" | "test" | "spec" | "config")))
}

/// Returns whether a file next to an extension is a test, which `pi test` runs.
pub fn is_test(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["ts", "js", "mts", "mjs"].iter().any(|ending| {
        let stem = name.strip_suffix(ending).unwrap_or_default();
        stem.strip_suffix(".test.")
            .is_some_and(|stem| !stem.is_empty())
    })
}

/// Returns the modules of a folder that is an extension: those in its manifest, or its index.
fn extension_entries(dir: &Path, log: &mut SearchLog) -> Option<Vec<PathBuf>> {
    let manifest = Manifest::read(dir, ResourceKind::Extensions, log).unwrap_or_default();
    let named = manifest.entries(ResourceKind::Extensions).unwrap_or(&[]);
    let mut existing = Vec::new();
    // An index file may appear.
    log.look_up(dir);
    for entry in named {
        let path = normalize(&dir.join(entry));
        log.look_up(&path);
        if path.exists() {
            existing.push(path);
            continue;
        }
        let file = dir.join("package.json");
        let message = format!(
            "{} names \"{entry}\" as an extension, which does not exist",
            file.display()
        );
        log.problems.push(Diagnostic::warning(&file, message));
    }
    if !existing.is_empty() {
        return Some(existing);
    }
    let mut indexes = ["index.ts", "index.js"].iter().map(|name| dir.join(name));
    let index = indexes.find(|path| path.exists())?;
    log.look_up(&index);
    Some(vec![index])
}

pub(crate) fn skills(dir: &Path, layout: SkillLayout, log: &mut SearchLog) -> Vec<PathBuf> {
    if is_missing(dir, log) {
        return Vec::new();
    }
    let mut walk = Walk::new(log);
    walk.skills(dir, &IgnoreRules::default(), layout == SkillLayout::Pi);
    walk.found
}

fn files_below(dir: &Path, extension: &str, log: &mut SearchLog) -> Vec<PathBuf> {
    let mut walk = Walk::new(log);
    walk.files(dir, &IgnoreRules::default(), extension);
    walk.found
}

/// Walks a folder, follows links and detects cycles.
struct Walk<'a> {
    found: Vec<PathBuf>,
    entered: HashSet<PathBuf>,
    log: &'a mut SearchLog,
}

impl<'a> Walk<'a> {
    fn new(log: &'a mut SearchLog) -> Self {
        Self {
            found: Vec::new(),
            entered: HashSet::new(),
            log,
        }
    }

    fn enter(&mut self, dir: &Path) -> bool {
        fs::canonicalize(dir).is_ok_and(|real| self.entered.insert(real))
    }

    fn files(&mut self, dir: &Path, rules: &IgnoreRules, extension: &str) {
        if !self.enter(dir) {
            return;
        }
        let rules = rules.descend(dir, self.log);
        for entry in list(dir, &rules, self.log) {
            if entry.is_dir {
                self.files(&entry.path, &rules, extension);
            } else if entry.is_file_with(extension) {
                self.found.push(entry.path);
            }
        }
    }

    fn skills(&mut self, dir: &Path, rules: &IgnoreRules, files_too: bool) {
        if !self.enter(dir) {
            return;
        }
        let rules = rules.descend(dir, self.log);
        let skill = dir.join("SKILL.md");
        if skill.is_file() && !rules.ignore(&skill, false) {
            self.found.push(skill);
            return;
        }
        for entry in list(dir, &rules, self.log) {
            if entry.is_dir {
                self.skills(&entry.path, &rules, false);
            } else if files_too && entry.is_file_with("md") {
                self.found.push(entry.path);
            }
        }
    }
}

/// Returns the errors in `pi` of a `package.json` with the kind of resource. Unknown members
/// may belong to other programs.
fn manifest_errors(pi: &Value) -> Vec<(ResourceKind, String)> {
    let Some(members) = pi.as_object() else {
        let like = "{ \"extensions\": [\"./index.ts\"] }";
        let error = format!("\"pi\" must be an object, such as {like}");
        return vec![(ResourceKind::Extensions, error)];
    };
    let names = ResourceKind::ALL.map(ResourceKind::name);
    let kind_of = |name: &str| {
        ResourceKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    };
    let error_in = |name: &str, value: &Value| {
        let Some(kind) = kind_of(name) else {
            let suggestion = nearest(name, &names);
            let suggestion = suggestion.filter(|suggestion| !members.contains_key(*suggestion))?;
            let error = format!("\"pi.{name}\" means nothing: is \"pi.{suggestion}\" meant?");
            return Some((kind_of(suggestion)?, error));
        };
        let Some(list) = value.as_array() else {
            let error = format!("\"pi.{name}\" must be a list of paths, such as [\"./{name}\"]");
            return Some((kind, error));
        };
        let index = list.iter().position(|entry| !entry.is_string())?;
        Some((kind, format!("\"pi.{name}[{index}]\" must be a path")))
    };
    let manifest_errors = members
        .iter()
        .filter_map(|(name, value)| error_in(name, value));
    manifest_errors.collect()
}

/// The `pi` object of a `package.json`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Manifest {
    lists: [Option<Vec<String>>; ResourceKind::ALL.len()],
}

impl Manifest {
    /// Reads the manifest; `None` if there is no `package.json` with a `pi` object. Reports
    /// errors about `kind`.
    pub(crate) fn read(dir: &Path, kind: ResourceKind, log: &mut SearchLog) -> Option<Self> {
        let path = dir.join("package.json");
        log.look_up(&path);
        let text = match regular_file::read_text(&path) {
            Ok(text) => text,
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidInput {
                    log.problems.push(Diagnostic::unreadable(&path, &error));
                }
                return None;
            }
        };
        let package: Value = match serde_json::from_str(&text) {
            Ok(package) => package,
            Err(error) => {
                let message = format!("{} is ignored: {error}", path.display());
                log.problems.push(Diagnostic::warning(&path, message));
                return None;
            }
        };
        let pi = package.get("pi")?;
        let own = manifest_errors(pi)
            .into_iter()
            .filter(|(of, _)| kind == *of);
        log.problems.extend(own.map(|(_, error)| {
            let message = format!("{}: {error}", path.display());
            Diagnostic::warning(&path, message)
        }));
        let pi = pi.as_object()?;
        let lists = ResourceKind::ALL.map(|kind| {
            let list = pi.get(kind.name())?.as_array()?;
            let entries = list.iter().filter_map(Value::as_str);
            Some(entries.map(str::to_owned).collect())
        });
        Some(Self { lists })
    }

    pub(crate) fn entries(&self, kind: ResourceKind) -> Option<&[String]> {
        let index = ResourceKind::ALL.iter().position(|other| *other == kind)?;
        self.lists[index].as_deref()
    }
}
