//! The tools of the model, and the system prompt that describes them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::AgentSession;
use super::prompt::options::{PromptFile, PromptOptions, SystemPromptState};
use super::startup::tool_selection::ToolSelection;
use pi_resources::prompts::context_files::{ContextFile, load_context_files};
use pi_resources::prompts::system_prompt_files::load_prompt_texts;
use pi_resources::source_info::SourceInfo;
use pi_tools::tool::Tool;
use pi_tools::{self, ToolOptions};

/// Names of the tools that exist, and of those that the model may call.
#[derive(Default)]
pub(super) struct ToolSet {
    pub active: Vec<String>,
    /// All tools at the last refresh.
    known: HashSet<String>,
}

impl ToolSet {
    /// Activates the tools `added` and deactivates those that do not exist any more.
    fn offer(&mut self, added: impl Iterator<Item = String>, known: HashSet<String>) {
        for name in added {
            if !self.active.contains(&name) {
                self.active.push(name);
            }
        }
        self.known = known;
        self.active.retain(|name| self.known.contains(name));
    }
}

/// A tool and its source.
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
            session_variables: self.session_variables(),
        }
    }

    /// Environment variables that describe the session to shell commands, as in newer versions of
    /// the original.
    fn session_variables(&self) -> Vec<(&'static str, String)> {
        let state = self.state.lock();
        let mut variables = vec![
            ("PI_SESSION_ID", state.session.id().to_owned()),
            ("PI_REASONING_LEVEL", state.thinking.as_str().to_owned()),
        ];
        if let Some(path) = state.session.path() {
            variables.push(("PI_SESSION_FILE", path.display().to_string()));
        }
        if let Some(model) = &state.model {
            variables.push(("PI_PROVIDER", model.provider.clone()));
            variables.push(("PI_MODEL", model.id.clone()));
        }
        variables
    }

    /// Returns the tools that the session may have.
    pub(super) fn known_tools(&self) -> Vec<KnownTool> {
        let mut known = self.registered_tools();
        let choice = &self.config.tools;
        known.retain(|one| choice.allows(&one.tool.spec().name));
        known
    }

    /// Returns all tools. A tool of an extension replaces a built-in one of the same name.
    fn registered_tools(&self) -> Vec<KnownTool> {
        let builtin = pi_tools::builtin(self.cwd(), self.tool_options())
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
        let of_extensions = self.extensions.tools().into_iter();
        let of_extensions = of_extensions.map(|(tool, info)| (tool, info.source));
        let provided = self.child_link.tools.iter().map(|tool| {
            let source = SourceInfo::sdk(&tool.spec().name);
            (tool.clone(), source)
        });
        for (tool, source) in of_extensions.chain(provided) {
            let tool = KnownTool {
                tool,
                source,
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

    /// Returns the tools that the model may call.
    pub(super) fn active_tools(&self) -> Vec<Arc<dyn Tool>> {
        let active = self.state.lock().tools.active.clone();
        let known = self.known_tools();
        let find = |name: &String| known.iter().find(|one| one.tool.spec().name == *name);
        let found = active.iter().filter_map(find);
        found.map(|one| one.tool.clone()).collect()
    }

    /// Returns the tools that are active by default: the built-in defaults, or those that the
    /// command line or the settings name, in their order, and the tools of extensions.
    pub(super) fn default_tools(&self) -> Vec<String> {
        let selection = self.selection();
        let known = self.known_tools();
        let is_known = |name: &String| known.iter().any(|one| one.tool.spec().name == *name);
        let mut names = selection.names.clone();
        names.retain(is_known);
        for one in &known {
            let name = &one.tool.spec().name;
            if !names.contains(name) && selection.takes(one.tool.as_ref(), one.builtin) {
                names.push(name.clone());
            }
        }
        names
    }

    fn selection(&self) -> ToolSelection {
        let settings = self.settings.values();
        ToolSelection::new(&self.config.tools, settings.default_tools.as_deref())
    }

    /// Returns a warning if `--tools` names tools that do not exist once the extensions have
    /// loaded.
    pub(super) fn unknown_tools(&self) -> Option<String> {
        // The extension that starts a child session chooses its tools.
        if self.child_link.is_child {
            return None;
        }
        let tools = self.registered_tools();
        let names = tools.iter().map(|one| one.tool.spec().name.as_str());
        let names: Vec<&str> = names.collect();
        let unknown = self.config.tools.unknown(&names);
        (!unknown.is_empty()).then(|| {
            format!(
                "--tools: there is no tool \"{}\". There are: {}",
                unknown.join("\", \""),
                names.join(", ")
            )
        })
    }

    /// Activates the default tools at the start.
    pub(super) fn activate_default_tools(&self) {
        let (active, known) = (self.default_tools(), self.tool_names());
        self.state.lock().tools = ToolSet { active, known };
        self.rebuild_system_prompt();
    }

    fn tool_names(&self) -> HashSet<String> {
        let known = self.known_tools();
        known
            .iter()
            .map(|one| one.tool.spec().name.clone())
            .collect()
    }

    /// Updates the tools after extensions registered or removed some: new ones become active, those
    /// that were deactivated stay so. Rebuilds the system prompt.
    pub(super) fn refresh_tools(&self) {
        let known = self.state.lock().tools.known.clone();
        let selection = self.selection();
        self.offer_tools(|one| {
            !known.contains(&one.tool.spec().name)
                && selection.takes(one.tool.as_ref(), one.builtin)
        });
    }

    /// Updates the tools after a reload: tools of extensions become active again, and built-in
    /// tools if the settings name them now and did not `before`.
    pub(super) fn refresh_all_tools(&self, before: &[String]) {
        let now = self.default_tools();
        self.offer_tools(|one| {
            let name = &one.tool.spec().name;
            now.contains(name) && (!one.builtin || !before.contains(name))
        });
    }

    fn offer_tools(&self, wanted: impl Fn(&KnownTool) -> bool) {
        let known = self.known_tools();
        let name = |one: &KnownTool| one.tool.spec().name.clone();
        let added = known.iter().filter(|one| wanted(one)).map(name);
        let all = known.iter().map(name).collect();
        self.state.lock().tools.offer(added, all);
        self.rebuild_system_prompt();
    }

    pub(super) fn activate_tools(&self, names: Vec<String>) {
        let known = self.known_tools();
        let is_known = |name: &String| known.iter().any(|one| one.tool.spec().name == *name);
        self.state.lock().tools.active = names.into_iter().filter(is_known).collect();
        self.rebuild_system_prompt();
    }

    pub(super) fn rebuild_system_prompt(&self) {
        let tools = self.active_tools();
        let cwd = self.cwd();
        let paths = self.config.paths.with_cwd(&cwd);
        let (mut texts, mut problems) = load_prompt_texts(&paths, &self.config.prompt);
        let provided = &self.child_link.texts;
        texts.custom = provided.system_prompt.clone().or(texts.custom);
        texts.append = provided.append_system_prompt.clone().or(texts.append);
        let files = match (&provided.context_files, self.config.no_context_files) {
            (Some(files), _) => files
                .iter()
                .map(|file| ContextFile {
                    path: file.path.clone(),
                    content: file.content.clone(),
                })
                .collect(),
            (None, true) => Vec::new(),
            (None, false) => {
                let (files, more) = load_context_files(&paths);
                problems.extend(more);
                files
            }
        };
        for problem in problems {
            tracing::warn!("{problem}");
        }
        let name = |tool: &Arc<dyn Tool>| tool.spec().name.clone();
        let snippets = tools
            .iter()
            .filter_map(|tool| Some((name(tool), tool.prompt_snippet()?.to_string())));
        let guidelines = tools
            .iter()
            .filter(|tool| !tool.prompt_guidelines().is_empty())
            .map(|tool| (name(tool), tool.prompt_guidelines().to_vec()));
        let options = PromptOptions {
            custom_prompt: texts.custom,
            selected_tools: tools.iter().map(name).collect(),
            tool_snippets: snippets.collect(),
            tool_guidelines: guidelines.collect(),
            prompt_guidelines: Vec::new(),
            append_system_prompt: texts.append,
            cwd: cwd.to_string_lossy().into_owned(),
            context_files: files
                .into_iter()
                .map(|file| PromptFile {
                    path: file.path.to_string_lossy().into_owned(),
                    content: file.content,
                })
                .collect(),
            skills: self.prompt_resources.lock().skills().to_vec(),
            sections: Default::default(),
            force_system_prompt: None,
        };
        let prompt = self.render_prompt(&options);
        self.state.lock().system_prompt = SystemPromptState {
            text: prompt,
            options,
            ..SystemPromptState::default()
        };
    }

    /// Returns the system prompt of the latest run, or of the next one if none has been changed.
    pub(super) fn system_prompt_text(&self) -> String {
        self.state.lock().system_prompt.current().to_owned()
    }

    /// Returns the prompt and the options that `before_agent_start` handlers receive.
    pub(super) fn base_prompt(&self) -> (String, PromptOptions) {
        let state = self.state.lock();
        let prompt = &state.system_prompt;
        (prompt.text.clone(), prompt.options.clone())
    }

    /// Returns the tools in the format of `pi.getAllTools`.
    pub(super) fn describe_tools(&self) -> Value {
        let describe = |one: &KnownTool| {
            let spec = one.tool.spec();
            let guidelines = one.tool.prompt_guidelines();
            let mut described = json!({
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
                "sourceInfo": one.source,
            });
            if !guidelines.is_empty() {
                described["promptGuidelines"] = json!(guidelines);
            }
            described
        };
        self.known_tools().iter().map(describe).collect()
    }

    /// Returns the slash commands in the format of `get_commands` and `pi.getCommands`.
    pub fn commands(&self) -> Vec<SlashCommand> {
        let commands = self.extensions.commands().into_iter();
        let commands = commands.map(|(command, info)| SlashCommand {
            name: command.name,
            description: command.command.description,
            source: CommandSource::Extension,
            source_info: info.source,
        });
        commands
            .chain(self.prompt_resources.lock().commands())
            .collect()
    }
}

/// A slash command of a prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub source: CommandSource,
    pub source_info: SourceInfo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommandSource {
    Extension,
    Prompt,
    Skill,
}
