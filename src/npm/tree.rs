//! An installed tree: all packages below one folder, with what is needed to install the same
//! again. It is part of `pi.lock`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::NpmError;
use crate::platform::Systems;

/// The packages of a tree, parents before what they contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tree {
    pub packages: Vec<PlacedPackage>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacedPackage {
    /// The folder below the root of the tree, with `/`; empty for the root itself.
    pub path: String,
    pub name: String,
    pub version: String,
    /// The URL of the archive, `git+<url>#<commit>`, or `file:<path below the root>`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resolved: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<String>,
    /// The folder below the root that this one is a link to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Whether the tree works without it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    #[serde(flatten)]
    pub systems: Systems,
}

impl Tree {
    /// Checks that all paths stay below the root. The tree may come from a file that others wrote.
    pub fn check(&self) -> Result<(), NpmError> {
        let wrong = |path: &str| NpmError::Tree(format!("{path:?} is no path of a package"));
        let known: BTreeSet<&str> = self.packages.iter().map(|it| it.path.as_str()).collect();
        if known.len() != self.packages.len() {
            return Err(NpmError::Tree("two packages have the same path".to_owned()));
        }
        for package in &self.packages {
            let path = &package.path;
            if !path.is_empty() && !is_below(path) {
                return Err(wrong(path));
            }
            if let Some(target) = &package.link
                && (!known.contains(target.as_str()) || !path.contains("node_modules/"))
            {
                return Err(wrong(target));
            }
        }
        Ok(())
    }

    /// Returns the package at the root.
    pub fn root(&self) -> Option<&PlacedPackage> {
        self.packages.iter().find(|package| package.path.is_empty())
    }

    /// Returns each package once, without its other places.
    pub fn distinct(&self) -> impl Iterator<Item = &PlacedPackage> {
        self.packages
            .iter()
            .filter(|package| package.link.is_none())
    }
}

/// Returns whether a path with `/` stays below the folder to which it is relative.
pub(crate) fn is_below(path: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != ".." && part != ".git";
    path.split('/').all(plain) && !path.contains(['\\', '\0', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_tree_stay_in_it() {
        let tree = |path: &str, link: Option<&str>| Tree {
            packages: vec![
                PlacedPackage::default(),
                PlacedPackage {
                    path: path.to_owned(),
                    link: link.map(str::to_owned),
                    ..PlacedPackage::default()
                },
            ],
        };
        tree("node_modules/@s/a", None).check().unwrap();
        tree("node_modules/a", Some("")).check().unwrap();
        for path in [
            "../a",
            "/etc",
            "node_modules/../../x",
            "a//b",
            "a/.",
            "c:x",
            ".git/hooks",
        ] {
            tree(path, None).check().unwrap_err();
        }
        tree("node_modules/a", Some("../../etc"))
            .check()
            .unwrap_err();
        tree("", None).check().unwrap_err();
    }
}
