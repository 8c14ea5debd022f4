//! Finds skills, context files and prompts for extensions that start a session with other
//! resources (`loadSkills`, `DefaultResourceLoader`), as pi does for itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use js_runtime::HostError;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::bridge::{BridgeResult, parse};
use pi_packages::Packages;
use pi_resources::diagnostic::Diagnostic;
use pi_resources::discovery::{NamedPath, ResourceSources};
use pi_resources::packages::install_paths::InstallPaths;
use pi_resources::packages::run::Output;
use pi_resources::packages::source::PackageSource;
use pi_resources::paths::{Paths, ResourceKind};
use pi_resources::prompts::context_files::load_context_files;
use pi_resources::prompts::system_prompt_files::{PromptFlags, load_prompt_texts, prompt_file};
use pi_resources::prompts::templates::load_prompt_templates;
use pi_resources::settings::Settings;
use pi_resources::skills::{Skill, load_skills, skills_block};
use pi_resources::source_info::SourceScope;
use pi_resources::themes::{Theme, load_themes};
use pi_resources::trust::answers::record;
use pi_resources::trust::{has_something_to_trust, recorded_answer};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceArgs {
    cwd: PathBuf,
    agent_dir: PathBuf,
    #[serde(default, alias = "skillPaths")]
    pub(crate) paths: Vec<String>,
    #[serde(default = "default_true")]
    pub(crate) include_defaults: bool,
    /// Whether resources of the project are used, unless the user has decided otherwise.
    #[serde(default = "default_true")]
    project_trusted: bool,
    /// Settings that replace those of the user and the project.
    settings: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct ProjectArgs {
    cwd: PathBuf,
}

/// A package that the settings name, or could name.
#[derive(Deserialize)]
struct PackageArgs {
    #[serde(flatten)]
    resources: ResourceArgs,
    source: String,
    scope: SourceScope,
}

/// Arguments for reading a recorded trust decision.
#[derive(Deserialize)]
struct TrustArgs {
    file: PathBuf,
    cwd: PathBuf,
}

/// Arguments for recording trust decisions.
#[derive(Deserialize)]
struct RecordTrustArgs {
    file: PathBuf,
    changes: Vec<TrustChange>,
}

#[derive(Deserialize)]
struct TrustChange {
    path: PathBuf,
    decision: Option<bool>,
}

#[derive(Deserialize)]
struct SkillsArgs {
    skills: Vec<Skill>,
}

fn default_true() -> bool {
    true
}

impl ResourceArgs {
    pub(crate) fn paths(&self) -> Paths {
        let paths = Paths::from_env(&self.cwd);
        paths.for_extension(self.agent_dir.clone(), self.project_trusted)
    }

    pub(crate) fn settings(&self, paths: &Paths) -> Arc<Settings> {
        match &self.settings {
            Some(settings) => Settings::in_memory(settings.clone()),
            None => Settings::load(paths),
        }
    }

    fn named(&self) -> Vec<NamedPath> {
        let paths = self.paths.iter();
        paths.map(|path| NamedPath::by_user(path)).collect()
    }
}

/// Serves `resources.*`; `None` for other methods.
pub fn serve(method: &str, args: &str) -> Option<BridgeResult> {
    Some(match method {
        "resources.isProjectTrusted" => {
            parse::<ResourceArgs>(method, args).map(|place| json!(!place.paths().ignores_project()))
        }
        "resources.hasSomethingToTrust" => parse::<ProjectArgs>(method, args).map(|ProjectArgs { cwd }| {
            let home = Paths::from_env(&cwd).home;
            json!(has_something_to_trust(&home, &cwd))
        }),
        "resources.trust" => parse::<TrustArgs>(method, args).and_then(|TrustArgs { file, cwd }| {
            let decision = recorded_answer(&file, &cwd).map_err(|why| {
                HostError::new(why.to_string())
            })?;
            let entry = |(folder, decision): (PathBuf, bool)| {
                json!({ "path": folder.to_string_lossy(), "decision": decision })
            };
            Ok(decision.map_or(Value::Null, entry))
        }),
        "resources.recordTrust" => parse::<RecordTrustArgs>(method, args).and_then(|args| {
            let changes = args.changes.into_iter();
            let changes = changes.map(|change| {
                let folder = std::fs::canonicalize(&change.path).unwrap_or(change.path);
                (folder, change.decision)
            });
            record(&args.file, &changes.collect::<Vec<_>>())
                .map(|()| Value::Null)
                .map_err(|error| HostError::new(error.to_string()))
        }),
        "resources.skills" => parse::<ResourceArgs>(method, args).and_then(|place| {
            let paths = place.paths();
            let settings = place.settings(&paths);
            let sources = sources(&paths, &settings, place.include_defaults);
            let (skills, problems) = load_skills(&sources, &place.named());
            Ok(json!({ "skills": skills_json(skills)?, "diagnostics": diagnostics_json(&problems) }))
        }),
        "resources.skillsBlock" => {
            parse::<SkillsArgs>(method, args).map(|args| json!(skills_block(&args.skills)))
        }
        "resources.prompts" => parse::<ResourceArgs>(method, args).map(|place| {
            let paths = place.paths();
            let settings = place.settings(&paths);
            let sources = sources(&paths, &settings, place.include_defaults);
            let (templates, problems) = load_prompt_templates(&sources, &place.named());
            json!({ "prompts": templates, "diagnostics": diagnostics_json(&problems) })
        }),
        "resources.themes" => parse::<ResourceArgs>(method, args).map(|place| {
            let paths = place.paths();
            let settings = place.settings(&paths);
            let sources = sources(&paths, &settings, place.include_defaults);
            let (themes, problems) = load_themes(&sources, &place.named());
            let themes: Vec<Value> = themes.iter().map(Theme::describe).collect();
            json!({ "themes": themes, "diagnostics": diagnostics_json(&problems) })
        }),
        "resources.packages" => parse::<ResourceArgs>(method, args).map(|place| {
            let paths = place.paths();
            let settings = place.settings(&paths);
            let configured = packages(&paths, &settings).configured();
            let described = configured.into_iter().map(|one| {
                let mut described = json!({
                    "source": one.source, "scope": one.scope, "filtered": one.filtered,
                });
                if let Some(folder) = one.folder {
                    described["installedPath"] = folder.to_string_lossy().into();
                }
                described
            });
            described.collect()
        }),
        "resources.packagePath" => parse::<PackageArgs>(method, args).map(|args| {
            let paths = args.resources.paths();
            let settings = args.resources.settings(&paths);
            let source = PackageSource::parse(&args.source).ok();
            let place = |source| InstallPaths::new(&paths, &settings).package_folder(&source, args.scope);
            let folder = source.map(place).filter(|folder| folder.exists());
            json!(folder.map(|folder| folder.to_string_lossy().into_owned()))
        }),
        "resources.found" => parse::<ResourceArgs>(method, args).map(|place| {
            let paths = place.paths();
            let settings = place.settings(&paths);
            let sources = ResourceSources {
                cli_extensions: &place.paths,
                ..sources(&paths, &settings, place.include_defaults)
            };
            let mut found = json!({ "installFailures": [] });
            for (name, kind) in [
                ("extensions", ResourceKind::Extensions),
                ("skills", ResourceKind::Skills),
                ("prompts", ResourceKind::Prompts),
                ("themes", ResourceKind::Themes),
            ] {
                let resources = sources.find(kind).paths.into_iter().map(|one| {
                    let path = one.path.to_string_lossy();
                    json!({ "path": path, "enabled": true, "metadata": one.source_info })
                });
                found[name] = resources.collect();
            }
            found
        }),
        "resources.contextFiles" => parse::<ResourceArgs>(method, args).map(|place| {
            let (files, _) = load_context_files(&place.paths());
            let file = |path: PathBuf, content: String| {
                json!({ "path": path.to_string_lossy(), "content": content })
            };
            let files = files.into_iter().map(|one| file(one.path, one.content));
            files.collect()
        }),
        "resources.promptTexts" => parse::<ResourceArgs>(method, args).map(|place| {
            let paths = place.paths();
            let (texts, _) = load_prompt_texts(&paths, &PromptFlags::default());
            let mut described = json!({});
            for (name, text) in [("system", texts.custom), ("append", texts.append)] {
                if let Some(text) = text {
                    described[name] = text.into();
                }
            }
            for (name, file) in [
                ("systemFile", "SYSTEM.md"),
                ("appendFile", "APPEND_SYSTEM.md"),
            ] {
                if let Some(path) = prompt_file(&paths, file) {
                    described[name] = path.to_string_lossy().into();
                }
            }
            described
        }),
        _ => return None,
    })
}

/// Reads packages without output to the user.
fn packages<'a>(paths: &'a Paths, settings: &'a Settings) -> Packages<'a> {
    Packages::new(paths, settings, Output::Silent(Duration::ZERO), &|_| {})
}

fn sources<'a>(paths: &'a Paths, settings: &'a Settings, discover: bool) -> ResourceSources<'a> {
    ResourceSources {
        paths,
        settings,
        cli_extensions: &[],
        discover,
    }
}

fn skills_json(skills: Vec<Skill>) -> BridgeResult {
    serde_json::to_value(skills).map_err(|error| HostError::new(error.to_string()))
}

fn diagnostics_json(problems: &[Diagnostic]) -> Value {
    let problems = problems.iter().map(|problem| {
        json!({
            "type": "warning",
            "message": problem.message,
            "path": problem.path.to_string_lossy(),
        })
    });
    problems.collect()
}
