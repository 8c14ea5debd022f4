//! Caches of the loader: on disk between starts, in memory between isolates, and prefetched while
//! an isolate starts.

pub(in crate::loader) mod builtin_code;
mod compiling;
pub(in crate::loader) mod external_string;
pub(in crate::loader) mod hot_code;
pub(in crate::loader) mod locales;
pub(in crate::loader) mod manifest;
pub(in crate::loader) mod memory;
pub(crate) mod prefetch;
pub(in crate::loader) mod prefetched;
pub(in crate::loader) mod script_code;
mod store;
mod writer;

pub(crate) use self::store::{DiskCache, Key};
