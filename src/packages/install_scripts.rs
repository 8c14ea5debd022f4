//! Runs the install scripts of one package, after the user has allowed them.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pi_npm::{PackageScripts, PlacedPackage, scripts_of};
use pi_resources::packages::run::Program;
use pi_resources::settings::SettingsScope;

use super::lock_file::{LockFile, LockedSource};
use super::{PackageError, Packages, source_scope};
use pi_resources::packages::source::PackageSource;

/// The scripts that ran.
#[derive(Debug, PartialEq, Eq)]
pub struct RanScripts {
    pub version: String,
    pub scripts: Vec<(String, String)>,
}

impl Packages<'_> {
    /// Runs the install scripts of an installed package, and remembers that this archive's may
    /// run.
    pub fn allow_scripts(
        &self,
        name: &str,
        scope: SettingsScope,
    ) -> Result<Vec<RanScripts>, PackageError> {
        let _lock = self.lock()?;
        let lock_file = LockFile::read(&self.lock_path(scope))?;
        let mut found = Vec::new();
        for locked in lock_file.packages.values() {
            let source = PackageSource::parse(&locked.source)?;
            let folder = self
                .install_paths
                .package_folder(&source, source_scope(scope));
            if matches!(source, PackageSource::Local(_)) {
                // Nothing is ever installed for a folder of the user.
                continue;
            }
            // A project's file may have been written by others.
            locked.tree.check()?;
            let own = installed_by_program(&source, locked);
            let all = locked.tree.distinct().cloned().chain(own);
            for package in all.filter(|package| package.name == name) {
                let (identity, is_source) = identity(locked, &package);
                let scripts = scripts_of(&folder.join(&package.path), is_source);
                if !scripts.is_empty() {
                    found.push((folder.clone(), package, identity, scripts));
                }
            }
        }
        if found.is_empty() {
            return Err(PackageError::NoScripts {
                name: name.to_owned(),
                file: self.lock_path(scope),
            });
        }
        // Only the user's own file counts: a project cannot allow anything.
        let mut users = LockFile::read(&self.lock_path(SettingsScope::Global))?;
        for (_, _, identity, _) in &found {
            let hashes = users.allowed_scripts.entry(name.to_owned()).or_default();
            if !hashes.contains(identity) {
                hashes.push(identity.clone());
            }
        }
        users.write()?;
        let mut ran = Vec::new();
        for (folder, package, _, scripts) in found {
            self.run_scripts(&folder, &package.path, &package, &scripts)?;
            ran.push(RanScripts {
                version: package.version,
                scripts,
            });
        }
        Ok(ran)
    }

    /// Runs the scripts of a new installation that the user has allowed before, and returns the
    /// packages with others.
    pub(super) fn run_allowed(
        &self,
        folder: &Path,
        locked: &LockedSource,
        all: Vec<PackageScripts>,
    ) -> Result<Vec<PackageScripts>, PackageError> {
        let users = LockFile::read(&self.lock_path(SettingsScope::Global))?;
        let mut left = Vec::new();
        for of_package in all {
            let package = locked.tree.distinct().find(|it| it.path == of_package.path);
            let is_allowed = |package: &&PlacedPackage| {
                users.allows(&package.name, &identity(locked, package).0)
            };
            match package.filter(is_allowed) {
                Some(package) => {
                    self.run_scripts(folder, &package.path, package, &of_package.scripts)?;
                }
                None => left.push(of_package),
            }
        }
        Ok(left)
    }

    fn run_scripts(
        &self,
        root: &Path,
        path: &str,
        package: &PlacedPackage,
        scripts: &[(String, String)],
    ) -> Result<(), PackageError> {
        let folder = root.join(path);
        for (name, script) in scripts {
            let text = format!("{} {}: {name}: {script}", package.name, package.version);
            (self.report)(&super::printable(&text));
            let variables = BTreeMap::from([
                ("PATH".to_owned(), search_path(root, path)),
                ("npm_lifecycle_event".to_owned(), name.into()),
                ("npm_lifecycle_script".to_owned(), script.into()),
                ("npm_package_name".to_owned(), (&package.name).into()),
                ("npm_package_version".to_owned(), (&package.version).into()),
                (
                    "npm_package_json".to_owned(),
                    folder.join("package.json").into(),
                ),
                ("npm_config_user_agent".to_owned(), "pi".into()),
                ("INIT_CWD".to_owned(), self.paths.cwd.clone().into()),
            ]);
            Program::shell().run_with(&[script], &folder, self.output, &variables)?;
        }
        Ok(())
    }
}

/// Returns the package itself, if the program of the setting `npmCommand` has installed it: then
/// nothing else is recorded.
fn installed_by_program(source: &PackageSource, locked: &LockedSource) -> Option<PlacedPackage> {
    let PackageSource::Npm(npm) = source else {
        return None;
    };
    locked.tree.packages.is_empty().then(|| PlacedPackage {
        name: npm.name.clone(),
        version: locked.version.clone().unwrap_or_default(),
        ..PlacedPackage::default()
    })
}

/// Returns what identifies the files of a package, and whether they are sources.
fn identity(locked: &LockedSource, package: &PlacedPackage) -> (String, bool) {
    let is_source = ["git+", "file:"]
        .iter()
        .any(|it| package.resolved.starts_with(it));
    let identity = match (&package.integrity, &locked.commit) {
        (Some(integrity), _) => integrity.clone(),
        (None, Some(commit)) if package.resolved.starts_with("file:") => {
            format!("git-{commit} {}", package.path)
        }
        (None, _) if package.resolved.is_empty() => {
            format!("{}@{}", package.name, package.version)
        }
        (None, _) => package.resolved.clone(),
    };
    (identity, is_source)
}

/// Returns the value of `PATH` for a package: the programs of the folders above come first.
fn search_path(root: &Path, path: &str) -> OsString {
    let mut folders: Vec<PathBuf> = Vec::new();
    let package = root.join(path);
    for folder in package
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
    {
        folders.push(folder.join("node_modules/.bin"));
    }
    folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    env::join_paths(folders).unwrap_or_else(|_| env::var_os("PATH").unwrap_or_default())
}
