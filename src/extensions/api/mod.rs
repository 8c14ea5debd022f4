//! Serves the calls of extensions by topic: the session, sessions they open themselves,
//! tools, models, compaction, dialogs, programs, resources.

pub mod clipboard;
pub mod compaction;
mod compaction_stream;
pub mod exec;
pub mod model_streams;
pub mod resources;
pub mod services;
pub mod session;
pub mod session_api;
pub mod session_manager;
pub mod tool_runs;
pub mod ui;
pub mod user_bash;
