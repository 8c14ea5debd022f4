//! Records of what was trusted: one file a project in `~/.pi/agent/trust`, with the hashes of its files, and
//! the texts of these files, so that differences can be shown later. `trust.json` has the answer;
//! these files only bind it to contents.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use pi_base::regular_file;
use serde::{Deserialize, Serialize};

use super::answers::replace;
use super::file_set::{Files, ProjectFolder, TrustedFile, digest, hash, hash_of, path_of};

const VERSION: u32 = 1;
/// Longer files are not kept: a difference then has no text.
const MAX_TEXT: u64 = 256 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    version: u32,
    pub folder: PathBuf,
    /// The digest of `files`.
    pub digest: String,
    /// When the contents were trusted, in seconds of the Unix time.
    pub trusted_at: i64,
    /// Whether the user trusts later changes as well.
    #[serde(default)]
    pub trusts_changes: bool,
    pub files: Files,
}

impl Record {
    pub fn new(folder: &ProjectFolder, files: Files, trusts_changes: bool) -> Self {
        Self {
            version: VERSION,
            folder: folder.path.clone(),
            digest: digest(&files),
            trusted_at: chrono::Utc::now().timestamp(),
            trusts_changes,
            files,
        }
    }

    /// Loads the record of a project. A damaged one counts as absent only if it is no record of
    /// this project; otherwise its contents would differ anyway.
    pub fn load(agent_dir: &Path, folder: &Path) -> Option<Self> {
        let text = regular_file::read_text(path(agent_dir, folder)).ok()?;
        let record: Self = serde_json::from_str(&text).ok()?;
        (record.version == VERSION && record.folder == folder).then_some(record)
    }

    /// Returns whether the state of each file is known.
    pub fn is_complete(&self) -> bool {
        self.files.values().all(TrustedFile::has_state)
    }

    /// Returns whether a record exists, also a damaged one.
    pub fn exists(agent_dir: &Path, folder: &Path) -> bool {
        path(agent_dir, folder).exists()
    }

    /// Writes the record without texts: differences then have none.
    pub fn save_hashes(&self, agent_dir: &Path) -> io::Result<()> {
        let folder = agent_dir.join("trust");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let text = serde_json::to_string(self)?;
        replace(&path(agent_dir, &self.folder), text.as_bytes())
    }

    /// Writes the record and the texts that it needs.
    pub fn save(&self, agent_dir: &Path) -> io::Result<()> {
        let texts = texts_dir(agent_dir);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&texts)?;
        let before = Self::load(agent_dir, &self.folder);
        for (key, file) in &self.files {
            let kept = texts.join(&file.sha256);
            if let Some(path) = path_of(&self.folder, key)
                && !kept.exists()
                && let Ok(bytes) = regular_file::read_at_most(&path, MAX_TEXT)
                && hash_of(&path, &bytes) == file.sha256
            {
                replace(&kept, &bytes)?;
            }
        }
        self.save_hashes(agent_dir)?;
        let needed: BTreeSet<&str> = self
            .files
            .values()
            .map(|file| file.sha256.as_str())
            .collect();
        for file in before.iter().flat_map(|before| before.files.values()) {
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

fn path(agent_dir: &Path, folder: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let name = hash(folder.as_os_str().as_bytes());
    agent_dir
        .join("trust")
        .join(format!("{}.json", &name[..32]))
}

fn texts_dir(agent_dir: &Path) -> PathBuf {
    agent_dir.join("trust/texts")
}
