//! Sources of packages and the folders in which they are installed. The crate `pi-packages`
//! installs them; [`crate::discovery`] finds the resources in them.

pub mod install_paths;
pub mod run;
pub mod source;

pub use run::{Output, RunError};
pub use source::{PackageSource, SourceError};
