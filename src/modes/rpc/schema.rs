//! The protocol as JSON Schema, for `pi rpc schema` and for whoever makes types of it.
//! Made of the Rust types by a test (so nothing of it weighs on the program), which
//! fails when the file is not what they say.

/// What `pi rpc schema` prints.
pub const SCHEMA: &str = include_str!("../../../docs/rpc.schema.json");

#[cfg(test)]
pub use tests::Numbered;

#[cfg(test)]
mod tests;
