//! Messages to authors of extensions about likely mistakes, and the checks that find them.

mod author_warnings;
pub mod error_context;
pub mod ignored_results;
pub mod name_conflicts;
pub mod results;
pub mod suggestions;
pub mod tool_schema;
pub mod type_errors;
pub mod unsupported_api;
