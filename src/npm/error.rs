//! Errors of an installation, as sentences for the user.

use std::io;
use std::path::{Path, PathBuf};

use crate::archive::ArchiveError;
use crate::config::ConfigError;
use crate::integrity::IntegrityError;

#[derive(Debug, thiserror::Error)]
pub enum NpmError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(
        "The package {name} is not in the registry {registry}: check its name, or the registry in .npmrc"
    )]
    NotFound { name: String, registry: String },
    #[error("{0}")]
    Resolution(String),
    /// The versions that would fit were published too recently.
    #[error("{0}")]
    TooNew(String),
    #[error("{url} cannot be fetched: {why}")]
    Fetch { url: String, why: String },
    #[error(
        "The archive of {package} is not the one that {by} names: {source}. Nothing was installed; try again, and tell the package's author if it happens again"
    )]
    Integrity {
        package: String,
        by: &'static str,
        source: IntegrityError,
    },
    #[error("The archive of {package} cannot be unpacked: {source}")]
    Archive {
        package: String,
        source: ArchiveError,
    },
    #[error("{0}")]
    InvalidName(String),
    #[error("{package} does not run on {system}: its package.json allows {allowed}")]
    OtherSystem {
        package: String,
        system: String,
        allowed: String,
    },
    #[error("The dependency {name} of {parent} is \"{specifier}\": {why}")]
    Dependency {
        parent: String,
        name: String,
        specifier: String,
        why: String,
    },
    #[error("git {command} failed: {why}")]
    Git { command: String, why: String },
    #[error("{}: {source}", .path.display())]
    Files { path: PathBuf, source: io::Error },
    #[error("{}: {why}", .path.display())]
    Manifest { path: PathBuf, why: String },
    #[error("{0}")]
    Tree(String),
}

/// Makes the error of an operation on a file.
pub(crate) fn files(path: &Path) -> impl FnOnce(io::Error) -> NpmError + use<> {
    let path = path.to_owned();
    move |source| NpmError::Files { path, source }
}
