//! The version of this program. The build script reads it for `pi:version.ts`, too.

/// The version of the original whose API and protocol this program has
/// (docs/compatibility.md says how it is chosen), and after `+rs.` the program's own: what
/// semantic versioning calls build metadata, which comparisons leave out.
pub const VERSION: &str = concat!("0.87.1", "+rs.", env!("CARGO_PKG_VERSION"));
