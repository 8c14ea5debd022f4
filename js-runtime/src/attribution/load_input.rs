//! Inputs of a load: what it read or looked for, as questions about files. A later load differs
//! only if the answer to one of them does.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use js_runtime_ext::{directory, index, probe};
use pi_base::regular_file;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum InputKind {
    /// The bytes of a file.
    Content,
    /// The file that is loaded for the path of an extension, without links.
    Entry,
    /// The file to which an imported path leads, without links.
    Import,
    /// The file to which an imported path with a slash at its end leads, without links.
    Folder,
    /// The file or folder that a path names, without links.
    Presence,
    /// The names in a folder.
    Listing,
}

/// A question about the file system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoadInput {
    pub kind: InputKind,
    pub path: PathBuf,
}

/// The answer to a [`LoadInput`]: the digest of the bytes, or of the path without links, that were
/// found; `None` if nothing was.
pub type InputAnswer = Option<u64>;

impl LoadInput {
    pub fn new(kind: InputKind, path: impl Into<PathBuf>) -> Self {
        Self {
            kind,
            path: path.into(),
        }
    }

    /// Asks the question again.
    pub fn answer(&self) -> InputAnswer {
        if self.kind == InputKind::Content {
            let bytes = regular_file::read(&self.path).ok()?;
            return Some(digest(&bytes));
        }
        if self.kind == InputKind::Listing {
            let entries = std::fs::read_dir(&self.path).ok()?;
            let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
            let mut names: Vec<_> = names.map(OsString::into_encoded_bytes).collect();
            names.sort_unstable();
            return Some(digest(&names.join(&0)));
        }
        let found = self.find()?;
        let real = found.canonicalize().unwrap_or(found);
        Some(path_digest(&real))
    }

    /// Returns the file that is found now, before links are followed.
    pub fn find(&self) -> Option<PathBuf> {
        let path = &self.path;
        match self.kind {
            InputKind::Entry => entry_file(path),
            InputKind::Import => probe(path),
            InputKind::Folder => directory(path).or_else(|| probe(path)),
            InputKind::Content | InputKind::Presence | InputKind::Listing => {
                path.exists().then(|| path.clone())
            }
        }
    }
}

/// Returns the file that is loaded for the path of an extension. In its folder, an index file comes
/// before `main`.
pub(crate) fn entry_file(path: &Path) -> Option<PathBuf> {
    let own_index = if path.is_dir() { index(path) } else { None };
    own_index.or_else(|| probe(path))
}

pub(crate) fn digest(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

pub(crate) fn path_digest(path: &Path) -> u64 {
    digest(path.as_os_str().as_encoded_bytes())
}

/// Returns true for a path within an installed package. The folder of a package and its
/// `package.json` are not within it.
pub(crate) fn is_within_package(path: &Path) -> bool {
    let names: Vec<&OsStr> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    let Some(packages) = names.iter().rposition(|name| *name == "node_modules") else {
        return false;
    };
    let inside = &names[packages + 1..];
    let is_scoped = (inside.first()).is_some_and(|name| name.as_encoded_bytes()[0] == b'@');
    let of_package = if is_scoped { 2 } else { 1 };
    let is_manifest = inside.last().is_some_and(|name| *name == "package.json");
    inside.len() > of_package + usize::from(is_manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_of_packages_are_recognized() {
        for (path, within) in [
            ("/x/node_modules", false),
            ("/x/node_modules/a", false),
            ("/x/node_modules/a/package.json", false),
            ("/x/node_modules/a/index.js", true),
            ("/x/node_modules/a/lib/package.json", true),
            ("/x/node_modules/@s", false),
            ("/x/node_modules/@s/a", false),
            ("/x/node_modules/@s/a/package.json", false),
            ("/x/node_modules/@s/a/lib", true),
            ("/x/node_modules/a/node_modules/b", false),
            ("/x/lib/package.json", false),
            ("/x/lib/a.ts", false),
        ] {
            assert_eq!(is_within_package(Path::new(path)), within, "{path}");
        }
    }

    #[test]
    fn answers_follow_the_files() {
        let folder = std::env::temp_dir().join(format!("js-inputs-{}", std::process::id()));
        _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("one")).unwrap();
        std::fs::create_dir_all(folder.join("two")).unwrap();
        std::fs::write(folder.join("one/a.ts"), "1").unwrap();
        std::fs::write(folder.join("two/a.ts"), "1").unwrap();
        let link = folder.join("link");
        std::os::unix::fs::symlink(folder.join("one"), &link).unwrap();
        let content = LoadInput::new(InputKind::Content, link.join("a.ts"));
        let import = LoadInput::new(InputKind::Import, link.join("a"));
        let before = (content.answer(), import.answer());
        assert_eq!(before.0, Some(digest(b"1")));
        assert_eq!(import.find(), Some(link.join("a.ts")));
        std::fs::remove_file(&link).unwrap();
        assert_eq!((content.answer(), import.answer()), (None, None));
        std::os::unix::fs::symlink(folder.join("two"), &link).unwrap();
        assert_eq!(content.answer(), before.0);
        assert_ne!(import.answer(), before.1, "the link leads elsewhere");
        // A nearer file wins.
        std::fs::write(folder.join("two/a.js"), "2").unwrap();
        assert_eq!(import.find(), Some(link.join("a.js")));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
