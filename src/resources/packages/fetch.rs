//! Installs, updates and removes one package on disk. A failure leaves the previous state.

use pi_base::regular_file;
use std::fs;
use std::io;
use std::path::Path;

use super::contents::scripts_of;
use super::folder_swap::{FolderBackup, copy_tree, staging, swap};
use super::run::Program;
use super::source::{GitSource, NpmSource};
use super::{PackageError, PackageSource, Packages};
use crate::source_info::SourceScope;

/// Files that make a folder an npm project.
const PROJECT_FILES: [&str; 2] = ["package.json", "package-lock.json"];

impl Packages<'_> {
    /// Like `fetch`, but also updates an existing clone to the current state of its repository.
    pub(super) fn fetch_newest(
        &self,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<std::path::PathBuf, PackageError> {
        if let PackageSource::Git(git) = source {
            let target = self.install_paths.package_folder(source, scope)?;
            if target.exists() {
                match self.is_up_to_date(git, &target) {
                    Ok(true) => {}
                    Ok(false) => self.fetch_git(git, None, &target, scope)?,
                    Err(error) if self.is_checked_out(git, &target) => {
                        let url = &git.repository;
                        (self.report)(&format!("{url} cannot be asked, the clone stays: {error}"));
                    }
                    Err(error) => return Err(error),
                }
                return Ok(target);
            }
        }
        self.fetch(source, scope)
    }

    /// Fetches a package if it is missing and returns its folder.
    pub(super) fn fetch(
        &self,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<std::path::PathBuf, PackageError> {
        match source {
            PackageSource::Npm(npm) => self.fetch_npm(npm, &npm.spec, scope)?,
            PackageSource::Git(git) => {
                let target = self.install_paths.package_folder(source, scope)?;
                let same = git.reference.is_none() || self.is_checked_out(git, &target);
                if !target.exists() || !same {
                    self.fetch_git(git, None, &target, scope)?;
                }
            }
            PackageSource::Local(_) => {}
        }
        let folder = self.install_paths.package_folder(source, scope)?;
        match folder.exists() {
            true => Ok(folder),
            false => Err(PackageError::NoSuchPath(folder)),
        }
    }

    /// Updates a package. Returns whether there was a newer version.
    pub(super) fn update_package(
        &self,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<bool, PackageError> {
        match source {
            PackageSource::Npm(npm) => {
                let folder = self.install_paths.package_folder(source, scope)?;
                let before = version_of(&folder);
                self.fetch_npm(npm, &format!("{}@latest", npm.name), scope)?;
                Ok(before != version_of(&folder))
            }
            PackageSource::Git(git) => {
                let target = self.install_paths.package_folder(source, scope)?;
                if !target.exists() {
                    self.fetch_git(git, None, &target, scope)?;
                    return Ok(true);
                }
                let branch = self.branch(&target);
                if self.is_newest(git, branch.as_deref(), &target)? {
                    return Ok(false);
                }
                self.fetch_git(git, branch.as_deref(), &target, scope)?;
                Ok(true)
            }
            PackageSource::Local(_) => Ok(false),
        }
    }

    pub(super) fn uninstall(
        &self,
        source: &PackageSource,
        scope: SourceScope,
    ) -> Result<(), PackageError> {
        match source {
            PackageSource::Npm(npm) if scope == SourceScope::User => {
                let args = ["uninstall", "-g", npm.name.as_str()];
                Ok(self
                    .install_paths
                    .npm
                    .run(&args, &self.paths.cwd, self.output)?)
            }
            PackageSource::Npm(npm) => {
                let root = self.install_paths.npm_project(scope);
                if !root.exists() {
                    return Ok(());
                }
                let prefix = root.to_string_lossy();
                let args = ["uninstall", npm.name.as_str(), "--prefix", &*prefix];
                Ok(self
                    .install_paths
                    .npm
                    .run(&args, &self.paths.cwd, self.output)?)
            }
            PackageSource::Git(_) => {
                let target = self.install_paths.package_folder(source, scope)?;
                match fs::remove_dir_all(&target) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(files(&target)(error));
                    }
                    _ => {}
                }
                let root = self.install_paths.git_root(scope);
                let mut parents = target.ancestors().skip(1);
                // Only empty folders can be removed.
                parents.all(|dir| dir != root && fs::remove_dir(dir).is_ok());
                Ok(())
            }
            PackageSource::Local(_) => Ok(()),
        }
    }

    fn fetch_npm(
        &self,
        npm: &NpmSource,
        spec: &str,
        scope: SourceScope,
    ) -> Result<(), PackageError> {
        let program = &self.install_paths.npm;
        if scope == SourceScope::User {
            // The global folder of npm, which npm changes in place.
            let folder = self.install_paths.query_npm_root()?.join(&npm.name);
            let store = self.install_paths.cache().join("kept");
            let backup =
                FolderBackup::create(&folder, &store, &npm.name).map_err(files(&folder))?;
            let done = program.run(&["install", "-g", spec], &self.paths.cwd, self.output);
            match (done, backup) {
                (Ok(()), Some(backup)) => backup.discard(),
                (Ok(()), None) => {}
                (Err(error), Some(backup)) => {
                    backup.restore().map_err(files(&folder))?;
                    return Err(error.into());
                }
                (Err(error), None) => return Err(error.into()),
            }
            return Ok(());
        }
        let root = self.install_paths.npm_project(scope);
        prepare_project(&root).map_err(files(&root))?;
        let new = staging(&root).map_err(files(&root))?;
        for name in PROJECT_FILES.into_iter().chain(["node_modules"]) {
            let from = root.join(name);
            if from.exists() {
                copy_tree(&from, &new.path().join(name)).map_err(files(&from))?;
            }
        }
        let prefix = new.path().to_string_lossy();
        let args = ["install", spec, "--prefix", &*prefix];
        program.run(&args, &self.paths.cwd, self.output)?;
        let modules = "node_modules";
        let aside = new.path();
        swap(&aside.join(modules), &root.join(modules), aside).map_err(files(&root))?;
        for name in PROJECT_FILES {
            let from = aside.join(name);
            if from.exists() {
                fs::rename(from, root.join(name)).map_err(files(&root))?;
            }
        }
        Ok(())
    }

    /// Clones next to the old clone, then replaces it.
    fn fetch_git(
        &self,
        git: &GitSource,
        branch: Option<&str>,
        target: &Path,
        scope: SourceScope,
    ) -> Result<(), PackageError> {
        let root = self.install_paths.git_root(scope);
        prepare_root(&root).map_err(files(&root))?;
        let staging = staging(&root).map_err(files(&root))?;
        let clone = staging.path().join("clone");
        let program = Program::git();
        let to = clone.to_string_lossy();
        let mut args = vec!["clone"];
        args.extend(
            branch
                .map(|branch| ["--branch", branch])
                .into_iter()
                .flatten(),
        );
        args.extend(["--", git.repository.as_str(), &*to]);
        program.run(&args, &self.paths.cwd, self.output)?;
        if let Some(reference) = &git.reference {
            let args = [
                "-c",
                "advice.detachedHead=false",
                "checkout",
                reference.as_str(),
            ];
            program.run(&args, &clone, self.output)?;
        }
        if clone.join("package.json").exists() {
            for (name, script) in scripts_of(&clone) {
                (self.report)(&format!("npm runs its script \"{name}\": {script}"));
            }
            let args = ["install", "--omit=dev"];
            self.install_paths.npm.run(&args, &clone, self.output)?;
        }
        swap(&clone, target, staging.path()).map_err(files(target))
    }

    /// Returns the branch that a clone follows.
    fn branch(&self, clone: &Path) -> Option<String> {
        let args = ["rev-parse", "--abbrev-ref", "@{upstream}"];
        let upstream = Program::git().output(&args, clone).ok()?;
        let branch = upstream.trim().strip_prefix("origin/")?;
        (!branch.is_empty() && !branch.starts_with('-')).then(|| branch.to_owned())
    }

    fn is_newest(
        &self,
        git: &GitSource,
        branch: Option<&str>,
        clone: &Path,
    ) -> Result<bool, PackageError> {
        let reference = branch.map_or("HEAD".to_owned(), |branch| format!("refs/heads/{branch}"));
        let remote = self.query_remote(git, &[&reference], clone)?;
        Ok(remote.is_some() && remote == self.commit("HEAD", clone))
    }

    /// Returns whether the clone is at the commit of its source's tag, branch or default
    /// branch, which is looked up in the repository. Commits never change.
    fn is_up_to_date(&self, git: &GitSource, clone: &Path) -> Result<bool, PackageError> {
        let Some(reference) = &git.reference else {
            return self.is_newest(git, None, clone);
        };
        // Same choice as `git checkout`: a tag before a branch. The target of an annotated tag
        // is listed after the tag itself.
        let tag = format!("refs/tags/{reference}");
        let names = [&format!("{tag}^{{}}"), &tag];
        let remote = match self.query_remote(git, &names.map(String::as_str), clone)? {
            Some(commit) => Some(commit),
            None => self.query_remote(git, &[&format!("refs/heads/{reference}")], clone)?,
        };
        match remote {
            Some(commit) => Ok(Some(commit) == self.commit("HEAD", clone)),
            None => Ok(self.is_checked_out(git, clone)),
        }
    }

    /// Returns the commit of the last of these references that the repository has.
    fn query_remote(
        &self,
        git: &GitSource,
        references: &[&str],
        clone: &Path,
    ) -> Result<Option<String>, PackageError> {
        let mut args = vec!["ls-remote", "--", git.repository.as_str()];
        args.extend(references);
        let output = Program::git().output(&args, clone)?;
        let last = output.lines().last();
        Ok(last.and_then(|line| Some(line.split_whitespace().next()?.to_owned())))
    }

    fn commit(&self, name: &str, clone: &Path) -> Option<String> {
        let name = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", &name];
        let output = Program::git().output(&args, clone).ok()?;
        Some(output.trim().to_owned())
    }

    /// Returns whether a clone is at the commit that its source names.
    fn is_checked_out(&self, git: &GitSource, clone: &Path) -> bool {
        let Some(reference) = &git.reference else {
            return true;
        };
        let wanted = self
            .commit(&format!("refs/remotes/origin/{reference}"), clone)
            .or_else(|| self.commit(reference, clone));
        wanted.is_some() && wanted == self.commit("HEAD", clone)
    }
}

/// Returns the version in the manifest of a package.
pub(super) fn version_of(folder: &Path) -> Option<String> {
    let text = regular_file::read_text(folder.join("package.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
    Some(manifest.get("version")?.as_str()?.to_owned())
}

fn files(path: &Path) -> impl FnOnce(io::Error) -> PackageError + use<> {
    let path = path.to_owned();
    move |source| PackageError::Files { path, source }
}

/// Creates a folder that git ignores.
fn prepare_root(root: &Path) -> io::Result<()> {
    fs::create_dir_all(root)?;
    let ignore = root.join(".gitignore");
    match ignore.exists() {
        true => Ok(()),
        false => fs::write(ignore, "*\n!.gitignore\n"),
    }
}

fn prepare_project(root: &Path) -> io::Result<()> {
    prepare_root(root)?;
    let manifest = root.join("package.json");
    match manifest.exists() {
        true => Ok(()),
        false => fs::write(
            manifest,
            "{\n  \"name\": \"pi-extensions\",\n  \"private\": true\n}",
        ),
    }
}
