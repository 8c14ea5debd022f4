//! What the system prompt is made of, as extensions see it and may change it.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::AgentSession;
use crate::resources::context_files::ContextFile;
use crate::resources::paths::package_dir;
use crate::resources::skills::{Skill, skills_block};
use crate::resources::system_prompt::{Docs, PromptTool, SystemPrompt};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PromptOptions {
    /// Stands in for the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_prompt: Option<String>,
    pub selected_tools: Vec<String>,
    pub tool_snippets: IndexMap<String, String>,
    pub tool_guidelines: IndexMap<String, Vec<String>>,
    /// After those of the tools.
    pub prompt_guidelines: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    pub cwd: String,
    pub context_files: Vec<PromptFile>,
    pub skills: Vec<Skill>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PromptFile {
    pub path: String,
    pub content: String,
}

impl AgentSession {
    pub(super) fn render_prompt(&self, options: &PromptOptions) -> String {
        let files = options.context_files.iter().map(|file| ContextFile {
            path: PathBuf::from(&file.path),
            content: file.content.clone(),
        });
        let skills = skills_block(&options.skills);
        let docs = package_dir(&self.config.paths.home).and_then(|dir| Docs::find(&dir));
        let of_tool = |name: &'_ String| -> &'_ [String] {
            let guidelines = options.tool_guidelines.get(name);
            guidelines.map_or(&[], Vec::as_slice)
        };
        let tools = options.selected_tools.iter().map(|name| PromptTool {
            name,
            snippet: options.tool_snippets.get(name).map(String::as_str),
            guidelines: of_tool(name),
        });
        // No tool, but its guidelines are in their place.
        let more = PromptTool {
            name: "",
            snippet: None,
            guidelines: &options.prompt_guidelines,
        };
        SystemPrompt {
            tools: tools.chain([more]).collect(),
            custom: options.custom_prompt.as_deref(),
            append: options.append_system_prompt.as_deref(),
            context_files: &files.collect::<Vec<_>>(),
            skills: skills.as_deref(),
            docs: docs.as_ref(),
            date: chrono::Local::now().date_naive(),
            cwd: options.cwd.as_ref(),
        }
        .build()
    }
}
