//! Lets ES modules, CommonJS modules and JSON import each other as jiti does.

pub(in crate::loader) mod cjs;
pub(in crate::loader) mod compat;
pub(in crate::loader) mod exports;
mod import_usage;
pub(in crate::loader) mod json;
pub(in crate::loader) mod missing_exports;
