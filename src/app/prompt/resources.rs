//! Skills and prompt templates, which a prompt may call by name, and themes, which are found the
//! same way.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::AgentSession;
use crate::startup::config::{AppConfig, KindFlags};
use crate::tools::{CommandSource, SlashCommand};
use pi_extensions::child::ChildResources;
use pi_resources::diagnostic::Diagnostic;
use pi_resources::discovery::{NamedPath, ResourceSources};
use pi_resources::paths::Paths;
use pi_resources::prompts::templates::{
    PromptTemplate, expand_prompt_template, load_prompt_templates,
};
use pi_resources::settings::Settings;
use pi_resources::skills::{Skill, expand_skill_command, load_skills};
use pi_resources::themes::{BUILT_IN, SYSTEM, Theme, find_theme, load_themes};

/// Loads skills, prompt templates and themes, and keeps them for prompts.
pub(crate) struct PromptResources {
    config: Arc<AppConfig>,
    settings: Arc<Settings>,
    /// Resources that replace those from files in a child session.
    pub provided: ChildResources,
    loaded: Mutex<LoadedResources>,
}

#[derive(Default)]
struct LoadedResources {
    skills: Vec<Skill>,
    templates: Vec<PromptTemplate>,
    themes: Vec<Theme>,
}

/// Paths from `resources_discover` handlers. Relative ones are resolved against the session's
/// folder.
#[derive(Default)]
pub(crate) struct DiscoveredPaths {
    pub skills: Vec<NamedPath>,
    pub prompts: Vec<NamedPath>,
    pub themes: Vec<NamedPath>,
}

impl LoadedResources {
    /// Loads the resources of the user and of extensions; the second value lists problems.
    fn load(
        config: &AppConfig,
        settings: &Settings,
        paths: &Paths,
        added: &DiscoveredPaths,
    ) -> (Self, Vec<String>) {
        let sources = |flags: &KindFlags| ResourceSources {
            paths,
            settings,
            cli_extensions: &config.extensions,
            discover: !flags.only_named,
        };
        let named = |flags: &KindFlags, added: &[NamedPath]| -> Vec<NamedPath> {
            let by_user = flags.named.iter().map(|path| NamedPath::by_user(path));
            by_user.chain(added.iter().cloned()).collect()
        };
        let flags = &config.resources;
        let all = named(&flags.skills, &added.skills);
        let (skills, mut problems) = load_skills(&sources(&flags.skills), &all);
        let all = named(&flags.prompts, &added.prompts);
        let (templates, more) = load_prompt_templates(&sources(&flags.prompts), &all);
        problems.extend(more);
        let all = named(&flags.themes, &added.themes);
        let (themes, more) = load_themes(&sources(&flags.themes), &all);
        problems.extend(more);
        let problems = problems.iter().map(ToString::to_string).collect();
        let resources = Self {
            skills,
            templates,
            themes,
        };
        (resources, problems)
    }

    /// Returns the slash commands that follow those of extensions in `get_commands`.
    fn commands(&self) -> impl Iterator<Item = SlashCommand> {
        let templates = self.templates.iter().map(|template| SlashCommand {
            name: template.name.clone(),
            description: Some(template.description.clone()),
            source: CommandSource::Prompt,
            source_info: template.source_info.clone(),
        });
        let skills = self.skills.iter().map(|skill| SlashCommand {
            name: format!("skill:{}", skill.name),
            description: Some(skill.description.clone()),
            source: CommandSource::Skill,
            source_info: skill.source_info.clone(),
        });
        templates.chain(skills)
    }
}

impl PromptResources {
    pub fn new(config: Arc<AppConfig>, settings: Arc<Settings>, provided: ChildResources) -> Self {
        Self {
            config,
            settings,
            provided,
            loaded: Mutex::default(),
        }
    }

    /// Loads all resources of a session with these locations. Returns problems.
    pub fn load(&self, paths: &Paths, added: &DiscoveredPaths) -> Vec<String> {
        let (mut loaded, problems) =
            LoadedResources::load(&self.config, &self.settings, paths, added);
        if let Some(skills) = &self.provided.skills {
            loaded.skills = skills.clone();
        }
        if let Some(prompts) = &self.provided.prompts {
            loaded.templates = prompts.clone();
        }
        *self.loaded.lock() = loaded;
        problems
    }

    pub fn skills(&self) -> Vec<Skill> {
        self.loaded.lock().skills.clone()
    }

    /// Returns the slash commands that follow those of extensions in `get_commands`.
    pub fn commands(&self) -> Vec<SlashCommand> {
        self.loaded.lock().commands().collect()
    }

    /// Returns the theme that the settings name, if it is a loaded file.
    pub fn chosen_theme(&self) -> Option<Theme> {
        let name = self.settings.theme()?;
        find_theme(&self.loaded.lock().themes, &name).cloned()
    }

    /// Returns the themes in the format of the extension API, and the name of the current one.
    pub fn describe_themes(&self) -> Value {
        let loaded = self.loaded.lock();
        let described: Vec<Value> = loaded.themes.iter().map(Theme::describe).collect();
        json!({ "current": self.settings.theme(), "themes": described })
    }

    /// Returns a warning if `--use-theme` names a theme that does not exist once the extensions
    /// have loaded. A pair (`light/dark`) is for terminals with a light and a dark background.
    pub fn unknown_theme(&self) -> Option<String> {
        let wanted = self.config.theme.as_ref()?;
        let themes = &self.loaded.lock().themes;
        let is_there = |name: &&str| {
            BUILT_IN.contains(name) || *name == SYSTEM || find_theme(themes, name).is_some()
        };
        let unknown = wanted.split('/').find(|name| !is_there(name))?;
        let named = themes.iter().map(|theme| theme.name.as_str());
        let known: Vec<&str> = BUILT_IN.into_iter().chain(named).collect();
        Some(format!(
            "--use-theme: there is no theme \"{unknown}\". There are: {}",
            known.join(", ")
        ))
    }

    /// Expands a call of a skill or prompt template at the start of the text. Fails if the skill
    /// cannot be read.
    pub fn expand(&self, text: &str) -> Result<Option<String>, Diagnostic> {
        let loaded = self.loaded.lock();
        let template = expand_prompt_template(text, &loaded.templates);
        let skill = expand_skill_command(text, &loaded.skills)?;
        Ok(skill.or(template))
    }
}

impl AgentSession {
    pub(crate) fn load_prompt_resources(&self, paths: &Paths, added: &DiscoveredPaths) {
        let problems = self.prompt_resources.load(paths, added);
        self.pending_warnings.lock().extend(problems);
    }

    /// Expands a call of a skill or prompt template at the start of the text. Reports a skill that
    /// cannot be read.
    pub(crate) async fn expand(&self, text: String) -> String {
        if !text.starts_with('/') {
            return text;
        }
        match self.prompt_resources.expand(&text) {
            Ok(expanded) => expanded.unwrap_or(text),
            Err(problem) => {
                // The original names the file of the skill, too.
                let file = problem.path.display().to_string();
                self.report(&file, "skill_expansion", problem).await;
                text
            }
        }
    }
}
