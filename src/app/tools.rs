//! Which tools the model has, and the system prompt that tells it of them.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use super::AgentSession;
use crate::resources::context_files::load_context_files;
use crate::resources::paths::package_dir;
use crate::resources::prompt_files::load_prompt_texts;
use crate::resources::source_info::SourceInfo;
use crate::resources::system_prompt::{Docs, PromptTool, SystemPrompt};
use crate::tools::tool::Tool;
use crate::tools::{self, ToolOptions};

/// A tool and where it comes from.
pub(super) struct KnownTool {
    pub tool: Arc<dyn Tool>,
    pub source: SourceInfo,
    pub builtin: bool,
}

impl AgentSession {
    pub(super) fn cwd(&self) -> PathBuf {
        self.state.lock().session.cwd().to_path_buf()
    }

    pub(super) fn tool_options(&self) -> ToolOptions {
        let settings = self.settings.values();
        let paths = &self.config.paths;
        ToolOptions {
            shell_path: settings.shell_path.as_ref().map(Into::into),
            command_prefix: settings.shell_command_prefix.clone(),
            auto_resize_images: settings.images.auto_resize,
            agent_bin_dir: Some(paths.bin()),
            settings_path: Some(paths.global_settings()),
        }
    }

    /// All tools; an extension's takes the place of a built-in one of the same
    /// name.
    pub(super) fn known_tools(&self) -> Vec<KnownTool> {
        let builtin = tools::builtin(self.cwd(), self.tool_options())
            .into_iter()
            .map(|tool| {
                let source = SourceInfo::builtin(&tool.spec().name);
                KnownTool {
                    tool,
                    source,
                    builtin: true,
                }
            });
        let mut known: Vec<KnownTool> = builtin.collect();
        for (tool, info) in self.extensions.tools() {
            let tool = KnownTool {
                tool,
                source: info.source,
                builtin: false,
            };
            let name = &tool.tool.spec().name;
            match known.iter_mut().find(|one| one.tool.spec().name == *name) {
                Some(one) => *one = tool,
                None => known.push(tool),
            }
        }
        known
    }

    /// Those that the model may call.
    pub(super) fn active_tools(&self) -> Vec<Arc<dyn Tool>> {
        let active = self.state.lock().active_tools.clone();
        let known = self.known_tools();
        let find = |name: &String| known.iter().find(|one| one.tool.spec().name == *name);
        let found = active.iter().filter_map(find);
        found.map(|one| one.tool.clone()).collect()
    }

    /// What is active when nothing is said: the usual built-in tools, or those
    /// that the command line names, in its order, and all that extensions bring.
    pub(super) fn default_tools(&self) -> Vec<String> {
        let choice = &self.config.tools;
        let mut names = match &choice.only {
            Some(only) => only.clone(),
            None if choice.none => Vec::new(),
            None => tools::DEFAULT_ACTIVE.map(str::to_owned).into(),
        };
        for one in self.known_tools().iter().filter(|one| !one.builtin) {
            let name = &one.tool.spec().name;
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Tools came or went: new ones of extensions are offered, the prompt is
    /// built anew.
    pub(super) fn refresh_tools(&self) {
        let known = self.known_tools();
        {
            let mut state = self.state.lock();
            let new = known.iter().filter(|one| !one.builtin);
            for one in new {
                let name = &one.tool.spec().name;
                if !state.active_tools.contains(name) {
                    state.active_tools.push(name.clone());
                }
            }
            let there = |name: &String| known.iter().any(|one| one.tool.spec().name == *name);
            state.active_tools.retain(there);
        }
        self.rebuild_system_prompt();
    }

    pub(super) fn activate_tools(&self, names: Vec<String>) {
        let known = self.known_tools();
        let there = |name: &String| known.iter().any(|one| one.tool.spec().name == *name);
        self.state.lock().active_tools = names.into_iter().filter(there).collect();
        self.rebuild_system_prompt();
    }

    pub(super) fn rebuild_system_prompt(&self) {
        let tools = self.active_tools();
        let cwd = self.cwd();
        let paths = self.config.paths.with_cwd(&cwd);
        let (texts, mut problems) = load_prompt_texts(&paths, &self.config.prompt);
        let files = match self.config.no_context_files {
            true => Vec::new(),
            false => {
                let (files, more) = load_context_files(&paths);
                problems.extend(more);
                files
            }
        };
        let skills = self.texts.lock().prompt_block();
        let docs = package_dir(&paths.home).and_then(|dir| Docs::find(&dir));
        let prompt = SystemPrompt {
            tools: tools
                .iter()
                .map(|tool| PromptTool {
                    name: &tool.spec().name,
                    snippet: tool.prompt_snippet(),
                    guidelines: tool.prompt_guidelines(),
                })
                .collect(),
            custom: texts.custom.as_deref(),
            append: texts.append.as_deref(),
            context_files: &files,
            skills: skills.as_deref(),
            docs: docs.as_ref(),
            date: chrono::Local::now().date_naive(),
            cwd: &cwd,
        }
        .build();
        for problem in problems {
            tracing::warn!("{problem}");
        }
        self.state.lock().system_prompt = prompt;
    }

    pub(super) fn system_prompt_text(&self) -> String {
        self.state.lock().system_prompt.clone()
    }

    /// As `pi.getAllTools` returns them.
    pub(super) fn describe_tools(&self) -> Value {
        let describe = |one: &KnownTool| {
            let spec = one.tool.spec();
            json!({
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
                "sourceInfo": one.source,
            })
        };
        self.known_tools().iter().map(describe).collect()
    }

    /// As `get_commands` and `pi.getCommands` return them.
    pub fn commands(&self) -> Value {
        let commands = self.extensions.commands();
        let describe = |(command, info): &(
            crate::extensions::registry::InvokableCommand,
            crate::extensions::registry::ExtensionInfo,
        )| {
            let mut described = json!({ "name": command.name });
            if let Some(description) = &command.command.description {
                described["description"] = json!(description);
            }
            described["source"] = json!("extension");
            described["sourceInfo"] = json!(info.source);
            described
        };
        let texts = self.texts.lock();
        commands
            .iter()
            .map(describe)
            .chain(texts.commands())
            .collect()
    }
}
