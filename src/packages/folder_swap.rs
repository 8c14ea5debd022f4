//! Replaces a folder by a new one such that after any failure a working folder exists.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// Prefix of folders that are not complete yet.
const STAGING_PREFIX: &str = ".installing-";

/// Creates a folder for new content next to its final place, because a rename cannot cross file
/// systems. Removes leftovers of processes that were killed.
pub(super) fn staging(root: &Path) -> io::Result<TempDir> {
    fs::create_dir_all(root)?;
    for entry in fs::read_dir(root)?.flatten() {
        let name = entry.file_name();
        if name
            .as_encoded_bytes()
            .starts_with(STAGING_PREFIX.as_bytes())
        {
            // The caller has the lock, so no other process uses it. A folder that cannot be
            // removed does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    tempfile::Builder::new()
        .prefix(STAGING_PREFIX)
        .tempdir_in(root)
}

/// Renames `new` to `target`. An existing `target` is moved to `aside`, a folder that the
/// caller removes.
pub(super) fn swap(new: &Path, target: &Path, aside: &Path) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent)?;
    }
    let old = aside.join("replaced");
    let was_there = match fs::rename(target, &old) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    let renamed = fs::rename(new, target);
    if renamed.is_err() && was_there {
        fs::rename(&old, target)?;
    }
    renamed
}

/// Copies a folder. Links stay links.
pub(super) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_symlink() {
        return copy_link(from, to);
    }
    if !kind.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy_tree(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(from)?, to)
}

#[cfg(not(unix))]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::metadata(from)?.is_dir() {
        true => copy_tree(&fs::canonicalize(from)?, to),
        false => fs::copy(from, to).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn tree(root: &Path, name: &str, text: &str) -> PathBuf {
        let dir = root.join(name);
        fs::create_dir_all(dir.join("sub")).unwrap();
        fs::write(dir.join("sub/file"), text).unwrap();
        fs::write(dir.join("package.json"), "{}").unwrap();
        dir
    }

    fn text(dir: &Path) -> String {
        fs::read_to_string(dir.join("sub/file")).unwrap()
    }

    #[test]
    fn swap_replaces_the_old_folder() {
        let dir = tempfile::tempdir().unwrap();
        let staging = staging(dir.path()).unwrap();
        let new = tree(staging.path(), "new", "new");
        let target = tree(dir.path(), "a/b", "old");
        swap(&new, &target, staging.path()).unwrap();
        assert_eq!(text(&target), "new");
        let gone = staging.path().join("gone");
        assert!(swap(&gone, &target, &tree(dir.path(), "aside", "")).is_err());
        assert_eq!(text(&target), "new", "the old one came back");
        drop(staging);
        let names = fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name());
        assert_eq!(names.filter(|name| name == "a").count(), 1);
    }
}
