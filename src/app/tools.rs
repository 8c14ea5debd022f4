//! The tools of the model, and the system prompt that describes them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use super::AgentSession;
use super::prompt::options::{PromptFile, PromptOptions, SystemPromptState};
use super::prompt::resources::PromptResources;
use super::startup::config::AppConfig;
use super::startup::tool_selection::ToolSelection;
use super::state::State;
use pi_ai::models::registry::ModelRegistry;
use pi_extensions::Extensions;
use pi_resources::paths::Paths;
use pi_resources::prompts::context_files::{ContextFile, load_context_files};
use pi_resources::prompts::system_prompt_files::load_prompt_texts;
use pi_resources::settings::{HiddenVariables, Settings};
use pi_resources::source_info::SourceInfo;
use pi_tools::tool::Tool;
use pi_tools::{self, ToolOptions};

/// Chooses the tools that the model may call, and renders the system prompt that describes them.
pub(super) struct Tools {
    config: Arc<AppConfig>,
    settings: Arc<Settings>,
    extensions: Arc<Extensions>,
    resources: Arc<PromptResources>,
    models: Arc<ModelRegistry>,
    /// Tools that the extension which runs a child session brought.
    provided: Vec<Arc<dyn Tool>>,
    state: Arc<Mutex<State>>,
    names: Mutex<ToolNames>,
}

/// Names of the tools that exist, and of those that the model may call.
#[derive(Default)]
struct ToolNames {
    active: Vec<String>,
    /// All tools at the last refresh.
    known: HashSet<String>,
}

impl ToolNames {
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
struct KnownTool {
    tool: Arc<dyn Tool>,
    source: SourceInfo,
    builtin: bool,
}

impl Tools {
    pub fn new(
        config: Arc<AppConfig>,
        settings: Arc<Settings>,
        extensions: Arc<Extensions>,
        resources: Arc<PromptResources>,
        models: Arc<ModelRegistry>,
        provided: Vec<Arc<dyn Tool>>,
        state: Arc<Mutex<State>>,
    ) -> Self {
        Self {
            config,
            settings,
            extensions,
            resources,
            models,
            provided,
            state,
            names: Mutex::default(),
        }
    }

    fn cwd(&self) -> PathBuf {
        self.state.lock().session.cwd().to_path_buf()
    }

    /// Returns the options of the built-in tools.
    pub fn options(&self) -> ToolOptions {
        let settings = self.settings.values();
        let paths = &self.config.paths;
        ToolOptions {
            shell_path: settings.shell_path.as_ref().map(Into::into),
            command_prefix: settings.shell_command_prefix.clone(),
            auto_resize_images: settings.images.auto_resize,
            agent_bin_dir: Some(paths.bin()),
            settings_path: Some(paths.global_settings()),
            session_variables: self.session_variables(),
            hidden_variables: match &settings.env.hide {
                HiddenVariables::Names(names) => names.clone(),
                HiddenVariables::Keys(true) => self.models.key_variables(),
                HiddenVariables::Keys(false) => Vec::new(),
            },
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
    fn known(&self) -> Vec<KnownTool> {
        let mut known = self.registered();
        let choice = &self.config.tools;
        known.retain(|one| choice.allows(&one.tool.spec().name));
        known
    }

    /// Returns all tools. A tool of an extension replaces a built-in one of the same name.
    fn registered(&self) -> Vec<KnownTool> {
        let builtin = pi_tools::builtin(self.cwd(), self.options())
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
        let provided = self.provided.iter().map(|tool| {
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
    pub fn active(&self) -> Vec<Arc<dyn Tool>> {
        self.active_of(&self.known())
    }

    /// Returns the known tools that the model may call.
    fn active_of(&self, known: &[KnownTool]) -> Vec<Arc<dyn Tool>> {
        let active = self.active_names();
        let find = |name: &String| known.iter().find(|one| one.tool.spec().name == *name);
        let found = active.iter().filter_map(find);
        found.map(|one| one.tool.clone()).collect()
    }

    pub fn is_active(&self, name: &str) -> bool {
        self.names.lock().active.iter().any(|active| active == name)
    }

    pub fn active_names(&self) -> Vec<String> {
        self.names.lock().active.clone()
    }

    /// Returns the tools that are active by default: the built-in defaults, or those that the
    /// command line or the settings name, in their order, and the tools of extensions.
    pub fn default_names(&self) -> Vec<String> {
        self.default_names_of(&self.known())
    }

    fn default_names_of(&self, known: &[KnownTool]) -> Vec<String> {
        let selection = self.selection();
        let is_known = |name: &String| known.iter().any(|one| one.tool.spec().name == *name);
        let mut names = selection.names.clone();
        names.retain(is_known);
        for one in known {
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
    pub fn unknown(&self) -> Option<String> {
        let tools = self.registered();
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
    pub fn activate_defaults(&self) {
        let known = self.known();
        let active = self.default_names_of(&known);
        let names = known.iter().map(|one| one.tool.spec().name.clone());
        *self.names.lock() = ToolNames {
            active,
            known: names.collect(),
        };
        self.render_system_prompt(&known);
    }

    /// Updates the tools after extensions registered or removed some: new ones become active, those
    /// that were deactivated stay so. Rebuilds the system prompt.
    pub fn refresh(&self) {
        let known = self.names.lock().known.clone();
        let selection = self.selection();
        self.offer(|one| {
            !known.contains(&one.tool.spec().name)
                && selection.takes(one.tool.as_ref(), one.builtin)
        });
    }

    /// Updates the tools after a reload: tools of extensions become active again, and built-in
    /// tools if the settings name them now and did not `before`.
    pub fn refresh_all(&self, before: &[String]) {
        let now = self.default_names();
        self.offer(|one| {
            let name = &one.tool.spec().name;
            now.contains(name) && (!one.builtin || !before.contains(name))
        });
    }

    fn offer(&self, wanted: impl Fn(&KnownTool) -> bool) {
        let known = self.known();
        let name = |one: &KnownTool| one.tool.spec().name.clone();
        let added = known.iter().filter(|one| wanted(one)).map(name);
        let all = known.iter().map(name).collect();
        self.names.lock().offer(added, all);
        self.render_system_prompt(&known);
    }

    /// Activates these tools, as far as they exist, and no others.
    pub fn activate(&self, names: Vec<String>) {
        let known = self.known();
        let is_known = |name: &String| known.iter().any(|one| one.tool.spec().name == *name);
        self.names.lock().active = names.into_iter().filter(is_known).collect();
        self.render_system_prompt(&known);
    }

    /// Renders the system prompt for the active tools and the resources.
    pub fn rebuild_system_prompt(&self) {
        self.render_system_prompt(&self.known());
    }

    /// Does what [`Self::rebuild_system_prompt`] does, for a caller that has the known tools.
    fn render_system_prompt(&self, known: &[KnownTool]) {
        let tools = self.active_of(known);
        let cwd = self.cwd();
        let paths = self.config.paths.with_cwd(&cwd);
        let (mut texts, mut problems) = load_prompt_texts(&paths, &self.config.prompt);
        let provided = &self.resources.provided;
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
            skills: self.resources.skills(),
            sections: Default::default(),
            force_system_prompt: None,
        };
        let prompt = options.render(&self.config.paths.home);
        self.state.lock().system_prompt = SystemPromptState {
            text: prompt,
            options,
            ..SystemPromptState::default()
        };
    }

    /// Returns the tools in the format of `pi.getAllTools`.
    pub fn describe(&self) -> Value {
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
        self.known().iter().map(describe).collect()
    }
}

impl AgentSession {
    pub(super) fn cwd(&self) -> PathBuf {
        self.state.lock().session.cwd().to_path_buf()
    }

    /// Returns the session's locations. Looks at the disk for what the project brings, so callers
    /// that need the locations more than once pass them on.
    pub(super) fn paths(&self) -> Paths {
        self.config.paths.with_cwd(&self.cwd())
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
        commands.chain(self.prompt_resources.commands()).collect()
    }
}

/// A slash command of an extension, a template or a skill.
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
