//! The models that users can select: built-in ones, the user's own, and those of extensions.

pub mod builtin;
pub mod models_json;
pub mod registry;
pub mod selection;
pub mod thinking_levels;
