//! `pi.lock`: what was installed of each source, exactly enough to install the same again. The
//! user's is in the agent folder, a project's beside its settings. The user's also records which
//! install scripts the user has allowed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use pi_base::regular_file;
use pi_npm::Tree;
use serde::{Deserialize, Serialize};

use super::PackageError;

const FORMAT: u32 = 1;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LockFile {
    lockfile_version: u32,
    /// By identity of the source, without its version.
    #[serde(default)]
    pub packages: BTreeMap<String, LockedSource>,
    /// Names of packages with the hashes of the archives whose install scripts may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allowed_scripts: BTreeMap<String, Vec<String>>,
    #[serde(skip)]
    path: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedSource {
    /// The source as the settings have it.
    pub source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    pub installed: DateTime<Utc>,
    /// The package and all that it depends on; empty if another program has installed it.
    #[serde(default)]
    pub tree: Tree,
}

impl LockFile {
    /// Reads a file; a missing one is empty.
    pub fn read(path: &Path) -> Result<Self, PackageError> {
        let wrong = |why: String| PackageError::Lock {
            path: path.to_owned(),
            why,
        };
        let text = match regular_file::read_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    lockfile_version: FORMAT,
                    path: path.to_owned(),
                    ..Self::default()
                });
            }
            Err(error) => return Err(wrong(error.to_string())),
        };
        let mut file: Self = serde_json::from_str(&text).map_err(|error| {
            wrong(format!(
                "{error}. Correct the file, or remove it to make a new one"
            ))
        })?;
        if file.lockfile_version != FORMAT {
            return Err(wrong(format!(
                "it has the format {}, this pi knows {FORMAT}. A newer pi has written it",
                file.lockfile_version
            )));
        }
        file.path = path.to_owned();
        Ok(file)
    }

    /// Replaces the file as a whole.
    pub fn write(&self) -> Result<(), PackageError> {
        let failed = |source| PackageError::Files {
            path: self.path.clone(),
            source,
        };
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|error| failed(io::Error::other(error)))?;
        text.push(b'\n');
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        io::Write::write_all(&mut file, &text).map_err(failed)?;
        share(&file).map_err(failed)?;
        file.persist(&self.path)
            .map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Returns whether the user has allowed the scripts of this archive.
    pub fn allows(&self, name: &str, integrity: &str) -> bool {
        let hashes = self.allowed_scripts.get(name);
        hashes.is_some_and(|hashes| hashes.iter().any(|hash| hash == integrity))
    }
}

/// Gives a temporary file the rights of a file that is committed.
#[cfg(unix)]
fn share(file: &tempfile::NamedTempFile) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn share(_file: &tempfile::NamedTempFile) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/pi.lock");
        let mut file = LockFile::read(&path).unwrap();
        let source = LockedSource {
            source: "npm:a@^1".to_owned(),
            version: Some("1.2.0".to_owned()),
            commit: None,
            integrity: Some("sha512-x".to_owned()),
            installed: Utc::now(),
            tree: Tree::default(),
        };
        file.packages.insert("npm:a".to_owned(), source.clone());
        let hashes = vec!["sha512-y".to_owned()];
        file.allowed_scripts.insert("b".to_owned(), hashes);
        file.write().unwrap();
        let file = LockFile::read(&path).unwrap();
        assert_eq!(file.packages["npm:a"], source);
        assert!(file.allows("b", "sha512-y"));
        assert!(!file.allows("b", "sha512-x") && !file.allows("a", "sha512-y"));
        for text in ["{", r#"{"lockfileVersion": 2}"#, "[]", "{}"] {
            fs::write(&path, text).unwrap();
            let error = LockFile::read(&path).unwrap_err().to_string();
            assert!(error.contains("pi.lock"), "{error}");
        }
    }
}
