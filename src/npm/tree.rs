//! An installed tree: all packages below one folder, with what is needed to install the same
//! again. It is part of `pi.lock`.

use serde::{Deserialize, Serialize};

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
