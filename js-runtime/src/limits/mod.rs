//! Limits of an isolate (time, memory, file descriptors), and those of the whole process.

pub(crate) mod descriptors;
pub(crate) mod memory;
pub(crate) mod process_limits;
pub(crate) mod watchdog;
