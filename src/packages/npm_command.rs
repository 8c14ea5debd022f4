//! Packages of npm through the program that the setting `npmCommand` names, without install
//! scripts.

use std::fs;

use chrono::Utc;
use pi_npm::{PackageScripts, Tree, scripts_of};
use pi_resources::packages::run::Program;
use pi_resources::packages::source::{NpmSource, PackageSource};
use pi_resources::source_info::SourceScope;

use super::fetch::{Fetched, files, version_of};
use super::folder_swap::{copy_tree, staging, swap};
use super::lock_file::{LockFile, LockedSource};
use super::npm::create_project;
use super::{PackageError, Packages, settings_scope};

/// Files that make a folder an npm project.
const PROJECT_FILES: [&str; 2] = ["package.json", "package-lock.json"];

impl Packages<'_> {
    pub(super) fn uses_npm_command(&self) -> bool {
        let values = self.settings.values();
        values
            .npm_command
            .as_ref()
            .is_some_and(|words| !words.is_empty())
    }

    pub(super) fn npm_command(&self) -> Program {
        Program::npm(self.settings.values().npm_command.as_deref())
    }

    /// Installs a package into a copy of the npm project, which then replaces the project.
    pub(super) fn fetch_with_npm_command(
        &self,
        text: &str,
        source: &PackageSource,
        npm: &NpmSource,
        spec: &str,
        scope: SourceScope,
    ) -> Result<Fetched, PackageError> {
        let root = self.install_paths.npm_project(scope);
        let target = self.install_paths.npm_target(&npm.name, scope);
        self.refuse_links(scope, &target)?;
        create_project(&root).map_err(files(&root))?;
        let new = staging(&root).map_err(files(&root))?;
        for name in PROJECT_FILES.into_iter().chain(["node_modules"]) {
            let from = root.join(name);
            if from.exists() {
                copy_tree(&from, &new.path().join(name)).map_err(files(&from))?;
            }
        }
        let prefix = new.path().to_string_lossy();
        let args = ["install", spec, "--prefix", &*prefix, "--ignore-scripts"];
        self.npm_command()
            .run(&args, &self.paths.cwd, self.output)?;
        let modules = "node_modules";
        let aside = new.path();
        swap(&aside.join(modules), &root.join(modules), aside).map_err(files(&root))?;
        for name in PROJECT_FILES {
            let from = aside.join(name);
            if from.exists() {
                fs::rename(from, root.join(name)).map_err(files(&root))?;
            }
        }
        if scope != SourceScope::Temporary {
            let mut lock_file = LockFile::read(&self.lock_path(settings_scope(scope)))?;
            let locked = LockedSource {
                source: text.trim().to_owned(),
                version: version_of(&target),
                commit: None,
                integrity: None,
                installed: Utc::now(),
                tree: Tree::default(),
            };
            let identity = source.identity(self.paths, &self.install_paths.base(scope));
            lock_file.packages.insert(identity, locked);
            lock_file.write()?;
        }
        let scripts = scripts_of(&target, false);
        let scripts = (!scripts.is_empty()).then(|| PackageScripts {
            name: npm.name.clone(),
            version: version_of(&target).unwrap_or_default(),
            path: String::new(),
            integrity: None,
            scripts,
        });
        Ok((target, scripts.into_iter().collect()))
    }
}
