//! The files of a project that can run or change the system prompt, with their contents' hashes.
//!
//! A walk through the project's folders gives the paths. Files that modules import from elsewhere
//! in the project join when their importers are read. Packages are represented by the settings
//! that name them, by lock files and by their entry files; `node_modules` is left out otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pi_base::regular_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::imports::imported_files;
use crate::discovery::{is_pattern, resources_of_package};
use crate::packages::PackageSource;
use crate::paths::{PROJECT_DIR_NAME, ResourceKind, expand_tilde, normalize};
use crate::settings::parse_text;

/// A project with more files than this is not looked through.
const MAX_FILES: usize = 20_000;
const MAX_FOLDER_DEPTH: usize = 32;
/// Prefix of the key of a path that is not Unicode.
const BYTES: &str = "bytes:";
/// Prefix of the key of a symbolic link. The file to which it leads has a key of its own.
const LINK: &str = "link:";

/// Extensions of files that are code.
const CODE: [&str; 19] = [
    "ts", "tsx", "mts", "cts", "js", "mjs", "cjs", "jsx", "node", "wasm", "sh", "bash", "zsh",
    "fish", "py", "rb", "pl", "ps1", "bat",
];

/// Settings of a project that neither run code nor change what the model gets.
const HARMLESS_SETTINGS: [&str; 18] = [
    "$schema",
    "theme",
    "quietStartup",
    "hideThinkingBlock",
    "collapseChangelog",
    "lastChangelogVersion",
    "doubleEscapeAction",
    "treeFilterMode",
    "editorPaddingX",
    "outputPad",
    "autocompleteMaxVisible",
    "showHardwareCursor",
    "terminal",
    "images",
    "markdown",
    "steeringMode",
    "followUpMode",
    "showCacheMissNotices",
];

/// The purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FileRole {
    Extension,
    /// A local package that the project's settings name, or the lock file of others.
    Package,
    SystemPrompt,
    Settings,
    Mcp,
    Skill,
    Prompt,
    /// A file that a module imports from elsewhere in the project.
    Import,
    /// A symbolic link; its hash is that of its target's path.
    Link,
}

/// Identifies the state of a file without reading it. The time of the last change of the inode
/// cannot be set by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState(u64, i64, i64, i64, i64, u64, u64);

impl FileState {
    fn from_metadata(found: &Metadata) -> Self {
        Self(
            found.len(),
            found.mtime(),
            found.mtime_nsec(),
            found.ctime(),
            found.ctime_nsec(),
            found.ino(),
            found.dev(),
        )
    }

    /// Returns whether the file could have been changed again without a difference, because it
    /// was changed within two seconds before `seconds` of the Unix time.
    fn is_recent(&self, seconds: i64) -> bool {
        self.3 + 2 > seconds
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    pub role: FileRole,
    pub sha256: String,
    /// Absent if the file may have changed right after it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<FileState>,
}

impl TrustedFile {
    /// Returns whether an unchanged file is recognized without reading it.
    pub(super) fn has_state(&self) -> bool {
        self.state.is_some() || self.role == FileRole::Link
    }
}

/// Files by their key, see [`key_of`].
pub type Files = BTreeMap<String, TrustedFile>;

/// The project has too many files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} has more than {MAX_FILES} files in {PROJECT_DIR_NAME} and .agents", .0.display())]
pub struct TooManyFiles(PathBuf);

/// A folder whose files need trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFolder {
    /// The canonical path.
    pub path: PathBuf,
    pub home: PathBuf,
    /// Whether this is the user's own folder of extensions, and not a project.
    is_own: bool,
}

impl ProjectFolder {
    pub fn new(home: &Path, project: &Path) -> Self {
        Self {
            path: canonical(project),
            home: canonical(home),
            is_own: false,
        }
    }

    /// The folder of the user's own extensions, which needs no trust. Its files are listed when
    /// they have changed.
    pub(super) fn of_user(home: &Path, agent_dir: &Path) -> Self {
        Self {
            path: canonical(&agent_dir.join("extensions")),
            home: canonical(home),
            is_own: true,
        }
    }

    pub fn config(&self) -> PathBuf {
        self.path.join(PROJECT_DIR_NAME)
    }

    /// Returns the files with their hashes.
    pub fn read(&self) -> Result<Files, TooManyFiles> {
        let mut walk = Walk::through(self)?;
        let mut files = Files::new();
        let mut queue: Vec<(PathBuf, FileRole)> =
            std::mem::take(&mut walk.files).into_iter().collect();
        let mut known: BTreeSet<PathBuf> = queue.iter().map(|(path, _)| path.clone()).collect();
        let now = chrono::Utc::now().timestamp();
        while let Some((path, role)) = queue.pop() {
            let Some((file, text)) = self.read_module(&path, role, now) else {
                continue;
            };
            files.insert(key_of(&self.path, &path), file);
            let imports = text.map(|text| imported_files(&path, &text));
            for import in imports.into_iter().flatten().map(|path| canonical(&path)) {
                let is_own = import.starts_with(&self.path) && !is_in_packages(&self.path, &import);
                if is_own && known.insert(import.clone()) {
                    queue.push((import, FileRole::Import));
                }
            }
            if files.len() > MAX_FILES {
                return Err(TooManyFiles(self.path.clone()));
            }
        }
        for (path, target) in walk.links {
            let file = TrustedFile {
                role: FileRole::Link,
                sha256: hash(target.as_os_str().as_bytes()),
                state: None,
            };
            files.insert(link_key(&self.path, &path), file);
        }
        Ok(files)
    }

    /// Returns the files that a walk finds, without reading them.
    pub fn names(&self) -> BTreeMap<PathBuf, FileRole> {
        // Files beyond the limit are of no interest in a list.
        Walk::through(self)
            .map(|walk| walk.files)
            .unwrap_or_default()
    }

    /// Returns whether the project has exactly `files`, without reading the contents of those
    /// whose state is known.
    pub fn is_unchanged(&self, files: &Files) -> bool {
        let Ok(walk) = Walk::through(self) else {
            return false;
        };
        let links = files.values().filter(|file| file.role == FileRole::Link);
        let imports = files.values().filter(|file| file.role == FileRole::Import);
        if files.len() != walk.files.len() + walk.links.len() + imports.count()
            || links.count() != walk.links.len()
        {
            return false;
        }
        let is_same_link = |(path, target): (&PathBuf, &PathBuf)| {
            let known = files.get(&link_key(&self.path, path));
            known.is_some_and(|known| known.sha256 == hash(target.as_os_str().as_bytes()))
        };
        let is_same = |path: &Path, known: &TrustedFile| match known.state {
            Some(state) => {
                fs::metadata(path).is_ok_and(|found| FileState::from_metadata(&found) == state)
            }
            None => self
                .read_file(path, known.role)
                .is_some_and(|found| found.sha256 == known.sha256),
        };
        let mut imported = files
            .iter()
            .filter(|(_, file)| file.role == FileRole::Import);
        walk.links.iter().all(is_same_link)
            && walk.files.keys().all(|path| {
                let known = files.get(&key_of(&self.path, path));
                known.is_some_and(|known| is_same(path, known))
            })
            && imported.all(|(key, known)| {
                path_of(&self.path, key).is_some_and(|path| is_same(&path, known))
            })
    }

    /// Reads one file; `None` if it is gone.
    pub(super) fn read_file(&self, path: &Path, role: FileRole) -> Option<TrustedFile> {
        let now = chrono::Utc::now().timestamp();
        self.read_module(path, role, now).map(|(file, _)| file)
    }

    /// Reads a file. The text is that of a module, which may import others. `None` for a file
    /// that is gone.
    fn read_module(
        &self,
        path: &Path,
        role: FileRole,
        now: i64,
    ) -> Option<(TrustedFile, Option<String>)> {
        let before = fs::metadata(path).ok()?;
        let bytes = match regular_file::read(path) {
            Ok(bytes) => bytes,
            Err(_) if !path.exists() => return None,
            // Loading it will fail as well.
            Err(error) => format!("cannot be read: {:?}", error.kind()).into_bytes(),
        };
        let sha256 = match role {
            FileRole::Settings => hash(&covered_settings(&bytes)),
            _ => hash(&bytes),
        };
        let state = FileState::from_metadata(&before);
        let is_settled =
            fs::metadata(path).is_ok_and(|after| FileState::from_metadata(&after) == state);
        let file = TrustedFile {
            role,
            sha256,
            state: (is_settled && !state.is_recent(now)).then_some(state),
        };
        let is_module = is_script(path)
            && matches!(
                role,
                FileRole::Extension | FileRole::Package | FileRole::Import
            );
        let text = is_module.then(|| String::from_utf8_lossy(&bytes).into_owned());
        Some((file, text))
    }
}

/// Returns the hash of a file's bytes as it is in [`TrustedFile`].
pub fn hash_of(path: &Path, bytes: &[u8]) -> String {
    let is_settings = path.ends_with(Path::new(PROJECT_DIR_NAME).join("settings.json"));
    match is_settings {
        true => hash(&covered_settings(bytes)),
        false => hash(bytes),
    }
}

/// Returns the text that stands for a settings file: its keys without those that are harmless.
fn covered_settings(bytes: &[u8]) -> Vec<u8> {
    let text = regular_file::decode_lossy(bytes);
    let Ok(mut object) = parse_text(&text) else {
        return bytes.to_vec();
    };
    object.retain(|key, _| !HARMLESS_SETTINGS.contains(&key.as_str()));
    // Order has no meaning.
    let sorted: BTreeMap<String, Value> = object.into_iter().collect();
    serde_json::to_vec(&sorted).unwrap_or_default()
}

/// The paths that a walk finds.
struct Walk<'a> {
    folder: &'a ProjectFolder,
    files: BTreeMap<PathBuf, FileRole>,
    links: BTreeMap<PathBuf, PathBuf>,
    visited: BTreeSet<PathBuf>,
}

impl<'a> Walk<'a> {
    fn through(folder: &'a ProjectFolder) -> Result<Self, TooManyFiles> {
        let mut walk = Self {
            folder,
            files: BTreeMap::new(),
            links: BTreeMap::new(),
            visited: BTreeSet::new(),
        };
        if folder.is_own {
            walk.folder(&folder.path, FileRole::Extension, MAX_FOLDER_DEPTH)?;
            return Ok(walk);
        }
        walk.config_folder()?;
        for skills in shared_skills(&folder.home, &folder.path) {
            walk.folder(&skills, FileRole::Skill, MAX_FOLDER_DEPTH)?;
        }
        Ok(walk)
    }

    fn config_folder(&mut self) -> Result<(), TooManyFiles> {
        let config = self.folder.config();
        if let Ok(target) = fs::read_link(&config) {
            self.links.insert(config.clone(), target);
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
        let Ok(text) = regular_file::read_text(config.join("settings.json")) else {
            return Ok(());
        };
        match parse_text(&text) {
            Ok(settings) => self.named_in(&settings),
            Err(_) => Ok(()),
        }
    }

    /// Adds the files that the project's settings name.
    fn named_in(&mut self, settings: &Map<String, Value>) -> Result<(), TooManyFiles> {
        let config = self.folder.config();
        let texts = |key: &str| {
            let list = settings.get(key).and_then(Value::as_array);
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect::<Vec<_>>()
        };
        for (kind, role) in ROLES {
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
        match path.is_dir() {
            true => self.folder(path, role, MAX_FOLDER_DEPTH),
            false => {
                self.file(path, role);
                Ok(())
            }
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
            self.links.insert(path.to_owned(), target);
        }
        if path.is_file() {
            self.insert(canonical(path), role);
        }
    }

    fn insert(&mut self, path: PathBuf, role: FileRole) {
        let first = self.files.entry(path).or_insert(role);
        *first = role.min(*first);
    }

    /// Adds the files in a folder that count for the role.
    fn folder(&mut self, folder: &Path, role: FileRole, depth: usize) -> Result<(), TooManyFiles> {
        let Ok(found) = fs::symlink_metadata(folder) else {
            return Ok(());
        };
        if found.is_symlink()
            && let Ok(target) = fs::read_link(folder)
        {
            self.links.insert(folder.to_owned(), target);
        }
        let folder = canonical(folder);
        if depth == 0 || !self.visited.insert(folder.clone()) {
            return Ok(());
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            if name == "node_modules" || name == ".git" {
                continue;
            }
            let path = folder.join(&name);
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() || kind.is_symlink() && path.is_dir() {
                self.folder(&path, role, depth - 1)?;
            } else if kind.is_symlink() {
                self.file(&path, role);
            } else if counts(&path, &name, role) {
                self.insert(path, role);
            }
            if self.files.len() + self.links.len() > MAX_FILES {
                return Err(TooManyFiles(self.folder.path.clone()));
            }
        }
        Ok(())
    }
}

/// The kinds of resource that can run or change the system prompt.
const ROLES: [(ResourceKind, FileRole); 3] = [
    (ResourceKind::Extensions, FileRole::Extension),
    (ResourceKind::Skills, FileRole::Skill),
    (ResourceKind::Prompts, FileRole::Prompt),
];

/// Returns whether a file in a folder of the role can run or change the system prompt. All files
/// of a skill count, because the model reads and runs them.
fn counts(path: &Path, name: &OsStr, role: FileRole) -> bool {
    match role {
        FileRole::Skill => true,
        FileRole::Prompt => path.extension().is_some_and(|ending| ending == "md"),
        _ => {
            name == "package.json"
                || has_ending(path, &CODE)
                || role == FileRole::Package && path.extension().is_some_and(|e| e == "md")
                || path.extension().is_none() && is_executable(path)
        }
    }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

fn is_script(path: &Path) -> bool {
    has_ending(path, &CODE[..8])
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| endings.contains(&ending))
}

/// Returns the sources in the setting `packages`.
pub(super) fn package_sources(settings: &Map<String, Value>) -> Vec<String> {
    let packages = settings.get("packages").and_then(Value::as_array);
    let packages = packages.into_iter().flatten();
    let sources =
        packages.filter_map(|package| package.as_str().or_else(|| package.get("source")?.as_str()));
    sources.map(str::to_owned).collect()
}

/// Returns the folders `.agents/skills` of a project, in it and above it, without the user's own.
pub(super) fn shared_skills(home: &Path, project: &Path) -> Vec<PathBuf> {
    let own = home.join(".agents/skills");
    let folders = project.ancestors().map(|dir| dir.join(".agents/skills"));
    folders.filter(|dir| *dir != own && dir.exists()).collect()
}

fn resolve(home: &Path, base: &Path, entry: &str) -> PathBuf {
    normalize(&base.join(expand_tilde(entry.trim(), home)))
}

/// Returns whether a path is below a `node_modules` of the project.
pub(super) fn is_in_packages(project: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(project).unwrap_or(path);
    below
        .components()
        .any(|part| part.as_os_str() == "node_modules")
}

/// Returns the key of a path: relative to the project with `./`, absolute for other files, and in
/// hexadecimal digits if the path is not Unicode. No two paths have the same key.
pub fn key_of(project: &Path, path: &Path) -> String {
    let (prefix, path) = match path.strip_prefix(project) {
        Ok(below) => ("./", below),
        Err(_) => ("", path),
    };
    match path.to_str() {
        Some(text) => format!("{prefix}{text}"),
        None => format!("{BYTES}{prefix}{}", to_hex(path.as_os_str().as_bytes())),
    }
}

fn link_key(project: &Path, path: &Path) -> String {
    format!("{LINK}{}", key_of(project, path))
}

/// Returns the path of a key.
pub fn path_of(project: &Path, key: &str) -> Option<PathBuf> {
    let key = key.strip_prefix(LINK).unwrap_or(key);
    let Some(bytes) = key.strip_prefix(BYTES) else {
        return Some(project.join(key.strip_prefix("./").unwrap_or(key)));
    };
    let (below, digits) = match bytes.strip_prefix("./") {
        Some(digits) => (true, digits),
        None => (false, bytes),
    };
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect();
    let path = PathBuf::from(OsString::from_vec(bytes?));
    Some(if below { project.join(path) } else { path })
}

/// Returns the digest of all files: of their number, and of length, text and hash of each.
pub fn digest(files: &Files) -> String {
    let mut hasher = Sha256::new();
    let mut add = |text: &str| {
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for (key, file) in files {
        add(key);
        add(&format!("{:?}", file.role));
        add(&file.sha256);
    }
    to_hex(&hasher.finalize())
}

pub(super) fn hash(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the canonical path, or the path itself if it does not exist.
pub(super) fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}
