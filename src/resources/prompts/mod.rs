//! Texts that become part of prompts: system prompt, context files and prompt templates.

pub mod context_files;
pub mod frontmatter;
pub mod system_prompt;
pub mod system_prompt_files;
pub mod templates;
