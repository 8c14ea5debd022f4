//! The protocol as JSON Schema, for `pi rpc schema` and for authors of clients. A test
//! generates it from the Rust types and fails when the file is stale, so that the generator
//! is not part of the program.

/// The output of `pi rpc schema`.
pub const SCHEMA: &str = include_str!("../../../docs/rpc.schema.json");

#[cfg(test)]
mod tests;
