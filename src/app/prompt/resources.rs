//! Skills and prompt templates, which a prompt may call by name, and themes, which are found the
//! same way.

use std::path::Path;

use serde_json::{Value, json};

use crate::AgentSession;
use crate::startup::config::{AppConfig, KindFlags};
use crate::tools::{CommandSource, SlashCommand};
use pi_resources::discovery::{NamedPath, ResourceSources};
use pi_resources::prompts::templates::{
    PromptTemplate, expand_prompt_template, load_prompt_templates,
};
use pi_resources::settings::Settings;
use pi_resources::skills::{Skill, expand_skill_command, load_skills};
use pi_resources::themes::{BUILT_IN, SYSTEM, Theme, find_theme, load_themes};

#[derive(Default)]
pub(crate) struct PromptResources {
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

impl PromptResources {
    /// Loads the resources of the user and of extensions; the second value lists problems.
    pub fn load(
        config: &AppConfig,
        settings: &Settings,
        cwd: &Path,
        added: &DiscoveredPaths,
    ) -> (Self, Vec<String>) {
        let paths = config.paths.with_cwd(cwd);
        let sources = |flags: &KindFlags| ResourceSources {
            paths: &paths,
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

    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// Returns the slash commands that follow those of extensions in `get_commands`.
    pub fn commands(&self) -> impl Iterator<Item = SlashCommand> {
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

impl AgentSession {
    pub(crate) fn load_prompt_resources(&self, cwd: &Path, added: &DiscoveredPaths) {
        let (mut resources, problems) =
            PromptResources::load(&self.config, &self.settings, cwd, added);
        let provided = &self.child_link.texts;
        if let Some(skills) = &provided.skills {
            resources.skills = skills.clone();
        }
        if let Some(prompts) = &provided.prompts {
            resources.templates = prompts.clone();
        }
        *self.prompt_resources.lock() = resources;
        self.pending_warnings.lock().extend(problems);
    }

    /// Returns all loaded themes.
    pub fn themes(&self) -> Vec<Theme> {
        self.prompt_resources.lock().themes.clone()
    }

    /// Returns the theme that the settings name, if it is a loaded file.
    pub(crate) fn chosen_theme(&self) -> Option<Theme> {
        let name = self.settings.theme()?;
        find_theme(&self.prompt_resources.lock().themes, &name).cloned()
    }

    /// Returns the themes in the format of the extension API, and the name of the current one.
    pub(crate) fn describe_themes(&self) -> Value {
        let themes = self.themes();
        let described: Vec<Value> = themes.iter().map(Theme::describe).collect();
        json!({ "current": self.settings.theme(), "themes": described })
    }

    /// Returns a warning if `--use-theme` names a theme that does not exist once the extensions
    /// have loaded. A pair (`light/dark`) is for terminals with a light and a dark background.
    pub(crate) fn unknown_theme(&self) -> Option<String> {
        let wanted = self.config.theme.as_ref()?;
        let themes = self.themes();
        let is_there = |name: &&str| {
            BUILT_IN.contains(name) || *name == SYSTEM || find_theme(&themes, name).is_some()
        };
        let unknown = wanted.split('/').find(|name| !is_there(name))?;
        let named = themes.iter().map(|theme| theme.name.as_str());
        let known: Vec<&str> = BUILT_IN.into_iter().chain(named).collect();
        Some(format!(
            "--use-theme: there is no theme \"{unknown}\". There are: {}",
            known.join(", ")
        ))
    }

    /// Expands a call of a skill or prompt template at the start of the text.
    pub(crate) async fn expand(&self, text: String) -> String {
        if !text.starts_with('/') {
            return text;
        }
        let (skill, template) = {
            let resources = self.prompt_resources.lock();
            (
                expand_skill_command(&text, &resources.skills),
                expand_prompt_template(&text, &resources.templates),
            )
        };
        match skill {
            Ok(Some(expanded)) => expanded,
            Ok(None) => template.unwrap_or(text),
            Err(problem) => {
                self.report("<runtime>", "skill_expansion", problem).await;
                text
            }
        }
    }
}
