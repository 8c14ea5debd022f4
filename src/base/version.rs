//! The version of this program. The build script of js-runtime-ext includes this file, too.

/// `0.87.1+rs.0.1.0`: the version of the original whose API and protocol this program has
/// (docs/compatibility.md says how it is chosen), and after `+rs.` the program's own version.
/// Semantic versioning calls that part build metadata; comparisons leave it out.
pub const VERSION: &str = concat!("0.87.1", "+rs.", env!("CARGO_PKG_VERSION"));

/// `0.1.0`
pub const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");

/// `0.87.1`: the part of [`VERSION`] before the `+`, for programs that know plain versions only.
pub fn compared_version() -> &'static str {
    VERSION
        .split_once('+')
        .map_or(VERSION, |(compared, _)| compared)
}
