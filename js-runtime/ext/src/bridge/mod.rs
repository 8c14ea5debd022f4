//! The host's side of the bridge: what the program offers to JavaScript, and whose code runs.

pub(crate) mod attribution;
pub(crate) mod host;
pub(crate) mod ops;
pub(crate) mod source_positions;
