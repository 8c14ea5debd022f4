//! Resolves paths of files that need not exist.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Number of symbolic links that are followed, as in Linux.
const MAX_LINKS: usize = 40;

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

/// Follows all symbolic links of an absolute path, including those of its folders and those that
/// point to nothing. Parts that do not exist stay as they are. Returns `None` for a loop.
pub fn follow_links(path: &Path) -> Option<PathBuf> {
    let mut links = 0;
    let mut resolved = PathBuf::new();
    // The components that are left, the next one last.
    let mut left: Vec<PathBuf> = components(path);
    while let Some(next) = left.pop() {
        match next.components().next() {
            Some(Component::RootDir | Component::Prefix(_)) => resolved = next,
            Some(Component::ParentDir) => _ = resolved.pop(),
            Some(Component::Normal(name)) => {
                let candidate = resolved.join(name);
                match fs::read_link(&candidate) {
                    Ok(target) => {
                        links += 1;
                        if links > MAX_LINKS {
                            return None;
                        }
                        left.extend(components(&target));
                    }
                    Err(_) => resolved = candidate,
                }
            }
            _ => {}
        }
    }
    Some(resolved)
}

fn components(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().rev();
    parts.map(|part| PathBuf::from(part.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_of_missing_files_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a/b", root.join("link")).unwrap();
        symlink(root.join("link/new"), root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let found = |path: &str| follow_links(&root.join(path));
        assert_eq!(found("link/x/y"), Some(root.join("a/b/x/y")));
        assert_eq!(found("link/../x"), Some(root.join("a/x")));
        assert_eq!(found("dangling"), Some(root.join("a/b/new")));
        assert_eq!(found("missing/../a"), Some(root.join("a")));
        assert_eq!(found("loop/x"), None);
        assert_eq!(follow_links(Path::new("/../..")), Some("/".into()));
    }
}
