//! The walk through the places of a project whose files can run or change the system prompt. It
//! reads folders and the settings, and no other file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pi_base::regular_file;
use serde_json::{Map, Value};

use super::file_set::{
    FileRole, MAX_FILES, ProjectFolder, TooManyFiles, canonical, package_sources, shared_skills,
};
use crate::discovery::{is_pattern, resources_of_package};
use crate::packages::PackageSource;
use crate::paths::{ResourceKind, expand_tilde};
use crate::settings::parse_text;
use pi_base::normalize;

const MAX_FOLDER_DEPTH: usize = 32;

/// Extensions of files that are code.
const CODE: [&str; 19] = [
    "ts", "tsx", "mts", "cts", "js", "mjs", "cjs", "jsx", "node", "wasm", "sh", "bash", "zsh",
    "fish", "py", "rb", "pl", "ps1", "bat",
];

/// The kinds of resource that can run or change the system prompt.
const ROLES: [(ResourceKind, FileRole); 3] = [
    (ResourceKind::Extensions, FileRole::Extension),
    (ResourceKind::Skills, FileRole::Skill),
    (ResourceKind::Prompts, FileRole::Prompt),
];

/// Names of files by their canonical folder. A path is only built where it is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    pub folders: BTreeMap<PathBuf, Vec<(OsString, FileRole)>>,
    /// Symbolic links with their targets.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Folders of code that the user's settings name, whose imports count as well.
    pub roots: Vec<PathBuf>,
}

impl Listing {
    /// Adds a file by its canonical path.
    pub fn insert(&mut self, path: &Path, role: FileRole) {
        if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
            let names = self.folders.entry(folder.to_owned()).or_default();
            names.push((name.to_owned(), role));
        }
    }

    /// Sorts the names. A file that was found for several purposes keeps the first one.
    pub fn sort(&mut self) {
        for names in self.folders.values_mut() {
            names.sort_unstable();
            names.dedup_by(|next, kept| next.0 == kept.0);
        }
    }

    /// Returns the paths of all files, sorted by folder and name.
    pub fn files(&self) -> impl Iterator<Item = (PathBuf, FileRole)> {
        self.folders.iter().flat_map(|(folder, names)| {
            let names = names.iter();
            names.map(|(name, role)| (folder.join(name), *role))
        })
    }
}

/// A walk, and what it has found so far.
pub(super) struct Walk<'a> {
    folder: &'a ProjectFolder,
    found: Listing,
    count: usize,
    visited: BTreeSet<PathBuf>,
}

impl<'a> Walk<'a> {
    /// Returns all files and links, sorted.
    pub fn through(folder: &'a ProjectFolder) -> Result<Listing, TooManyFiles> {
        let mut walk = Self {
            folder,
            found: Listing::default(),
            count: 0,
            visited: BTreeSet::new(),
        };
        if folder.is_own() {
            walk.folder(&folder.path, FileRole::Extension, MAX_FOLDER_DEPTH)?;
            walk.named_in_settings(&ROLES[..1])?;
        } else {
            walk.config_folder()?;
            for skills in shared_skills(&folder.home, &folder.path) {
                walk.folder(&skills, FileRole::Skill, MAX_FOLDER_DEPTH)?;
            }
        }
        walk.found.sort();
        Ok(walk.found)
    }

    fn config_folder(&mut self) -> Result<(), TooManyFiles> {
        let config = self.folder.config();
        if let Ok(target) = fs::read_link(&config) {
            self.found.links.insert(config.clone(), target);
        }
        for (name, role) in [
            ("settings.json", FileRole::Settings),
            ("mcp.json", FileRole::Mcp),
            ("SYSTEM.md", FileRole::SystemPrompt),
            ("APPEND_SYSTEM.md", FileRole::SystemPrompt),
            ("pi.lock", FileRole::Package),
            ("npm/package.json", FileRole::Package),
            ("npm/package-lock.json", FileRole::Package),
        ] {
            self.file(&config.join(name), role);
        }
        for (kind, role) in ROLES {
            self.folder(&config.join(kind.name()), role, MAX_FOLDER_DEPTH)?;
        }
        self.named_in_settings(&ROLES)
    }

    fn named_in_settings(
        &mut self,
        roles: &[(ResourceKind, FileRole)],
    ) -> Result<(), TooManyFiles> {
        let text = regular_file::read_text(self.folder.config().join("settings.json"));
        match text.ok().and_then(|text| parse_text(&text).ok()) {
            Some(settings) => self.named_in(&settings, roles),
            None => Ok(()),
        }
    }

    /// Adds the files that the settings name.
    fn named_in(
        &mut self,
        settings: &Map<String, Value>,
        roles: &[(ResourceKind, FileRole)],
    ) -> Result<(), TooManyFiles> {
        let config = self.folder.config();
        let texts = |key: &str| {
            let list = settings.get(key).and_then(Value::as_array);
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect::<Vec<_>>()
        };
        for &(kind, role) in roles {
            for entry in texts(kind.name()).iter().filter(|entry| !is_pattern(entry)) {
                self.path(&resolve(&self.folder.home, &config, entry), role)?;
            }
        }
        for source in package_sources(settings) {
            match PackageSource::parse(&source) {
                Ok(PackageSource::Local(path)) => {
                    self.path(
                        &resolve(&self.folder.home, &config, &path),
                        FileRole::Package,
                    )?;
                }
                Ok(PackageSource::Npm(npm)) => {
                    self.package(&config.join("npm/node_modules").join(&npm.name))?;
                }
                Ok(PackageSource::Git(git)) => {
                    self.package(&config.join("git").join(&git.host).join(&git.path))?;
                }
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Adds the manifest and the entry files of an installed package.
    fn package(&mut self, root: &Path) -> Result<(), TooManyFiles> {
        if !root.exists() {
            return Ok(());
        }
        self.add_root(root);
        self.file(&root.join("package.json"), FileRole::Package);
        for entry in resources_of_package(root, ResourceKind::Extensions) {
            match entry.is_dir() {
                true => self.folder(&entry, FileRole::Package, 2)?,
                false => self.file(&entry, FileRole::Package),
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &Path, role: FileRole) -> Result<(), TooManyFiles> {
        self.add_root(path);
        match path.is_dir() {
            true => self.folder(path, role, MAX_FOLDER_DEPTH),
            false => {
                self.file(path, role);
                Ok(())
            }
        }
    }

    fn add_root(&mut self, path: &Path) {
        if self.folder.is_own() {
            let path = canonical(path);
            let root = match path.is_dir() {
                true => Some(path.as_path()),
                false => path.parent(),
            };
            self.found.roots.extend(root.map(Path::to_path_buf));
        }
    }

    /// Adds a file, if it exists. A link is added, too.
    fn file(&mut self, path: &Path, role: FileRole) {
        let Ok(found) = fs::symlink_metadata(path) else {
            return;
        };
        if found.is_symlink()
            && let Ok(target) = fs::read_link(path)
        {
            self.found.links.insert(path.to_owned(), target);
            self.count += 1;
        }
        if path.is_file() {
            self.found.insert(&canonical(path), role);
            self.count += 1;
        }
    }

    /// Adds the files in a folder that count for the role.
    fn folder(&mut self, folder: &Path, role: FileRole, depth: usize) -> Result<(), TooManyFiles> {
        let Ok(found) = fs::symlink_metadata(folder) else {
            return Ok(());
        };
        if found.is_symlink()
            && let Ok(target) = fs::read_link(folder)
        {
            self.found.links.insert(folder.to_owned(), target);
            self.count += 1;
        }
        let folder = canonical(folder);
        if depth == 0 || !self.visited.insert(folder.clone()) {
            return Ok(());
        }
        let mut names = Vec::new();
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            if name == "node_modules" || name == ".git" {
                continue;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() || kind.is_symlink() {
                let path = folder.join(&name);
                match kind.is_dir() || path.is_dir() {
                    true => self.folder(&path, role, depth - 1)?,
                    false => self.file(&path, role),
                }
            } else if counts(&folder, &name, role) {
                names.push((name, role));
                self.count += 1;
            }
            if self.count > MAX_FILES {
                return Err(TooManyFiles(self.folder.path.clone()));
            }
        }
        if !names.is_empty() {
            self.found
                .folders
                .entry(folder)
                .or_default()
                .append(&mut names);
        }
        Ok(())
    }
}

/// Returns whether a file in a folder of the role can run or change the system prompt. All files
/// of a skill count, because the model reads and runs them.
fn counts(folder: &Path, name: &OsStr, role: FileRole) -> bool {
    let path = Path::new(name);
    match role {
        FileRole::Skill => true,
        FileRole::Prompt => path.extension().is_some_and(|ending| ending == "md"),
        _ => {
            name == "package.json"
                || has_ending(path, &CODE)
                || role == FileRole::Package && path.extension().is_some_and(|e| e == "md")
                || path.extension().is_none() && is_executable(&folder.join(name))
        }
    }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

/// Returns whether a file is a module that may import others.
pub(super) fn is_script(path: &Path) -> bool {
    has_ending(path, &CODE[..8])
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| endings.contains(&ending))
}

fn resolve(home: &Path, base: &Path, entry: &str) -> PathBuf {
    normalize(&base.join(expand_tilde(entry.trim(), home)))
}
