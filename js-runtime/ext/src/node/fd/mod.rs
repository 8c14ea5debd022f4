//! File descriptors that JavaScript names by their numbers.

pub(crate) mod inherited;
pub(crate) mod openers;
pub(crate) mod ownership;
