//! Packages: published extensions, skills, prompt templates and themes. This module installs
//! and removes them; [`crate::discovery`] finds the resources in them.

mod contents;
mod fetch;
mod folder_swap;
mod install_missing;
pub mod install_paths;
pub mod run;
pub mod source;

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use serde_json::Value;

pub use contents::Contents;
pub use run::{Output, RunError};
pub use source::{PackageSource, SourceError};

use self::install_paths::InstallPaths;
use self::source::relative_to;
use crate::paths::Paths;
use crate::settings::{Settings, SettingsError, SettingsScope};
use crate::source_info::SourceScope;

#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("Path does not exist: {0}")]
    NoSuchPath(PathBuf),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{}: {source}", .path.display())]
    Files { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("No matching package found for {source_text}{hint}")]
    NotConfigured { source_text: String, hint: String },
}

/// A package of the settings and its folder.
#[derive(Debug)]
pub struct ConfiguredPackage {
    pub source: String,
    pub scope: SourceScope,
    /// Whether the settings select some of its resources.
    pub filtered: bool,
    /// The folder of the package; `None` if it is not installed.
    pub folder: Option<PathBuf>,
    /// The reason why it cannot be installed.
    pub problem: Option<String>,
}

/// The result of updating one package.
#[derive(Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    Yes,
    /// The newest version was installed already.
    Current,
    /// The source names a version.
    Pinned,
    /// The package is a folder of the user.
    Local,
}

pub struct Packages<'a> {
    paths: &'a Paths,
    settings: &'a Settings,
    install_paths: InstallPaths,
    output: Output,
    /// Receives progress messages.
    report: &'a dyn Fn(&str),
}

impl<'a> Packages<'a> {
    pub fn new(
        paths: &'a Paths,
        settings: &'a Settings,
        output: Output,
        report: &'a dyn Fn(&str),
    ) -> Self {
        Self {
            paths,
            settings,
            install_paths: InstallPaths::new(paths, settings),
            output,
            report,
        }
    }

    /// Installs a package and adds it to the settings.
    pub fn install(&self, source: &str, scope: SettingsScope) -> Result<PathBuf, PackageError> {
        let parsed = PackageSource::parse(source)?;
        let _lock = self.lock()?;
        (self.report)(&format!("Installing {source}..."));
        let folder = match &parsed {
            PackageSource::Local(path) => {
                // On a command line a path is relative to the working directory.
                let folder = self.paths.resolve(path, &self.paths.cwd);
                if !folder.exists() {
                    return Err(PackageError::NoSuchPath(folder));
                }
                folder
            }
            other => self.fetch_newest(other, source_scope(scope))?,
        };
        let written = match &parsed {
            PackageSource::Local(_) => relative_to(&folder, &self.base(scope)),
            _ => source.trim().to_owned(),
        };
        let identity = self.identity_of(&written, scope);
        self.settings.edit(scope, |settings| {
            let list = list_of(settings);
            let same = |entry: &&mut Value| {
                source_of(entry).map(|source| self.identity_of(source, scope))
                    == Some(identity.clone())
            };
            match list.iter_mut().find(same) {
                // Only the version changes; the user's selection of resources stays.
                Some(Value::Object(entry)) => {
                    drop(entry.insert("source".to_owned(), written.into()))
                }
                Some(entry) => *entry = written.into(),
                None => list.push(written.into()),
            }
        })?;
        Ok(folder)
    }

    /// Removes a package from the disk and the settings.
    pub fn remove(&self, source: &str, scope: SettingsScope) -> Result<(), PackageError> {
        let identity = self.identity_on_command_line(source);
        let is_it = |configured: &ConfiguredPackage, scope| {
            configured.scope == source_scope(scope)
                && self.identity_of(&configured.source, scope) == identity
        };
        let configured = self.configured();
        if !configured.iter().any(|package| is_it(package, scope)) {
            let (other, how) = match scope {
                SettingsScope::Global => (SettingsScope::Project, "pi remove -l"),
                SettingsScope::Project => (SettingsScope::Global, "pi remove"),
            };
            let hint = match configured.iter().find(|package| is_it(package, other)) {
                Some(package) => format!(". Did you mean {how} {}?", package.source),
                None => self.suggestion(source, &configured),
            };
            return Err(PackageError::NotConfigured {
                source_text: source.to_owned(),
                hint,
            });
        }
        let _lock = self.lock()?;
        (self.report)(&format!("Removing {source}..."));
        if let Ok(parsed) = PackageSource::parse(source) {
            self.uninstall(&parsed, source_scope(scope))?;
        }
        self.settings.edit(scope, |settings| {
            list_of(settings).retain(|entry| {
                source_of(entry).is_none_or(|source| self.identity_of(source, scope) != identity)
            });
        })?;
        Ok(())
    }

    /// Updates all packages, or one, and reports each result. Stops at the first failure.
    pub fn update(
        &self,
        source: Option<&str>,
        mut done: impl FnMut(&ConfiguredPackage, UpdateOutcome),
    ) -> Result<(), PackageError> {
        let wanted = source.map(|source| self.identity_on_command_line(source));
        let configured = self.configured();
        let _lock = self.lock()?;
        let mut matched = false;
        for package in &configured {
            let scope = match package.scope {
                SourceScope::Project => SettingsScope::Project,
                _ => SettingsScope::Global,
            };
            let identity = self.identity_of(&package.source, scope);
            if wanted.as_ref().is_some_and(|wanted| *wanted != identity) {
                continue;
            }
            matched = true;
            let parsed = PackageSource::parse(&package.source)?;
            let updated = match &parsed {
                PackageSource::Local(_) => UpdateOutcome::Local,
                _ if parsed.is_pinned() => UpdateOutcome::Pinned,
                _ => {
                    (self.report)(&format!("Updating {}...", package.source));
                    match self.update_package(&parsed, package.scope)? {
                        true => UpdateOutcome::Yes,
                        false => UpdateOutcome::Current,
                    }
                }
            };
            done(package, updated);
        }
        match source {
            Some(source) if !matched => Err(PackageError::NotConfigured {
                source_text: source.to_owned(),
                hint: self.suggestion(source, &configured),
            }),
            _ => Ok(()),
        }
    }

    /// Returns the packages of the settings: the user's, then the project's.
    pub fn configured(&self) -> Vec<ConfiguredPackage> {
        let mut all = Vec::new();
        for scope in [SettingsScope::Global, SettingsScope::Project] {
            for entry in &self.settings.values_of(scope).packages {
                let scope = source_scope(scope);
                let folder = PackageSource::parse(&entry.source)
                    .map_err(PackageError::from)
                    .and_then(|source| Ok(self.install_paths.package_folder(&source, scope)?));
                let (folder, problem) = match folder {
                    Ok(folder) => (folder.exists().then_some(folder), None),
                    Err(error) => (None, Some(error.to_string())),
                };
                all.push(ConfiguredPackage {
                    source: entry.source.clone(),
                    scope,
                    filtered: entry.filter.is_some(),
                    folder,
                    problem,
                });
            }
        }
        all
    }

    fn base(&self, scope: SettingsScope) -> PathBuf {
        self.install_paths.base(source_scope(scope))
    }

    /// Returns the identity of a source in the settings of that scope. An invalid source is
    /// only identical to itself.
    fn identity_of(&self, source: &str, scope: SettingsScope) -> String {
        match PackageSource::parse(source) {
            Ok(parsed) => parsed.identity(self.paths, &self.base(scope)),
            Err(_) => source.to_owned(),
        }
    }

    /// Returns the identity of a source on the command line, where paths are relative to the
    /// working directory.
    fn identity_on_command_line(&self, source: &str) -> String {
        match PackageSource::parse(source) {
            Ok(parsed) => parsed.identity(self.paths, &self.paths.cwd),
            Err(_) => source.to_owned(),
        }
    }

    /// Suggests a source if the user left out `npm:` or `git:`.
    fn suggestion(&self, source: &str, configured: &[ConfiguredPackage]) -> String {
        let source = source.trim();
        let means = |package: &&ConfiguredPackage| match PackageSource::parse(&package.source) {
            Ok(PackageSource::Npm(npm)) => source == npm.name || source == npm.spec,
            Ok(PackageSource::Git(git)) => {
                let short = format!("{}/{}", git.host, git.path);
                let with_reference = git
                    .reference
                    .map(|reference| format!("{short}@{reference}"));
                source == short || with_reference.is_some_and(|text| source == text)
            }
            _ => false,
        };
        match configured.iter().find(means) {
            Some(package) => format!(". Did you mean {}?", package.source),
            None => String::new(),
        }
    }

    /// Takes the lock for installations. Waits for other processes.
    fn lock(&self) -> Result<File, PackageError> {
        let path = self.install_paths.cache().join("packages.lock");
        let locked = fs::create_dir_all(self.install_paths.cache())
            .and_then(|()| File::create(&path))
            .and_then(|file| file.lock().map(|()| file));
        locked.map_err(|source| PackageError::Files { path, source })
    }
}

fn source_scope(scope: SettingsScope) -> SourceScope {
    match scope {
        SettingsScope::Global => SourceScope::User,
        SettingsScope::Project => SourceScope::Project,
    }
}

/// Returns the list `packages`. A value of another type was reported and is replaced.
fn list_of(settings: &mut serde_json::Map<String, Value>) -> &mut Vec<Value> {
    let slot = settings.entry("packages").or_insert(Value::Null);
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    match slot {
        Value::Array(list) => list,
        _ => unreachable!("it was made a list"),
    }
}

fn source_of(entry: &Value) -> Option<&str> {
    match entry {
        Value::String(source) => Some(source),
        Value::Object(entry) => entry.get("source")?.as_str(),
        _ => None,
    }
}
