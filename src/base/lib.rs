//! The base layer: helpers of the operating system and of text that every other crate may use.
//! This crate uses no other crate of the workspace.

pub mod active_clock;
pub mod file_lock;
mod file_state;
mod nearest;
mod paths;
pub mod process_tree;
pub mod regular_file;
pub mod secrets;
pub mod stale_temp_files;
pub mod utf16;
mod version;

pub use file_state::{FileState, FileTime};
pub use nearest::nearest;
pub use paths::{follow_links, normalize};
pub use version::{OWN_VERSION, VERSION, compared_version};
