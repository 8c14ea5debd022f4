mod arguments;
mod file_changes;
mod order;
mod parity;
mod refused;
mod search;
mod special_files;
