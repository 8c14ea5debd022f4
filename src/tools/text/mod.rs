//! Text of tools: differences, replacements and truncation.

pub mod diff;
pub mod fuzzy_replace;
pub mod truncate;
mod unified_diff;
pub(crate) mod utf8_decoder;
