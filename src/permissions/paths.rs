//! Resolves paths as the kernel does, also those of files that do not exist yet, and matches them
//! with the patterns of rules.

use std::fs;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use crate::shell::Place;

/// Number of symbolic links that are followed, as in Linux.
const MAX_LINKS: usize = 40;

/// Removes `.` and `..` without access to the disk.
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
pub fn resolve(path: &Path) -> Option<PathBuf> {
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

/// A pattern of a rule about files: `src/**`, `~/.ssh/*`, `/etc/passwd`, `.env`.
#[derive(Clone, Debug)]
pub(crate) struct PathPattern {
    root: Root,
    /// The part behind the root, with `/` between components.
    rest: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    /// The whole file system: `/etc/passwd`, or `//etc/passwd` as other agents write it.
    Absolute,
    Home,
    /// The working folder: `./x`, `src/x`.
    Folder,
    /// Any folder, for a name without a slash.
    Anywhere,
}

impl PathPattern {
    /// Parses a pattern. The error is the reason why it cannot be used.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (root, rest) = if let Some(rest) = text.strip_prefix("~/") {
            (Root::Home, rest)
        } else if text == "~" {
            (Root::Home, "")
        } else if text.starts_with('/') {
            (Root::Absolute, text.trim_start_matches('/'))
        } else if let Some(rest) = text.strip_prefix("./") {
            (Root::Folder, rest)
        } else if text == "." {
            (Root::Folder, "")
        } else if text.trim_end_matches('/').contains('/') {
            (Root::Folder, text)
        } else {
            (Root::Anywhere, text)
        };
        let rest = rest.trim_end_matches('/').to_owned();
        if rest.split('/').any(|part| part == "..") {
            return Err("the pattern contains \"..\"; write the path without it".into());
        }
        let pattern = Self { root, rest };
        glob(&pattern.rest)?;
        Ok(pattern)
    }

    /// Returns whether no wildcard is in the pattern.
    pub fn is_exact(&self) -> bool {
        self.root != Root::Anywhere && !has_wildcard(&self.rest)
    }

    /// Returns whether the path as written, the file behind its links, or a folder above one of them
    /// matches. Rules to deny and to ask use this.
    pub fn may_match(&self, path: &Path, place: &Place) -> bool {
        let Some(resolved) = resolve(path) else {
            // A loop of links cannot be opened.
            return false;
        };
        let plain = normalize(path);
        let folders = match self.folder(place) {
            None if self.root == Root::Anywhere => {
                let Ok(glob) = glob(&self.rest) else {
                    return true;
                };
                let names = |path: &Path| {
                    let mut names = path.components().rev();
                    names.any(|name| glob.is_match(Path::new(name.as_os_str())))
                };
                return names(&plain) || names(&resolved);
            }
            None => return false,
            Some(folder) => {
                let resolved = resolve(&folder).unwrap_or_else(|| folder.clone());
                [folder, resolved]
            }
        };
        folders.iter().any(|folder| {
            let (folder, rest) = literal_part(folder, &self.rest);
            let also = resolve(&folder).unwrap_or_else(|| folder.clone());
            [folder, also].iter().any(|folder| {
                let Ok(matches) = matcher(folder, &rest) else {
                    return true;
                };
                [&plain, &resolved]
                    .iter()
                    .any(|path| path.ancestors().any(&matches))
            })
        })
    }

    /// Returns whether the file behind the links of `path` matches. Rules to allow use this.
    pub fn must_match(&self, path: &Path, place: &Place) -> bool {
        let Some(resolved) = resolve(path) else {
            return false;
        };
        let (folder, rest) = match (self.root, self.folder(place)) {
            (Root::Anywhere, _) => (place.cwd.clone(), format!("**/{}", self.rest)),
            (_, Some(folder)) => (folder, self.rest.clone()),
            (_, None) => return false,
        };
        let (folder, rest) = literal_part(&folder, &rest);
        let Some(folder) = resolve(&folder) else {
            return false;
        };
        let Ok(matches) = matcher(&folder, &rest) else {
            return false;
        };
        // A folder by its name means everything in it.
        let by_name = rest.is_empty() && resolved.starts_with(&folder);
        by_name || matches(&resolved)
    }

    /// Returns the folder in which the pattern starts. `None` if that is any folder, or if the home
    /// folder is unknown.
    fn folder(&self, place: &Place) -> Option<PathBuf> {
        match self.root {
            Root::Absolute => Some(PathBuf::from("/")),
            Root::Home => place.home.clone(),
            Root::Folder => Some(place.cwd.clone()),
            Root::Anywhere => None,
        }
    }
}

fn has_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// Moves the leading components without a wildcard from the pattern to the folder.
fn literal_part(folder: &Path, pattern: &str) -> (PathBuf, String) {
    let mut folder = folder.to_owned();
    let mut parts: Vec<&str> = pattern.split('/').filter(|it| !it.is_empty()).collect();
    let literal = parts.iter().take_while(|part| !has_wildcard(part)).count();
    for part in parts.drain(..literal) {
        folder.push(part);
    }
    (folder, parts.join("/"))
}

fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build();
    Ok(glob.map_err(|error| error.to_string())?.compile_matcher())
}

/// Makes a test for paths below `folder`. An empty pattern means the folder itself.
fn matcher(folder: &Path, pattern: &str) -> Result<impl Fn(&Path) -> bool, String> {
    let glob = glob(pattern)?;
    let is_folder = pattern.is_empty();
    let folder = folder.to_owned();
    Ok(move |path: &Path| match path.strip_prefix(&folder) {
        Ok(rest) if is_folder => rest.as_os_str().is_empty(),
        Ok(rest) => !rest.as_os_str().is_empty() && glob.is_match(rest),
        Err(_) => false,
    })
}

#[cfg(test)]
mod tests;
