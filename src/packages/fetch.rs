//! Fetches one package in two steps: it is staged in a folder of its own, and then replaces the
//! installed one. A failure before the second step leaves the previous state.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::Utc;
use pi_base::regular_file;
use pi_npm::{Installed, PackageScripts, Root, Tree};
use pi_resources::packages::source::GitSource;
use tempfile::TempDir;

use super::changes::Changes;
use super::folder_swap::{staging, swap};
use super::lock_file::{LockFile, LockedSource};
use super::{
    Confirm, PackageError, PackageSource, Packages, Update, UpdateOutcome, settings_scope,
};
use pi_resources::source_info::SourceScope;

/// Folder of a package, and what of it has install scripts that did not run.
pub(super) type Fetched = (PathBuf, Vec<PackageScripts>);

/// A package that is complete, but not in effect.
pub(super) struct Staged {
    /// Is removed in the end, with the old version.
    pub(super) staging: TempDir,
    pub(super) new: PathBuf,
    pub(super) target: PathBuf,
    pub(super) locked: LockedSource,
    pub(super) scripts: Vec<PackageScripts>,
}

impl Packages<'_> {
    /// Like `fetch`, but also updates an existing clone to the current state of its repository.
    pub(super) fn fetch_newest(
        &self,
        text: &str,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<Fetched, PackageError> {
        if self.options.locked {
            return self.fetch_locked(text, source, scope);
        }
        if let PackageSource::Git(git) = source {
            let target = self.install_paths.package_folder(source, scope);
            if target.exists() {
                match self.is_up_to_date(git, &target) {
                    Ok(true) if self.locked(source, scope)?.is_some() => {
                        self.rename_locked(text, source, scope)?;
                        return Ok((target, Vec::new()));
                    }
                    Ok(_) => {}
                    Err(error) if self.is_checked_out(git, &target) => {
                        let url = &git.repository;
                        (self.report)(&format!("{url} cannot be asked, the clone stays: {error}"));
                        return Ok((target, Vec::new()));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        self.fetch(text, source, scope)
    }

    /// Fetches a package and replaces what is installed.
    pub(super) fn fetch(
        &self,
        text: &str,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<Fetched, PackageError> {
        let staged = match source {
            PackageSource::Npm(npm) if self.uses_npm_command() => {
                return self.fetch_with_npm_command(text, source, npm, &npm.spec, scope);
            }
            PackageSource::Npm(npm) => {
                let range = npm.version.as_deref().unwrap_or("latest");
                let tree = self.resolve_npm(text, npm, range, scope)?;
                self.stage_npm(text, npm, tree, scope)?
            }
            PackageSource::Git(git) => {
                let target = self.install_paths.package_folder(source, scope);
                self.stage_git(text, git, None, None, &target, scope)?
            }
            PackageSource::Local(_) => {
                let folder = self.install_paths.package_folder(source, scope);
                return match folder.exists() {
                    true => Ok((folder, Vec::new())),
                    false => Err(PackageError::NoSuchPath(folder)),
                };
            }
        };
        self.take_effect(source, staged, scope)
    }

    /// Fetches exactly what `pi.lock` names.
    pub(super) fn fetch_locked(
        &self,
        text: &str,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<Fetched, PackageError> {
        let settings_scope = settings_scope(scope);
        let path = self.lock_path(settings_scope);
        let Some(locked) = self.locked(source, scope)? else {
            return Err(PackageError::NotLocked {
                scope: settings_scope,
                path,
                source_text: text.to_owned(),
            });
        };
        if locked.source != text.trim() {
            return Err(PackageError::LockedOther {
                scope: settings_scope,
                path,
                source_text: text.to_owned(),
                locked: locked.source,
            });
        }
        let staged = match source {
            PackageSource::Npm(npm) if self.uses_npm_command() && locked.version.is_some() => {
                let version = locked.version.unwrap_or_default();
                let spec = format!("{}@{version}", npm.name);
                return self.fetch_with_npm_command(text, source, npm, &spec, scope);
            }
            PackageSource::Npm(npm) => {
                let names_it = locked.tree.root().is_some_and(|root| root.name == npm.name);
                if !names_it {
                    return Err(PackageError::Lock {
                        path,
                        why: format!(
                            "it has no files of {text}, because another program installed it"
                        ),
                    });
                }
                self.stage_npm(text, npm, locked.tree, scope)?
            }
            PackageSource::Git(git) => {
                let target = self.install_paths.package_folder(source, scope);
                let commit = locked.commit.filter(|commit| is_commit(commit));
                let commit = commit.ok_or_else(|| PackageError::Lock {
                    path,
                    why: format!("it has no commit of {text}"),
                })?;
                let at = Some((commit.as_str(), locked.tree));
                self.stage_git(text, git, None, at, &target, scope)?
            }
            PackageSource::Local(_) => return self.fetch(text, source, scope),
        };
        self.take_effect(source, staged, scope)
    }

    pub(super) fn update_package(
        &self,
        text: &str,
        source: &PackageSource,
        scope: SourceScope,
        confirm: Option<Confirm<'_>>,
    ) -> Result<UpdateOutcome, PackageError> {
        let folder = self.install_paths.package_folder(source, scope);
        let old = self.locked(source, scope)?;
        let from = match &old {
            Some(locked) if folder.exists() => state(locked),
            _ => version_of(&folder),
        };
        let staged = match source {
            PackageSource::Npm(npm) if self.uses_npm_command() => {
                let spec = format!("{}@latest", npm.name);
                let (_, scripts) = self.fetch_with_npm_command(text, source, npm, &spec, scope)?;
                let to = version_of(&self.install_paths.package_folder(source, scope));
                return Ok(match from == to {
                    true => UpdateOutcome::Current,
                    false => UpdateOutcome::Updated(Update { from, to, scripts }),
                });
            }
            PackageSource::Npm(npm) => {
                let tree = self.resolve_npm(text, npm, "latest", scope)?;
                let is_same = |old: &LockedSource| is_same(&old.tree, &tree);
                if folder.exists() && old.as_ref().is_some_and(is_same) {
                    return Ok(UpdateOutcome::Current);
                }
                self.stage_npm(text, npm, tree, scope)?
            }
            PackageSource::Git(git) => {
                let branch = match folder.exists() {
                    true => self.branch(&folder),
                    false => None,
                };
                if folder.exists() && self.is_newest(git, branch.as_deref(), &folder)? {
                    return Ok(UpdateOutcome::Current);
                }
                self.stage_git(text, git, branch.as_deref(), None, &folder, scope)?
            }
            PackageSource::Local(_) => return Ok(UpdateOutcome::Local),
        };
        if let Some(confirm) = confirm {
            let changes = Changes {
                source: text,
                old: &folder,
                new: &staged.new,
                old_tree: old.as_ref().map(|old| &old.tree),
                new_tree: &staged.locked.tree,
                scripts: &staged.scripts,
            };
            if !confirm(&changes) {
                return Ok(UpdateOutcome::Declined);
            }
        }
        let to = state(&staged.locked);
        let (_, scripts) = self.take_effect(source, staged, scope)?;
        Ok(match from == to {
            true => UpdateOutcome::Current,
            false => UpdateOutcome::Updated(Update { from, to, scripts }),
        })
    }

    /// Puts a staged package in place of the old one, and records it.
    fn take_effect(
        &self,
        source: &PackageSource,
        staged: Staged,
        scope: SourceScope,
    ) -> Result<Fetched, PackageError> {
        let Staged {
            staging,
            new,
            target,
            locked,
            scripts,
        } = staged;
        swap(&new, &target, staging.path()).map_err(files(&target))?;
        if let PackageSource::Npm(npm) = source {
            let version = locked.version.clone().unwrap_or_default();
            self.add_to_project(scope, &npm.name, Some(&version))?;
        }
        if scope != SourceScope::Temporary {
            let path = self.lock_path(settings_scope(scope));
            let mut lock_file = LockFile::read(&path)?;
            let identity = self.identity_of_source(source, scope);
            lock_file.packages.insert(identity, locked.clone());
            lock_file.write()?;
        }
        let scripts = self.run_allowed(&target, &locked, scripts)?;
        Ok((target, scripts))
    }

    /// Returns what `pi.lock` has of a source.
    pub(super) fn locked(
        &self,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<Option<LockedSource>, PackageError> {
        if scope == SourceScope::Temporary {
            return Ok(None);
        }
        let mut lock_file = LockFile::read(&self.lock_path(settings_scope(scope)))?;
        let identity = self.identity_of_source(source, scope);
        Ok(lock_file.packages.remove(&identity))
    }

    fn identity_of_source(&self, source: &PackageSource, scope: SourceScope) -> String {
        source.identity(self.paths, &self.install_paths.base(scope))
    }

    /// Records that the same state is now named by another source.
    fn rename_locked(
        &self,
        text: &str,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<(), PackageError> {
        let mut lock_file = LockFile::read(&self.lock_path(settings_scope(scope)))?;
        let identity = self.identity_of_source(source, scope);
        let Some(locked) = lock_file.packages.get_mut(&identity) else {
            return Ok(());
        };
        if locked.source != text.trim() {
            locked.source = text.trim().to_owned();
            lock_file.write()?;
        }
        Ok(())
    }

    /// Clones next to the old clone, with the dependencies.
    fn stage_git(
        &self,
        text: &str,
        git: &GitSource,
        branch: Option<&str>,
        at: Option<(&str, Tree)>,
        target: &Path,
        scope: SourceScope,
    ) -> Result<Staged, PackageError> {
        let root = self.install_paths.git_root(scope);
        self.refuse_links(scope, target)?;
        create_root(&root).map_err(files(&root))?;
        let staging = staging(&root).map_err(files(&root))?;
        let clone = staging.path().join("clone");
        let commit =
            self.clone_into(git, branch, at.as_ref().map(|(commit, _)| *commit), &clone)?;
        let mut installed = Installed {
            tree: Tree::default(),
            scripts: Vec::new(),
            warnings: Vec::new(),
        };
        if clone.join("package.json").exists() {
            if self.uses_npm_command() {
                let args = ["install", "--omit=dev", "--ignore-scripts"];
                self.npm_command().run(&args, &clone, self.output)?;
            } else {
                let npm = self.npm_client()?;
                let tree = match at {
                    Some((_, tree)) => tree,
                    None => {
                        self.resolve_with(npm, text, &Root::Folder(clone.clone()), &[], scope)?
                    }
                };
                remove_modules(&clone, &tree).map_err(files(&clone))?;
                installed = self.block_on(|| npm.install(tree, &clone))?;
            }
        }
        self.report_warnings(&installed);
        let locked = LockedSource {
            source: text.trim().to_owned(),
            version: version_of(&clone),
            commit: Some(commit),
            integrity: None,
            installed: Utc::now(),
            tree: installed.tree,
        };
        Ok(Staged {
            staging,
            new: clone,
            target: target.to_owned(),
            locked,
            scripts: installed.scripts,
        })
    }

    pub(super) fn uninstall(
        &self,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<(), PackageError> {
        let (target, root) = match source {
            PackageSource::Npm(npm) => {
                let root = self.install_paths.npm_project(scope).join("node_modules");
                (root.join(&npm.name), root)
            }
            PackageSource::Git(_) => {
                let target = self.install_paths.package_folder(source, scope);
                (target, self.install_paths.git_root(scope))
            }
            PackageSource::Local(_) => return Ok(()),
        };
        self.refuse_links(scope, &target)?;
        match fs::remove_dir_all(&target) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(files(&target)(error));
            }
            _ => {}
        }
        let mut parents = target.ancestors().skip(1);
        // Only empty folders can be removed.
        parents.all(|dir| dir != root && fs::remove_dir(dir).is_ok());
        if let PackageSource::Npm(npm) = source {
            self.add_to_project(scope, &npm.name, None)?;
            let folder = self.install_paths.package_folder(source, scope);
            if folder.exists() {
                (self.report)(&format!(
                    "{} stays: npm has installed it for all programs. \"npm uninstall -g {}\" \
                     removes it",
                    folder.display(),
                    npm.name
                ));
            }
        }
        Ok(())
    }

    /// Checks that a project does not send its packages elsewhere, such as into the user's
    /// extensions. Links of the user are the user's.
    pub(super) fn refuse_links(
        &self,
        scope: SourceScope,
        target: &Path,
    ) -> Result<(), PackageError> {
        if scope != SourceScope::Project {
            return Ok(());
        }
        let project = self.paths.project_dir();
        let below = target.ancestors().take_while(|path| **path != project);
        for path in below.collect::<Vec<_>>().into_iter().rev() {
            if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink()) {
                return Err(PackageError::Link(path.to_owned()));
            }
        }
        Ok(())
    }

    pub(super) fn report_warnings(&self, installed: &Installed) {
        for warning in &installed.warnings {
            (self.report)(&super::printable(warning));
        }
    }
}

/// Removes what a clone has in `node_modules`, if packages are installed there.
fn remove_modules(clone: &Path, tree: &Tree) -> io::Result<()> {
    let modules = clone.join("node_modules");
    if tree.packages.len() < 2 {
        return Ok(());
    }
    match fs::symlink_metadata(&modules) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(&modules),
        Ok(_) => fs::remove_file(&modules),
        Err(_) => Ok(()),
    }
}

/// Returns whether two trees have the same packages. Hashes that the registry does not name are
/// only known after an installation.
fn is_same(old: &Tree, new: &Tree) -> bool {
    let key = |tree: &Tree| {
        let packages = tree.packages.iter();
        packages
            .map(|it| {
                (
                    it.path.clone(),
                    it.name.clone(),
                    it.version.clone(),
                    it.link.clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    key(old) == key(new)
}

/// Returns the version of a package, or the beginning of its commit.
fn state(locked: &LockedSource) -> Option<String> {
    match &locked.commit {
        Some(commit) => Some(commit.chars().take(7).collect()),
        None => locked.version.clone(),
    }
}

/// Returns whether a text from a file is the full name of a commit, and no option of git.
fn is_commit(text: &str) -> bool {
    (40..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the version in the manifest of a package.
pub(super) fn version_of(folder: &Path) -> Option<String> {
    let text = regular_file::read_text(folder.join("package.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

pub(super) fn files(path: &Path) -> impl FnOnce(io::Error) -> PackageError + use<> {
    let path = path.to_owned();
    move |source| PackageError::Files { path, source }
}

/// Creates a folder that git ignores.
pub(super) fn create_root(root: &Path) -> io::Result<()> {
    fs::create_dir_all(root)?;
    let ignore = root.join(".gitignore");
    match ignore.exists() {
        true => Ok(()),
        false => fs::write(ignore, "*\n!.gitignore\n"),
    }
}
