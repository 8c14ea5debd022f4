//! Serves the calls of extensions by topic: the session, sessions they open themselves,
//! tools, models, compaction, dialogs, programs, resources.

pub mod clipboard;
pub mod compaction;
mod compaction_stream;
pub mod exec;
pub mod file_mutations;
pub mod images;
pub mod model_catalogue;
pub mod model_streams;
pub mod resources;
pub mod session_api;
pub mod session_args;
pub mod session_manager;
pub mod settings_files;
pub mod tool_helpers;
pub mod tool_runs;
pub mod ui;
pub mod user_bash;
