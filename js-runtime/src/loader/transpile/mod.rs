//! Makes the JavaScript that V8 gets of a file: parsing, TypeScript, and texts in ASCII.

pub(in crate::loader) mod ascii;
mod ascii_escapes;
mod column_map;
pub(crate) mod decorators;
pub(in crate::loader) mod emit;
mod enums;
mod erasable;
mod import_equals;
pub(crate) mod parsing;
