//! Fetches missing packages of the settings or the command line when a session starts.

use std::collections::HashSet;

use super::fetch::version_of;
use super::folder_swap::FolderBackup;
use super::{Contents, PackageSource, Packages, source_scope};
use crate::settings::SettingsScope;
use crate::source_info::SourceScope;

impl Packages<'_> {
    /// Returns whether nothing has to be fetched. Does not run npm if no package comes from
    /// npm.
    pub fn is_complete(&self, named: &[String]) -> bool {
        self.missing(named).is_empty()
    }

    /// Fetches missing packages. Returns a sentence for each that failed.
    pub fn install_missing(&self, named: &[String]) -> Vec<String> {
        let _lock = match self.lock() {
            Ok(lock) => lock,
            Err(error) => return vec![error.to_string()],
        };
        // Another pi may have fetched them while this one waited for the lock.
        let missing = self.missing(named);
        let mut problems = Vec::new();
        for (text, source, scope) in missing {
            (self.report)(&format!("Installing {text}..."));
            match self.fetch(&source, scope) {
                Ok(folder) => {
                    let contents = Contents::read(&folder);
                    (self.report)(&format!("Installed {text}. It brings:\n{contents}"));
                }
                Err(error) => {
                    problems.push(format!(
                        "The package {text} could not be installed: {error}"
                    ));
                }
            }
        }
        problems
    }

    fn missing(&self, named: &[String]) -> Vec<(String, PackageSource, SourceScope)> {
        let mut seen = HashSet::new();
        let mut wanted = Vec::new();
        for scope in [SettingsScope::Project, SettingsScope::Global] {
            for entry in &self.settings.values_of(scope).packages {
                // An entry of the project replaces the same one of the user.
                if seen.insert(self.identity_of(&entry.source, scope)) {
                    wanted.push((entry.source.clone(), source_scope(scope)));
                }
            }
        }
        let named = named.iter().cloned();
        wanted.extend(named.map(|source| (source, SourceScope::Temporary)));
        let parsed = wanted.into_iter().filter_map(|(text, scope)| {
            // Invalid sources are reported when resources are looked up.
            let source = PackageSource::parse(&text).ok()?;
            self.is_missing(&source, scope)
                .then_some((text, source, scope))
        });
        parsed.collect()
    }

    fn is_missing(&self, source: &PackageSource, scope: SourceScope) -> bool {
        if matches!(source, PackageSource::Local(_)) {
            return false;
        }
        let Ok(folder) = self.install_paths.package_folder(source, scope) else {
            return true;
        };
        let PackageSource::Npm(npm) = source else {
            return !folder.exists();
        };
        let store = self.install_paths.cache().join("kept");
        if scope == SourceScope::User
            && let Some(backup) = FolderBackup::find_leftover(&folder, &store, &npm.name)
        {
            // If that fails, the package is fetched again.
            let _ = backup.restore();
        }
        match npm.exact_version() {
            Some(version) => version_of(&folder).as_deref() != Some(version),
            None => !folder.exists(),
        }
    }
}
