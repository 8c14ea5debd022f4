//! Files that may be loaded only with the contents that the program expects, because its user has
//! agreed to these contents. A file that was exchanged in the meantime is not loaded.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use sha2::{Digest, Sha256};

/// The expected files of one project.
#[derive(Clone, Debug, Default)]
pub struct ExpectedFiles {
    /// Canonical paths with SHA-256 in hexadecimal digits.
    pub files: HashMap<PathBuf, String>,
    /// Folders of which no other files are loaded, except for those in `node_modules`.
    pub folders: Vec<PathBuf>,
}

/// The projects of this process. Isolates of several sessions share them.
static PROJECTS: RwLock<Option<HashMap<PathBuf, ExpectedFiles>>> = RwLock::new(None);

/// Sets the expected files of a project; `None` if any contents may be loaded.
pub fn expect_files(project: &Path, expected: Option<ExpectedFiles>) {
    let mut projects = PROJECTS.write().unwrap_or_else(PoisonError::into_inner);
    let projects = projects.get_or_insert_default();
    match expected {
        Some(expected) => projects.insert(project.to_owned(), expected),
        None => projects.remove(project),
    };
}

/// Returns all expectations, for another process.
pub(crate) fn all() -> Vec<(PathBuf, ExpectedFiles)> {
    let projects = PROJECTS.read().unwrap_or_else(PoisonError::into_inner);
    let projects = projects.iter().flatten();
    projects
        .map(|(path, expected)| (path.clone(), expected.clone()))
        .collect()
}

/// Fails if another content of the file is expected.
pub(crate) fn check(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let projects = PROJECTS.read().unwrap_or_else(PoisonError::into_inner);
    let is_expected =
        projects
            .iter()
            .flatten()
            .all(|(_, expected)| match expected.files.get(path) {
                Some(sha256) => *sha256 == hex(&Sha256::digest(bytes)),
                None => !expected.covers(path),
            });
    match is_expected {
        true => Ok(()),
        false => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it is new or has changed since this folder was trusted, or a tool has changed it \
             (setting protectedPaths); /reload or a new start asks about it",
        )),
    }
}

/// Returns whether a path may lead to `real`. A link in a covered folder may lead only to
/// expected files.
pub(crate) fn may_lead(path: &Path, real: &Path) -> bool {
    let projects = PROJECTS.read().unwrap_or_else(PoisonError::into_inner);
    projects
        .iter()
        .flatten()
        .all(|(_, expected)| !expected.covers(path) || expected.files.contains_key(real))
}

impl ExpectedFiles {
    fn covers(&self, path: &Path) -> bool {
        let below = self
            .folders
            .iter()
            .filter_map(|folder| path.strip_prefix(folder).ok());
        let mut below = below.map(|below| below.components());
        below.any(|mut parts| !parts.any(|part| part.as_os_str() == "node_modules"))
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expected_contents_are_loaded() {
        let project = Path::new("/expected-files-test");
        let known = project.join("ext/a.ts");
        let folders = vec![project.join("ext")];
        let files = HashMap::from([(known.clone(), hex(&Sha256::digest("1")))]);
        expect_files(project, Some(ExpectedFiles { files, folders }));
        assert!(check(&known, b"1").is_ok());
        assert!(check(&known, b"2").is_err());
        assert!(check(&project.join("ext/b.ts"), b"1").is_err());
        assert!(check(&project.join("ext/node_modules/b.js"), b"1").is_ok());
        assert!(check(&project.join("extra.ts"), b"1").is_ok());
        assert!(may_lead(&project.join("ext/link.ts"), &known));
        assert!(!may_lead(
            &project.join("ext/link.ts"),
            Path::new("/elsewhere.ts")
        ));
        expect_files(project, None);
        assert!(check(&known, b"2").is_ok());
    }
}
