//! Which version this program says that it is.

/// `0.87.1+rs.0.1.0`
pub use js_runtime::VERSION;

/// `0.87.1`: the version of the original whose API and protocol this program has. For programs
/// that know plain versions only.
pub fn compared_version() -> &'static str {
    VERSION
        .split_once('+')
        .map_or(VERSION, |(compared, _)| compared)
}

/// `0.1.0`
pub const OWN_VERSION: &str = env!("CARGO_PKG_VERSION");
