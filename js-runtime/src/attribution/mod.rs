//! Assigns time, memory, errors and stops of an isolate to extensions.

pub(crate) mod heap_growth;
pub(crate) mod heap_snapshot;
pub(crate) mod imports;
pub(crate) mod interrupt;
pub(crate) mod intrinsics_guard;
pub(crate) mod load_input;
pub(crate) mod sampler;
pub(crate) mod sources;
pub(crate) mod stack_dump;
