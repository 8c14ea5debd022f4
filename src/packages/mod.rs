//! Packages: published extensions, skills, prompt templates and themes. This crate installs and
//! removes them, and runs none of their code; [`pi_resources::discovery`] finds the resources in
//! them.

mod changes;
mod contents;
mod fetch;
mod folder_swap;
mod git;
mod install_missing;
mod install_scripts;
mod lock_file;
mod npm;
mod npm_command;
mod release_age;

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use pi_npm::Npm;
use serde_json::Value;

pub use changes::Changes;
pub use contents::Contents;
pub use install_scripts::RanScripts;
pub use lock_file::{LockFile, LockedSource};
pub use pi_npm::PackageScripts;
pub use pi_resources::packages::{Output, PackageSource, RunError, SourceError};

use pi_resources::packages::install_paths::InstallPaths;
use pi_resources::packages::source::relative_to;
use pi_resources::paths::Paths;
use pi_resources::settings::{Settings, SettingsError, SettingsScope};
use pi_resources::source_info::SourceScope;

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
    #[error(transparent)]
    Npm(#[from] pi_npm::NpmError),
    #[error(
        "{why}. pi waits {hours} hours before it installs a version that was not chosen by \
         its number (setting minimumReleaseAge). To install it now: {command}"
    )]
    TooNew {
        why: String,
        hours: u64,
        command: String,
    },
    #[error("{}: {why}", .path.display())]
    Lock { path: PathBuf, why: String },
    #[error(
        "{} {} has nothing for {source_text}: \"{} {source_text}\" adds it",
        lock_name(*.scope), .path.display(), install_command(*.scope)
    )]
    NotLocked {
        scope: SettingsScope,
        path: PathBuf,
        source_text: String,
    },
    #[error(
        "{} {} is for {locked}, the settings have {source_text}: \"{} {source_text}\" changes it",
        lock_name(*.scope), .path.display(), install_command(*.scope)
    )]
    LockedOther {
        scope: SettingsScope,
        path: PathBuf,
        source_text: String,
        locked: String,
    },
    #[error(
        "No installed package {name} has install scripts: {} knows none. \"pi install\" names \
         those that do", .file.display()
    )]
    NoScripts { name: String, file: PathBuf },
    #[error("{repository} has no commit: push one, or name a branch that has one")]
    NoCommit { repository: String },
    #[error("{} is a link: packages of a project are not installed through links. Remove it", .0.display())]
    Link(PathBuf),
}

/// How packages are installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstallOptions {
    /// Install exactly what `pi.lock` names.
    pub locked: bool,
    /// Install new versions however young they are.
    pub ignore_release_age: bool,
}

/// An installed package.
#[derive(Debug)]
pub struct InstalledPackage {
    pub source: String,
    pub folder: PathBuf,
    /// The packages with install scripts, none of which has run.
    pub scripts: Vec<PackageScripts>,
}

/// Decides whether an update takes effect.
pub type Confirm<'a> = &'a dyn Fn(&Changes<'_>) -> bool;

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
    Updated(Update),
    /// The user has seen the changes and does not want them.
    Declined,
    /// The newest version was installed already.
    Current,
    /// The source names a version.
    Pinned,
    /// The package is a folder of the user.
    Local,
}

/// Result of an update.
#[derive(Debug, PartialEq, Eq)]
pub struct Update {
    /// Versions or short commits; the old one is missing if it was not installed.
    pub from: Option<String>,
    pub to: Option<String>,
    pub scripts: Vec<PackageScripts>,
}

pub struct Packages<'a> {
    paths: &'a Paths,
    settings: &'a Settings,
    install_paths: InstallPaths,
    output: Output,
    options: InstallOptions,
    /// The installer of npm packages, once it was needed. It keeps what it has cloned.
    npm: OnceLock<Npm>,
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
            options: InstallOptions::default(),
            npm: OnceLock::new(),
            report,
        }
    }

    pub fn with_options(mut self, options: InstallOptions) -> Self {
        self.options = options;
        self
    }

    /// Installs a package and adds it to the settings.
    pub fn install(
        &self,
        source: &str,
        scope: SettingsScope,
    ) -> Result<InstalledPackage, PackageError> {
        let parsed = PackageSource::parse(source)?;
        let _lock = self.lock()?;
        (self.report)(&format!("Installing {source}..."));
        let (folder, scripts) = match &parsed {
            PackageSource::Local(path) => {
                // On a command line a path is relative to the working directory.
                let folder = self.paths.resolve(path, &self.paths.cwd);
                if !folder.exists() {
                    return Err(PackageError::NoSuchPath(folder));
                }
                (folder, Vec::new())
            }
            other => self.fetch_newest(source, other, source_scope(scope))?,
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
        Ok(InstalledPackage {
            source: source.to_owned(),
            folder,
            scripts,
        })
    }

    /// Installs what `pi.lock` names of all packages of the settings, or of one scope.
    pub fn install_locked(
        &self,
        only: Option<SettingsScope>,
    ) -> Result<Vec<InstalledPackage>, PackageError> {
        let _lock = self.lock()?;
        let mut installed = Vec::new();
        for scope in [SettingsScope::Global, SettingsScope::Project] {
            if only.is_some_and(|only| only != scope) {
                continue;
            }
            for entry in &self.settings.values_of(scope).packages {
                let parsed = PackageSource::parse(&entry.source)?;
                if matches!(parsed, PackageSource::Local(_)) {
                    continue;
                }
                (self.report)(&format!("Installing {}...", entry.source));
                let scope = source_scope(scope);
                let (folder, scripts) = self.fetch_locked(&entry.source, &parsed, scope)?;
                installed.push(InstalledPackage {
                    source: entry.source.clone(),
                    folder,
                    scripts,
                });
            }
        }
        Ok(installed)
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
        let mut lock_file = LockFile::read(&self.lock_path(scope))?;
        if lock_file.packages.remove(&identity).is_some() {
            lock_file.write()?;
        }
        self.settings.edit(scope, |settings| {
            list_of(settings).retain(|entry| {
                source_of(entry).is_none_or(|source| self.identity_of(source, scope) != identity)
            });
        })?;
        Ok(())
    }

    /// Updates all packages, or one, and reports each result. Stops at the first failure.
    /// `confirm` decides about each new version before it takes effect.
    pub fn update(
        &self,
        source: Option<&str>,
        confirm: Option<Confirm<'_>>,
        mut done: impl FnMut(&ConfiguredPackage, UpdateOutcome),
    ) -> Result<(), PackageError> {
        let wanted = source.map(|source| self.identity_on_command_line(source));
        let configured = self.configured();
        let _lock = self.lock()?;
        let mut matched = false;
        for package in &configured {
            let scope = settings_scope(package.scope);
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
                    self.update_package(&package.source, &parsed, package.scope, confirm)?
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
                let source = PackageSource::parse(&entry.source);
                let folder = source.map(|it| self.install_paths.package_folder(&it, scope));
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

    /// Returns the file that records the packages of a scope.
    pub fn lock_path(&self, scope: SettingsScope) -> PathBuf {
        match scope {
            SettingsScope::Global => self.paths.global_lock(),
            SettingsScope::Project => self.paths.project_lock(),
        }
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

/// Returns a text without characters that a terminal would interpret.
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => c,
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

fn source_scope(scope: SettingsScope) -> SourceScope {
    match scope {
        SettingsScope::Global => SourceScope::User,
        SettingsScope::Project => SourceScope::Project,
    }
}

/// Returns the settings that name the packages of a scope.
/// Returns what the lock file of a scope is called in errors.
fn lock_name(scope: SettingsScope) -> &'static str {
    match scope {
        SettingsScope::Global => "the user's lock file",
        SettingsScope::Project => "the project's lock file",
    }
}

/// Returns the command that installs packages of a scope.
fn install_command(scope: SettingsScope) -> &'static str {
    match scope {
        SettingsScope::Global => "pi install",
        SettingsScope::Project => "pi install -l",
    }
}

fn settings_scope(scope: SourceScope) -> SettingsScope {
    match scope {
        SourceScope::Project => SettingsScope::Project,
        _ => SettingsScope::Global,
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
