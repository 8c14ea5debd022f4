mod arguments;
mod author_warnings;
mod check_hints;
mod error_isolation;
mod loose_code;
mod source_positions;
mod stale;
mod stopped_lines;
