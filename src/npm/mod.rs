//! Packages of npm without npm: asks a registry, resolves dependencies, and unpacks archives into
//! a folder that Node's resolution understands. No code of a package runs.

mod archive;
mod archives;
mod bins;
mod clones;
mod config;
mod error;
mod external;
mod git;
mod http;
mod install;
mod integrity;
mod layout;
mod names;
mod overrides;
mod platform;
mod registry;
mod resolve;
pub mod scripts;
mod tree;

pub use archive::{ArchiveError, Limits};
pub use config::{ConfigError, NpmConfig};
pub use error::NpmError;
pub use install::{Installed, Npm, Options};
pub use resolve::Root;
pub use scripts::{PackageScripts, scripts_of};
pub use tree::{PlacedPackage, Tree};
