//! Paths as text, without access to the disk.

use std::path::{Component, Path, PathBuf};

/// Removes `.` and `..` without access to the disk, so that it works for paths that do not exist.
pub fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => _ = normal.pop(),
            other => normal.push(other),
        }
    }
    normal
}
