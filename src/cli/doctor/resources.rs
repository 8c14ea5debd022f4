//! Checks themes, skills, prompt templates, packages and extensions: whether they exist and can be
//! read.

use std::path::{Path, PathBuf};

use js_runtime::{SyntaxProblem, check_syntax};

use super::Doctor;
use pi_packages::{Output, Packages};
use pi_resources::diagnostic::Diagnostic;
use pi_resources::discovery::ResourceSources;
use pi_resources::discovery::extensions::find_extensions;
use pi_resources::prompts::templates::load_prompt_templates;
use pi_resources::skills::load_skills;
use pi_resources::source_info::SourceScope;
use pi_resources::themes::{BUILT_IN, SYSTEM, find_theme, load_themes};

impl Doctor {
    fn sources(&self) -> ResourceSources<'_> {
        ResourceSources {
            paths: &self.paths,
            settings: &self.settings,
            cli_extensions: &[],
            discover: true,
        }
    }
}

const FIX_FILE: &str = "Correct the file, rename it, or remove it";

pub(super) fn themes(doctor: &mut Doctor) {
    let (themes, problems) = load_themes(&doctor.sources(), &[]);
    doctor.add_diagnostics(problems, FIX_FILE);
    let chosen = doctor.settings.values().theme.clone();
    if let Some(chosen) = chosen
        && !BUILT_IN.contains(&chosen.as_str())
        && chosen != SYSTEM
        && find_theme(&themes, &chosen).is_none()
    {
        let path = doctor.paths.global_settings();
        let names = themes.iter().map(|theme| theme.name.as_str());
        let names = BUILT_IN.into_iter().chain(names).collect::<Vec<_>>();
        doctor.warning(
            &path,
            format!("The theme \"{chosen}\" is not there, or an extension brings it"),
            format!("Choose one of: {}", names.join(", ")),
        );
    }
}

pub(super) fn skills(doctor: &mut Doctor) {
    let (_, problems) = load_skills(&doctor.sources(), &[]);
    doctor.add_diagnostics(problems, FIX_FILE);
}

pub(super) fn prompts(doctor: &mut Doctor) {
    let (_, problems) = load_prompt_templates(&doctor.sources(), &[]);
    doctor.add_diagnostics(problems, FIX_FILE);
}

pub(super) fn packages(doctor: &mut Doctor) {
    let settings = doctor.settings.clone();
    let paths = doctor.paths.clone();
    let packages = Packages::new(&paths, &settings, Output::Shown, &|_| {});
    for package in packages.configured() {
        if package.folder.is_some() {
            continue;
        }
        let (local, file) = match package.scope {
            SourceScope::Project => (" -l", paths.project_settings()),
            _ => ("", paths.global_settings()),
        };
        let source = &package.source;
        match package.problem {
            Some(problem) => doctor.error(
                &file,
                format!("The package {source} cannot be found: {problem}"),
                "Correct the entry of \"packages\", or remove it",
            ),
            None => doctor.error(
                &file,
                format!("The package {source} is not installed"),
                format!("pi install{local} {source}\nor: pi remove{local} {source}"),
            ),
        }
    }
}

pub(super) fn extensions(doctor: &mut Doctor) {
    let found = find_extensions(&doctor.sources());
    // Missing packages were reported before.
    let is_file = |problem: &Diagnostic| problem.path.is_absolute();
    let problems = found.diagnostics.into_iter().filter(is_file).collect();
    doctor.add_diagnostics(problems, "Correct the settings, or put the file there");
    for extension in found.paths {
        let Some(module) = entry_module(&extension.path) else {
            doctor.error(
                &extension.path,
                "It is no module: there is no index.ts or index.js in it",
                "Add one, or remove the folder",
            );
            continue;
        };
        let fix = "Correct it there, or move it away";
        match check_syntax(&module) {
            Ok(()) => {}
            Err(SyntaxProblem::Fatal(problem)) => doctor.error(&module, problem, fix),
            Err(SyntaxProblem::Doubtful(problem) | SyntaxProblem::Unchecked(problem)) => {
                doctor.warning(&module, problem, fix);
            }
        }
    }
}

/// Returns the syntax error of a module, if it prevents loading.
pub(in crate::cli) fn check_loadable(module: &Path) -> Result<(), String> {
    match check_syntax(module) {
        Err(SyntaxProblem::Fatal(problem)) => Err(problem),
        Ok(()) | Err(SyntaxProblem::Doubtful(_) | SyntaxProblem::Unchecked(_)) => Ok(()),
    }
}

/// Returns the module that is imported for an extension.
pub(in crate::cli) fn entry_module(path: &Path) -> Option<PathBuf> {
    if !path.is_dir() {
        return Some(path.to_owned());
    }
    let mut indexes = ["index.ts", "index.js"].iter().map(|name| path.join(name));
    indexes.find(|index| index.is_file())
}
