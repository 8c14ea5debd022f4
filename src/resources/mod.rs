//! Resources that users keep in `~/.pi/agent` and `.pi`.

pub mod context_files;
pub mod diagnostic;
pub mod extension_paths;
pub mod frontmatter;
pub mod keybindings;
pub mod migrations;
pub mod packages;
pub mod paths;
pub mod prompt_files;
pub mod prompt_templates;
pub mod resource_paths;
pub mod settings;
pub mod skills;
pub mod source_info;
pub mod system_prompt;
pub mod themes;
pub mod trust;
