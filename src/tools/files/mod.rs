//! Files as the tools read and write them: paths, the order of writes, replacement in one step, and
//! errors.

pub mod mutation_queue;
pub mod os_error;
pub mod paths;
pub(crate) mod replace_file;
