//! Skills and prompt templates: texts that a prompt may call by name, and that
//! the system prompt tells of. Themes, which are found the same way.

use std::path::Path;

use serde_json::{Value, json};

use super::AgentSession;
use super::config::{AppConfig, KindFlags};
use super::tools::{CommandSource, SlashCommand};
use crate::resources::discovery::{NamedPath, ResourceSources};
use crate::resources::prompts::templates::{
    PromptTemplate, expand_prompt_template, load_prompt_templates,
};
use crate::resources::settings::Settings;
use crate::resources::skills::{Skill, expand_skill_command, load_skills};
use crate::resources::themes::{BUILT_IN, SYSTEM, Theme, find_theme, load_themes};

#[derive(Default)]
pub(super) struct Texts {
    skills: Vec<Skill>,
    templates: Vec<PromptTemplate>,
    themes: Vec<Theme>,
}

/// Paths that `resources_discover` handlers named; relative ones count from the
/// session's folder.
#[derive(Default)]
pub(super) struct Added {
    pub skills: Vec<NamedPath>,
    pub prompts: Vec<NamedPath>,
    pub themes: Vec<NamedPath>,
}

impl Texts {
    /// What the user has and what extensions add to it, and what was odd about it.
    pub fn load(
        config: &AppConfig,
        settings: &Settings,
        cwd: &Path,
        added: &Added,
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
        let texts = Self {
            skills,
            templates,
            themes,
        };
        (texts, problems)
    }

    pub fn skills(&self) -> &[Skill] {
        &self.skills
    }

    /// After the commands of extensions in `get_commands`.
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
    pub(super) fn load_texts(&self, cwd: &Path, added: &Added) {
        let (mut texts, problems) = Texts::load(&self.config, &self.settings, cwd, added);
        let given = &self.beside.texts;
        if let Some(skills) = &given.skills {
            texts.skills = skills.clone();
        }
        if let Some(prompts) = &given.prompts {
            texts.templates = prompts.clone();
        }
        *self.texts.lock() = texts;
        self.notes.lock().extend(problems);
    }

    /// For the mode that draws.
    pub fn themes(&self) -> Vec<Theme> {
        self.texts.lock().themes.clone()
    }

    /// The theme that the settings choose, if it is a file.
    pub(super) fn chosen_theme(&self) -> Option<Theme> {
        let name = self.settings.theme()?;
        find_theme(&self.texts.lock().themes, &name).cloned()
    }

    /// The themes as extensions get them, and which one the settings choose.
    pub(super) fn themes_described(&self) -> Value {
        let themes = self.themes();
        let described: Vec<Value> = themes.iter().map(Theme::describe).collect();
        json!({ "current": self.settings.theme(), "themes": described })
    }

    /// Returns a warning if `--use-theme` names a theme that does not exist once the extensions
    /// have loaded. A pair (`light/dark`) is for terminals with a light and a dark background.
    pub(super) fn unknown_theme(&self) -> Option<String> {
        let wanted = self.config.theme.as_ref()?;
        let themes = self.themes();
        let is_there = |name: &&str| {
            BUILT_IN.contains(name) || *name == SYSTEM || find_theme(&themes, name).is_some()
        };
        let unknown = wanted.split('/').find(|name| !is_there(name))?;
        let named = themes.iter().map(|theme| theme.name.as_str());
        let there: Vec<&str> = BUILT_IN.into_iter().chain(named).collect();
        Some(format!(
            "--use-theme: there is no theme \"{unknown}\". There are: {}",
            there.join(", ")
        ))
    }

    /// The text with a skill or a template in the place of its name.
    pub(super) async fn expand(&self, text: String) -> String {
        if !text.starts_with('/') {
            return text;
        }
        let (skill, template) = {
            let texts = self.texts.lock();
            (
                expand_skill_command(&text, &texts.skills),
                expand_prompt_template(&text, &texts.templates),
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
