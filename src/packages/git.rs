//! Clones of packages: which commit they are at, and whether there is a newer one.

use std::path::Path;

use pi_resources::packages::run::Program;
use pi_resources::packages::source::GitSource;

use super::{PackageError, Packages};

impl Packages<'_> {
    /// Clones a repository into a folder that does not exist yet and returns the commit. Without
    /// a commit to check out, it is that of the source's reference or of the branch.
    pub(super) fn clone_into(
        &self,
        git: &GitSource,
        branch: Option<&str>,
        commit: Option<&str>,
        clone: &Path,
    ) -> Result<String, PackageError> {
        let program = Program::git();
        let to = clone.to_string_lossy();
        let mut args = vec!["-c", "core.hooksPath=/dev/null", "clone"];
        let branch = branch.map(|branch| ["--branch", branch]);
        args.extend(branch.into_iter().flatten());
        args.extend(["--", git.repository.as_str(), &*to]);
        program.run(&args, &self.paths.cwd, self.output)?;
        if let Some(reference) = commit.or(git.reference.as_deref()) {
            let args = [
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "advice.detachedHead=false",
                "checkout",
                reference,
            ];
            program.run(&args, clone, self.output)?;
        }
        self.commit("HEAD", clone)
            .ok_or_else(|| PackageError::NoCommit {
                repository: git.repository.clone(),
            })
    }

    /// Returns the branch that a clone follows.
    pub(super) fn branch(&self, clone: &Path) -> Option<String> {
        let args = ["rev-parse", "--abbrev-ref", "@{upstream}"];
        let upstream = Program::git().output(&args, clone).ok()?;
        let branch = upstream.trim().strip_prefix("origin/")?;
        (!branch.is_empty() && !branch.starts_with('-')).then(|| branch.to_owned())
    }

    pub(super) fn is_newest(
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
    pub(super) fn is_up_to_date(
        &self,
        git: &GitSource,
        clone: &Path,
    ) -> Result<bool, PackageError> {
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

    pub(super) fn commit(&self, name: &str, clone: &Path) -> Option<String> {
        let name = format!("{name}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", &name];
        let output = Program::git().output(&args, clone).ok()?;
        Some(output.trim().to_owned())
    }

    /// Returns whether a clone is at the commit that its source names.
    pub(super) fn is_checked_out(&self, git: &GitSource, clone: &Path) -> bool {
        let Some(reference) = &git.reference else {
            return true;
        };
        let wanted = self
            .commit(&format!("refs/remotes/origin/{reference}"), clone)
            .or_else(|| self.commit(reference, clone));
        wanted.is_some() && wanted == self.commit("HEAD", clone)
    }
}
