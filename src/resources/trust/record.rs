//! Records of what was trusted: one file a project in `~/.pi/agent/trust`, with the hashes of its files, and
//! the texts of these files, so that differences can be shown later. `trust.json` has the answer;
//! these files only bind it to contents.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pi_base::regular_file;
use serde::{Deserialize, Serialize};

use super::answers::replace;
use super::contents::{self, Contents};
use super::file_set::{FileRole, Files, ProjectFolder, digest, hash, hash_of, path_of};
use super::states;

/// Version of the format. A record of another version counts as damaged.
const VERSION: u32 = 2;
/// Longer files are not kept: a difference then has no text.
const MAX_TEXT: u64 = 256 * 1024;

#[derive(Clone, Debug)]
pub struct Record {
    pub folder: PathBuf,
    /// The digest of `files`.
    pub digest: String,
    /// The digest of the states of `files`; `None` if one may have changed right after it was
    /// read.
    pub states: Option<String>,
    /// The keys of imported files, which a walk through the project does not find.
    pub imports: Vec<String>,
    /// The keys of folders in which modules would find other files.
    pub folders: Vec<String>,
    /// When the contents were trusted or seen, in seconds of the Unix time.
    pub recorded_at: i64,
    /// Whether the user trusts later changes as well.
    pub trusts_changes: bool,
    pub files: Contents,
}

/// The first line of a record's file. The others have the files.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    version: u32,
    folder: PathBuf,
    digest: String,
    #[serde(default)]
    states: Option<String>,
    #[serde(default)]
    imports: Vec<String>,
    #[serde(default)]
    folders: Vec<String>,
    trusted_at: i64,
    #[serde(default)]
    trusts_changes: bool,
    /// Length of the other lines.
    length: usize,
}

impl Record {
    pub fn new(folder: &ProjectFolder, files: &Files, trusts_changes: bool) -> Self {
        let imports = files.iter();
        let imports = imports.filter(|(_, file)| file.role == FileRole::Import);
        let folders = files.values().flat_map(|file| &file.searched);
        let folders: BTreeSet<String> = folders.map(|folder| folder.key.clone()).collect();
        Self {
            folder: folder.path.clone(),
            digest: digest(files),
            states: states::digest_of_files(&folder.path, files),
            imports: imports.map(|(key, _)| key.clone()).collect(),
            folders: folders.into_iter().collect(),
            recorded_at: chrono::Utc::now().timestamp(),
            trusts_changes,
            files: Contents::from(files.clone()),
        }
    }

    /// Loads the record of a project. Returns `None` if it is missing, damaged, or of another
    /// project or version.
    pub fn load(agent_dir: &Path, folder: &Path) -> Option<Self> {
        Self::read(&path(agent_dir, folder), folder)
    }

    fn read(file: &Path, folder: &Path) -> Option<Self> {
        let text = regular_file::read_text(file).ok()?;
        let first = text.split('\n').next()?;
        let header: Header = serde_json::from_str(first).ok()?;
        if header.version != VERSION || header.folder != folder {
            return None;
        }
        let start = first.len() + 1;
        let files = Contents::of_lines(text, start, header.length)?;
        Some(Self {
            folder: header.folder,
            digest: header.digest,
            states: header.states,
            imports: header.imports,
            folders: header.folders,
            recorded_at: header.trusted_at,
            trusts_changes: header.trusts_changes,
            files,
        })
    }

    /// Returns whether a record exists, also one that cannot be read.
    pub fn exists(agent_dir: &Path, folder: &Path) -> bool {
        path(agent_dir, folder).exists()
    }

    /// Loads the record of what the last session has used.
    pub fn load_seen(agent_dir: &Path, folder: &Path) -> Option<Self> {
        Self::read(&path_of_seen(agent_dir, folder), folder)
    }

    /// Writes what this session uses, without texts: differences then have none.
    pub fn save_seen(&self, agent_dir: &Path) -> io::Result<()> {
        create_dir(&agent_dir.join("trust"))?;
        self.write(&path_of_seen(agent_dir, &self.folder))
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let lines = contents::lines_of(self.files.all())?;
        let header = Header {
            version: VERSION,
            folder: self.folder.clone(),
            digest: self.digest.clone(),
            states: self.states.clone(),
            imports: self.imports.clone(),
            folders: self.folders.clone(),
            trusted_at: self.recorded_at,
            trusts_changes: self.trusts_changes,
            length: lines.len(),
        };
        let mut text = serde_json::to_string(&header)?;
        text.push('\n');
        text += &lines;
        replace(file, text.as_bytes())
    }

    /// Writes the record and the texts that it needs.
    pub fn save(&self, agent_dir: &Path) -> io::Result<()> {
        let texts = texts_dir(agent_dir);
        create_dir(&texts)?;
        let before = Self::load(agent_dir, &self.folder);
        for (key, file) in self.files.all() {
            let kept = texts.join(&file.sha256);
            if let Some(path) = path_of(&self.folder, key)
                && !kept.exists()
                && let Ok(bytes) = regular_file::read_at_most(&path, MAX_TEXT)
                && hash_of(&path, &bytes) == file.sha256
            {
                replace(&kept, &bytes)?;
            }
        }
        self.write(&path(agent_dir, &self.folder))?;
        let needed: BTreeSet<&str> = self
            .files
            .all()
            .values()
            .map(|file| file.sha256.as_str())
            .collect();
        for file in before.iter().flat_map(|before| before.files.all().values()) {
            if !needed.contains(file.sha256.as_str()) {
                // Another project with the same file then has no text to compare with.
                let _ = fs::remove_file(texts.join(&file.sha256));
            }
        }
        Ok(())
    }

    pub fn remove(agent_dir: &Path, folder: &Path) {
        // A record that cannot be removed is replaced with the next answer.
        let _ = fs::remove_file(path(agent_dir, folder));
    }
}

/// Returns the text with this hash, if it was kept.
pub fn kept_text(agent_dir: &Path, sha256: &str) -> Option<String> {
    let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bytes = is_hash.then(|| fs::read(texts_dir(agent_dir).join(sha256)))?;
    String::from_utf8(bytes.ok()?).ok()
}

fn create_dir(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn path(agent_dir: &Path, folder: &Path) -> PathBuf {
    agent_dir
        .join("trust")
        .join(format!("{}.json", name_of(folder)))
}

fn path_of_seen(agent_dir: &Path, folder: &Path) -> PathBuf {
    agent_dir
        .join("trust")
        .join(format!("{}.seen.json", name_of(folder)))
}

fn name_of(folder: &Path) -> String {
    let mut name = hash(folder.as_os_str().as_bytes());
    name.truncate(32);
    name
}

fn texts_dir(agent_dir: &Path) -> PathBuf {
    agent_dir.join("trust/texts")
}
