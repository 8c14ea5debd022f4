//! The parts of the system prompt, which extensions see and may change.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use pi_resources::paths::package_dir;
use pi_resources::prompts::context_files::ContextFile;
use pi_resources::prompts::system_prompt::{Docs, PromptTool, SystemPrompt};
use pi_resources::skills::{Skill, skills_block};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PromptOptions {
    /// Replaces the first part of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_prompt: Option<String>,
    pub selected_tools: Vec<String>,
    pub tool_snippets: IndexMap<String, String>,
    pub tool_guidelines: IndexMap<String, Vec<String>>,
    /// Guidelines that follow those of the tools.
    pub prompt_guidelines: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    pub cwd: String,
    pub context_files: Vec<PromptFile>,
    pub skills: Vec<Skill>,
    /// Additional sections by the names of their tags. A section with the name of a built-in one
    /// replaces it. This member and the next are of later versions of the original.
    pub sections: IndexMap<String, Option<String>>,
    /// Replaces the whole prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_system_prompt: Option<String>,
}

/// The system prompt of the session, and its changes for the latest run.
#[derive(Clone, Default)]
pub(crate) struct SystemPromptState {
    pub text: String,
    /// The options that [`Self::text`] was rendered from.
    pub options: PromptOptions,
    /// The text that `before_agent_start` handlers left for the latest run; `None` if unchanged.
    pub run_text: Option<String>,
    /// The options that these handlers left for the latest run; `None` if unchanged.
    pub run_options: Option<PromptOptions>,
}

impl SystemPromptState {
    /// The text of the latest run, or of the next one if nothing has been changed.
    pub fn current(&self) -> &str {
        self.run_text.as_ref().unwrap_or(&self.text)
    }

    /// Returns the sections that `prompt` was rendered from; `None` if handlers replaced it by a
    /// text.
    pub fn sections_of(&self, prompt: &str, home: &Path) -> Option<Sections> {
        let all = [self.run_options.as_ref(), Some(&self.options)];
        let mut sections = all
            .into_iter()
            .flatten()
            .map(|options| options.sections(home));
        sections.find(|sections| {
            sections
                .values()
                .flat_map(|text| text.bytes())
                .eq(prompt.bytes())
        })
    }
}

/// The sections of a system prompt by name. The prompt is the concatenation of their texts.
pub(crate) type Sections = IndexMap<String, String>;

impl PromptOptions {
    /// Takes the active tools of `live`, and the snippets and guidelines of those tools that these
    /// options do not mention.
    pub fn take_tools(&mut self, live: &Self) {
        self.selected_tools.clone_from(&live.selected_tools);
        for (tool, snippet) in &live.tool_snippets {
            let own = self.tool_snippets.entry(tool.clone());
            own.or_insert_with(|| snippet.clone());
        }
        for (tool, guidelines) in &live.tool_guidelines {
            let own = self.tool_guidelines.entry(tool.clone());
            own.or_insert_with(|| guidelines.clone());
        }
    }

    /// Returns why the options are invalid.
    pub fn problem(&self) -> Option<String> {
        let is_name = |name: &str| {
            name != "preamble"
                && name.starts_with(|c: char| c.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
        };
        let wrong = self.sections.keys().find(|name| !is_name(name))?;
        Some(format!(
            "{wrong:?} is no name of a section: lower-case letters, digits, _ and -, beginning with a \
             letter, and not \"preamble\""
        ))
    }

    /// Renders the system prompt. `home` replaces `~` in `PI_PACKAGE_DIR`.
    pub fn render(&self, home: &Path) -> String {
        match &self.force_system_prompt {
            Some(forced) => forced.clone(),
            None => self.sections(home).into_values().collect(),
        }
    }

    /// Renders the sections. `home` replaces `~` in `PI_PACKAGE_DIR`.
    fn sections(&self, home: &Path) -> Sections {
        let files = self.context_files.iter().map(|file| ContextFile {
            path: PathBuf::from(&file.path),
            content: file.content.clone(),
        });
        let skills = skills_block(&self.skills);
        let docs = package_dir(home).and_then(|dir| Docs::find(&dir));
        let guidelines_of = |name: &'_ String| -> &'_ [String] {
            let guidelines = self.tool_guidelines.get(name);
            guidelines.map_or(&[], Vec::as_slice)
        };
        let tools = self.selected_tools.iter().map(|name| PromptTool {
            name,
            snippet: self.tool_snippets.get(name).map(String::as_str),
            guidelines: guidelines_of(name),
        });
        // An entry without a tool places the guidelines after those of the tools.
        let more = PromptTool {
            name: "",
            snippet: None,
            guidelines: &self.prompt_guidelines,
        };
        let own = SystemPrompt {
            tools: tools.chain([more]).collect(),
            custom: self.custom_prompt.as_deref(),
            append: self.append_system_prompt.as_deref(),
            context_files: &files.collect::<Vec<_>>(),
            skills: skills.as_deref(),
            docs: docs.as_ref(),
            date: chrono::Local::now().date_naive(),
            cwd: self.cwd.as_ref(),
        };
        let own = own.sections().into_iter();
        let mut sections: Sections = own.map(|(name, text)| (name.to_owned(), text)).collect();
        for (name, text) in &self.sections {
            if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
                let text = format!("\n\n<{name}>\n{text}\n</{name}>");
                sections.insert(name.clone(), text);
            }
        }
        sections
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PromptFile {
    pub path: String,
    pub content: String,
}
