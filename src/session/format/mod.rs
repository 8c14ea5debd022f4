//! The format of session files: reading, migrating and writing lines.

pub(crate) mod detached_entries;
pub(crate) mod entry_writer;
pub(crate) mod external_entry;
pub(crate) mod header;
pub(crate) mod json_line;
pub(crate) mod load;
pub(crate) mod members;
pub(crate) mod migrate;
pub(crate) mod shared_text;
