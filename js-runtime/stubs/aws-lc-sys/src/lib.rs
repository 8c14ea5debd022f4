//! AWS-LC's C interface, under the older of two versions that are asked for.

pub use newer::*;
