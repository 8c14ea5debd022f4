//! Resources that users keep in `~/.pi/agent` and `.pi`.

pub mod diagnostic;
pub mod discovery;
pub mod keybindings;
pub mod migrations;
pub mod packages;
pub mod paths;
pub mod prompts;
pub mod settings;
pub mod skills;
pub mod source_info;
pub mod themes;
pub mod trust;
