//! Fetches missing packages of the settings or the command line when a session starts.

use std::collections::HashSet;

use pi_resources::settings::SettingsScope;
use pi_resources::source_info::SourceScope;

use super::fetch::version_of;
use super::{Contents, PackageError, PackageSource, Packages, source_scope};

/// Treatment of a missing package at the start of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtStart {
    /// Exactly what `pi.lock` names is installed.
    Locked,
    Newest,
    /// Nothing is installed.
    Leave,
}

/// Decides about a missing package. A project, which others have written, gets only what its lock
/// file names, and nothing if it is not trusted.
fn at_start(scope: SourceScope, is_trusted: bool, is_locked: bool) -> AtStart {
    match scope {
        SourceScope::Project if !is_trusted => AtStart::Leave,
        SourceScope::Project => AtStart::Locked,
        _ if is_locked => AtStart::Locked,
        _ => AtStart::Newest,
    }
}

impl Packages<'_> {
    /// Returns whether nothing has to be fetched.
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
            match self.install_at_start(&text, &source, scope) {
                Ok(()) => {}
                Err(PackageError::NotLocked { path, .. }) => problems.push(format!(
                    "The package {text} of this project is not installed: the project's lock \
                     file {} does not name it. \"pi install -l {text}\" installs it",
                    path.display()
                )),
                Err(error) => problems.push(format!(
                    "The package {text} could not be installed: {error}"
                )),
            }
        }
        problems
    }

    fn install_at_start(
        &self,
        text: &str,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<(), PackageError> {
        let locked = self.locked(source, scope)?;
        let is_locked = locked.is_some_and(|locked| {
            let can_be_repeated = !locked.tree.packages.is_empty()
                || locked.commit.is_some()
                || self.uses_npm_command();
            locked.source == text.trim() && can_be_repeated
        });
        let is_trusted = !self.paths.ignores_project();
        let installed = match at_start(scope, is_trusted, is_locked) {
            AtStart::Leave => return Ok(()),
            AtStart::Locked => {
                if is_locked {
                    (self.report)(&format!("Installing {text}..."));
                }
                self.fetch_locked(text, source, scope)
            }
            AtStart::Newest => {
                (self.report)(&format!("Installing {text}..."));
                self.fetch(text, source, scope)
            }
        };
        let (folder, scripts) = installed?;
        let contents = Contents::read(&folder);
        (self.report)(&format!("Installed {text}. It brings:\n{contents}"));
        let names: Vec<&str> = scripts
            .iter()
            .map(|package| package.name.as_str())
            .collect();
        if !names.is_empty() {
            (self.report)(&super::printable(&format!(
                "Install scripts of {} did not run",
                names.join(", ")
            )));
        }
        Ok(())
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
        let folder = self.install_paths.package_folder(source, scope);
        let PackageSource::Npm(npm) = source else {
            return !folder.exists();
        };
        match npm.exact_version() {
            Some(version) => version_of(&folder).as_deref() != Some(version),
            None => !folder.exists(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_gets_only_what_its_lock_file_names() {
        for is_locked in [true, false] {
            let decide = |scope, is_trusted| at_start(scope, is_trusted, is_locked);
            assert_eq!(decide(SourceScope::Project, false), AtStart::Leave);
            assert_eq!(decide(SourceScope::Project, true), AtStart::Locked);
        }
        assert_eq!(at_start(SourceScope::User, false, false), AtStart::Newest);
        assert_eq!(at_start(SourceScope::User, true, true), AtStart::Locked);
    }
}
