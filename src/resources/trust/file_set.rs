//! The files of a project that can run or change the system prompt, with their contents' hashes.
//!
//! A walk through the project's folders gives the paths. Files that modules import from elsewhere
//! in the project join when their importers are read. Packages are represented by the settings
//! that name them, by lock files and by their entry files; `node_modules` is left out otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use pi_base::{FileState, regular_file};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::imports::Imports;
use super::record::Record;
use super::states;
use super::walk::{Walk, is_script};
use crate::paths::PROJECT_DIR_NAME;
use crate::settings::parse_text;

/// A project with more files than this is not looked through.
pub(super) const MAX_FILES: usize = 20_000;
/// Prefix of the key of a path that is not Unicode.
const BYTES: &str = "bytes:";
/// Prefix of the key of a symbolic link. The file to which it leads has a key of its own.
const LINK: &str = "link:";

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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFile {
    pub role: FileRole,
    pub sha256: String,
    /// Absent if the file may have changed right after it was read.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "states::stored_state"
    )]
    pub(super) state: Option<FileState>,
    /// Folders in which another file may appear that this module would load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) searched: Vec<SearchedFolder>,
}

/// A folder with the state that it had before it was searched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SearchedFolder {
    pub key: String,
    #[serde(default, with = "states::stored_state")]
    pub state: Option<FileState>,
}

/// Files by their key, see [`key_of`].
pub type Files = BTreeMap<String, TrustedFile>;

/// The project has too many files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} has more than {MAX_FILES} files in {PROJECT_DIR_NAME} and .agents", .0.display())]
pub struct TooManyFiles(pub(super) PathBuf);

/// A folder whose files need trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFolder {
    /// The canonical path.
    pub path: PathBuf,
    pub home: PathBuf,
    /// The agent folder, if this is the user's own folder of extensions and not a project.
    agent_dir: Option<PathBuf>,
}

impl ProjectFolder {
    pub fn new(home: &Path, project: &Path) -> Self {
        Self {
            path: canonical(project),
            home: canonical(home),
            agent_dir: None,
        }
    }

    /// The folder of the user's own extensions, which needs no trust. Its files, and those that the
    /// user's settings name, are listed when they have changed.
    pub(super) fn of_user(home: &Path, agent_dir: &Path) -> Self {
        Self {
            path: canonical(&agent_dir.join("extensions")),
            home: canonical(home),
            agent_dir: Some(agent_dir.to_owned()),
        }
    }

    pub(super) fn is_own(&self) -> bool {
        self.agent_dir.is_some()
    }

    /// Returns the folder of the settings.
    pub fn config(&self) -> PathBuf {
        match &self.agent_dir {
            Some(agent_dir) => agent_dir.clone(),
            None => self.path.join(PROJECT_DIR_NAME),
        }
    }

    /// Returns the files with their hashes.
    pub fn read(&self) -> Result<Files, TooManyFiles> {
        let found = Walk::through(self)?;
        let mut files = Files::new();
        let mut queue: Vec<(PathBuf, FileRole)> = found.files().collect();
        let mut known: BTreeSet<PathBuf> = queue.iter().map(|(path, _)| path.clone()).collect();
        let now = chrono::Utc::now().timestamp();
        while let Some((path, role)) = queue.pop() {
            let Some((mut file, text)) = self.read_module(&path, role, now) else {
                continue;
            };
            let imports = text.map(|text| Imports::of(&path, &text, &self.path));
            let imports = imports.unwrap_or_default();
            file.searched = self.searched(&imports, &found.roots, now);
            files.insert(key_of(&self.path, &path), file);
            for import in imports.files.iter().map(|path| canonical(path)) {
                if self.is_own_file(&import, &found.roots) && known.insert(import.clone()) {
                    queue.push((import, FileRole::Import));
                }
            }
            if files.len() > MAX_FILES {
                return Err(TooManyFiles(self.path.clone()));
            }
        }
        for (path, target) in found.links {
            let file = TrustedFile {
                role: FileRole::Link,
                sha256: hash(target.as_os_str().as_bytes()),
                state: None,
                searched: Vec::new(),
            };
            files.insert(link_key(&self.path, &path), file);
        }
        Ok(files)
    }

    /// Returns the files that a walk finds, sorted by folder and name, without looking at them.
    pub fn names(&self) -> Vec<(PathBuf, FileRole)> {
        // Files beyond the limit are of no interest in a list.
        let found = Walk::through(self).unwrap_or_default();
        found.files().collect()
    }

    /// Returns whether the project is as it was when the record was made, without reading contents
    /// of files. `false` if that cannot be told without reading.
    pub fn is_unchanged_since(&self, record: &Record) -> bool {
        let Some(states) = &record.states else {
            return false;
        };
        let Ok(mut found) = Walk::through(self) else {
            return false;
        };
        for import in &record.imports {
            if let Some(path) = path_of(&self.path, import) {
                found.insert(&path, FileRole::Import);
            }
        }
        found.sort();
        let folders = record.folders.iter();
        let folders = folders.filter_map(|key| path_of(&self.path, key)).collect();
        states::digest_of_listing(&found, folders).is_some_and(|digest| digest == *states)
    }

    /// Returns whether a file that a module imports counts.
    fn is_own_file(&self, path: &Path, roots: &[PathBuf]) -> bool {
        let mut roots = roots.iter().chain([&self.path]);
        roots.any(|root| path.starts_with(root) && !is_in_packages(root, path))
    }

    fn searched(&self, imports: &Imports, roots: &[PathBuf], now: i64) -> Vec<SearchedFolder> {
        let folders = imports.folders.iter().map(|folder| canonical(folder));
        let folders = folders.filter(|folder| self.is_own_file(folder, roots));
        folders
            .map(|folder| {
                let found = fs::metadata(&folder).ok();
                let state = found.map(|found| FileState::from_metadata(&found));
                SearchedFolder {
                    key: key_of(&self.path, &folder),
                    state: state.filter(|state| !states::is_recent(state, now)),
                }
            })
            .collect()
    }

    /// Reads one file; `None` if it is gone.
    pub(super) fn read_file(&self, path: &Path, role: FileRole) -> Option<TrustedFile> {
        let now = chrono::Utc::now().timestamp();
        let (mut file, text) = self.read_module(path, role, now)?;
        if let Some(text) = text {
            file.searched = self.searched(&Imports::of(path, &text, &self.path), &[], now);
        }
        Some(file)
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
            state: (is_settled && !states::is_recent(&state, now)).then_some(state),
            searched: Vec::new(),
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

pub(super) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the canonical path, or the path itself if it does not exist.
pub fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}
