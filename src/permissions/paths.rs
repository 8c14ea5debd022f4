//! Matches paths with the patterns of rules.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use pi_base::{follow_links, normalize};

use crate::shell::BaseFolders;

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
    pub fn may_match(&self, path: &Path, base_folders: &BaseFolders) -> bool {
        // A loop of links cannot be opened.
        follow_links(path).is_some_and(|resolved| {
            self.located(base_folders)
                .matches(&normalize(path), &resolved)
        })
    }

    /// Prepares the pattern for many paths of a place.
    pub fn located(&self, base_folders: &BaseFolders) -> LocatedPattern {
        let Some(folder) = self.folder(base_folders) else {
            return match (self.root, glob(&self.rest)) {
                (Root::Anywhere, Ok(name)) => LocatedPattern::Name(name),
                (Root::Anywhere, Err(_)) => LocatedPattern::Any,
                _ => LocatedPattern::Below(Vec::new()),
            };
        };
        let mut starts: Vec<PathBuf> = Vec::new();
        let resolved = follow_links(&folder).unwrap_or_else(|| folder.clone());
        let mut rest = String::new();
        for folder in [folder, resolved] {
            let (folder, pattern) = literal_part(&folder, &self.rest);
            rest = pattern;
            let also = follow_links(&folder).unwrap_or_else(|| folder.clone());
            for start in [folder, also] {
                if !starts.contains(&start) {
                    starts.push(start);
                }
            }
        }
        let matchers = starts.iter().map(|folder| Matcher::new(folder, &rest));
        match matchers.collect() {
            Ok(matchers) => LocatedPattern::Below(matchers),
            Err(_) => LocatedPattern::Any,
        }
    }

    /// Returns whether the file behind the links of `path` matches. Rules to allow use this.
    pub fn must_match(&self, path: &Path, base_folders: &BaseFolders) -> bool {
        let Some(resolved) = follow_links(path) else {
            return false;
        };
        let (folder, rest) = match (self.root, self.folder(base_folders)) {
            (Root::Anywhere, _) => (base_folders.cwd.clone(), format!("**/{}", self.rest)),
            (_, Some(folder)) => (folder, self.rest.clone()),
            (_, None) => return false,
        };
        let (folder, rest) = literal_part(&folder, &rest);
        let Some(folder) = follow_links(&folder) else {
            return false;
        };
        let Ok(matcher) = Matcher::new(&folder, &rest) else {
            return false;
        };
        // A folder by its name means everything in it.
        let by_name = rest.is_empty() && resolved.starts_with(&folder);
        by_name || matcher.matches(&resolved)
    }

    /// Returns the folder in which the pattern starts. `None` if that is any folder, or if the home
    /// folder is unknown.
    fn folder(&self, base_folders: &BaseFolders) -> Option<PathBuf> {
        match self.root {
            Root::Absolute => Some(PathBuf::from("/")),
            Root::Home => base_folders.home.clone(),
            Root::Folder => Some(base_folders.cwd.clone()),
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

/// A pattern at a place; see [`PathPattern::located`].
#[derive(Clone, Debug)]
pub(crate) enum LocatedPattern {
    /// Every path: the pattern cannot be compiled.
    Any,
    /// Files and folders with such a name, and what is in them.
    Name(GlobMatcher),
    /// Paths that one of these matches, and what is below them.
    Below(Vec<Matcher>),
}

impl LocatedPattern {
    /// Returns whether one of the two forms of a path, or a folder above one of them, matches.
    pub fn matches(&self, plain: &Path, resolved: &Path) -> bool {
        let forms = [plain, resolved];
        match self {
            Self::Any => true,
            Self::Name(glob) => forms.iter().any(|path| {
                let mut names = path.components().rev();
                names.any(|name| glob.is_match(Path::new(name.as_os_str())))
            }),
            Self::Below(matchers) => matchers.iter().any(|matcher| {
                let mut all = forms.iter().flat_map(|path| path.ancestors());
                all.any(|path| matcher.matches(path))
            }),
        }
    }

    /// Returns whether a path in `folder` may match.
    pub fn may_match_below(&self, folder: &Path) -> bool {
        match self {
            Self::Any | Self::Name(_) => true,
            Self::Below(matchers) => matchers.iter().any(|matcher| {
                matcher.folder.starts_with(folder) || folder.starts_with(&matcher.folder)
            }),
        }
    }
}

/// A pattern for the paths below a folder. An empty pattern means the folder itself.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    folder: PathBuf,
    /// `None` for an empty pattern.
    glob: Option<GlobMatcher>,
}

impl Matcher {
    fn new(folder: &Path, pattern: &str) -> Result<Self, String> {
        let glob = match pattern.is_empty() {
            true => None,
            false => Some(glob(pattern)?),
        };
        Ok(Self {
            folder: folder.to_owned(),
            glob,
        })
    }

    fn matches(&self, path: &Path) -> bool {
        match (path.strip_prefix(&self.folder), &self.glob) {
            (Ok(rest), None) => rest.as_os_str().is_empty(),
            (Ok(rest), Some(glob)) => !rest.as_os_str().is_empty() && glob.is_match(rest),
            (Err(_), _) => false,
        }
    }
}

#[cfg(test)]
mod tests;
