//! Folders of installed packages: those of the original. Earlier versions of it kept the user's
//! packages in npm's global folder, where they are still found. npm is asked for that folder only
//! if the answer is not cached: that takes longer than the rest of the start.

use pi_base::regular_file;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::run::Program;
use super::source::{GitSource, PackageSource};
use crate::paths::Paths;
use crate::settings::Settings;
use crate::source_info::SourceScope;

/// Time for which the cached answer of npm is used without asking again.
const NPM_ROOT_TTL: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub struct InstallPaths {
    paths: Paths,
    npm: Program,
}

impl InstallPaths {
    pub fn new(paths: &Paths, settings: &Settings) -> Self {
        Self {
            paths: paths.clone(),
            npm: Program::npm(settings.values().npm_command.as_deref()),
        }
    }

    /// Returns the folder to which a local path in a source of that scope is relative.
    pub fn base(&self, scope: SourceScope) -> PathBuf {
        match scope {
            SourceScope::User => self.paths.agent_dir.clone(),
            SourceScope::Project => self.paths.project_dir(),
            SourceScope::Temporary => self.paths.cwd.clone(),
        }
    }

    /// Returns the folder of a package, whether or not it exists.
    pub fn package_folder(&self, source: &PackageSource, scope: SourceScope) -> PathBuf {
        match source {
            PackageSource::Local(path) => self.paths.resolve(path, &self.base(scope)),
            PackageSource::Npm(npm) => self.npm_folder(&npm.name, scope),
            PackageSource::Git(git) => self.git_folder(git, scope),
        }
    }

    /// Returns the folder in which a package of npm is installed.
    pub fn npm_target(&self, name: &str, scope: SourceScope) -> PathBuf {
        self.npm_project(scope).join("node_modules").join(name)
    }

    /// Returns the folder in which a package of npm is found.
    fn npm_folder(&self, name: &str, scope: SourceScope) -> PathBuf {
        let target = self.npm_target(name, scope);
        if scope != SourceScope::User || target.exists() {
            return target;
        }
        let global = self.global_root(name).map(|root| root.join(name));
        global.filter(|folder| folder.exists()).unwrap_or(target)
    }

    /// Returns the npm project with the packages of a scope.
    pub fn npm_project(&self, scope: SourceScope) -> PathBuf {
        match scope {
            SourceScope::User => self.paths.agent_dir.join("npm"),
            SourceScope::Project => self.paths.project_dir().join("npm"),
            SourceScope::Temporary => self.temporary_root().join("npm"),
        }
    }

    /// Returns the root of all clones of a scope.
    pub fn git_root(&self, scope: SourceScope) -> PathBuf {
        match scope {
            SourceScope::User => self.paths.git_packages(),
            SourceScope::Project => self.paths.project_dir().join("git"),
            SourceScope::Temporary => self.temporary_root().join("git"),
        }
    }

    fn git_folder(&self, git: &GitSource, scope: SourceScope) -> PathBuf {
        let path = match (&git.reference, scope) {
            // Temporary clones are not recorded anywhere, so the folder name contains the
            // reference.
            (Some(reference), SourceScope::Temporary) => {
                format!("{}@{}", git.path, reference.replace('/', "-"))
            }
            _ => git.path.clone(),
        };
        self.git_root(scope).join(&git.host).join(path)
    }

    /// Returns the folder for packages of single runs. The original uses the system's temporary
    /// folder, where other users could place code.
    fn temporary_root(&self) -> PathBuf {
        self.cache().join("packages")
    }

    pub fn cache(&self) -> PathBuf {
        self.paths.agent_dir.join("cache")
    }

    /// Returns npm's global folder; `None` if there is no npm.
    fn global_root(&self, package: &str) -> Option<PathBuf> {
        match self.cached_root() {
            Some((root, fresh)) if fresh || root.join(package).is_dir() => Some(root),
            _ => self.query_npm_root(),
        }
    }

    /// Asks npm for its global folder and caches the answer for the next start.
    fn query_npm_root(&self) -> Option<PathBuf> {
        let root = self.npm.output(&["root", "-g"], &self.paths.cwd).ok()?;
        let root = PathBuf::from(root.trim());
        if !root.is_absolute() {
            return None;
        }
        let cached = NpmRoot {
            key: self.root_key(),
            root: root.clone(),
        };
        // Without the cache a start is only slower.
        if let Ok(text) = serde_json::to_string(&cached)
            && fs::create_dir_all(self.cache()).is_ok()
        {
            let _ = fs::write(self.root_file(), text);
        }
        Some(root)
    }

    /// Returns the cached folder, and whether npm was asked within [`NPM_ROOT_TTL`]: then a package
    /// that is missing there does not cause another question.
    fn cached_root(&self) -> Option<(PathBuf, bool)> {
        let file = self.root_file();
        let text = regular_file::read_text(&file).ok()?;
        let cached: NpmRoot = serde_json::from_str(&text).ok()?;
        let age = fs::metadata(file).ok()?.modified().ok()?.elapsed();
        let fresh = age.is_ok_and(|age| age < NPM_ROOT_TTL);
        (cached.key == self.root_key()).then_some((cached.root, fresh))
    }

    fn root_file(&self) -> PathBuf {
        self.cache().join("npm-root.json")
    }

    /// Returns the values on which the answer of npm depends.
    fn root_key(&self) -> Vec<String> {
        let mut key = self.npm.words.clone();
        for name in ["PATH", "PREFIX", "npm_config_prefix", "NPM_CONFIG_PREFIX"] {
            let value = env::var_os(name).unwrap_or_default();
            key.push(value.to_string_lossy().into_owned());
        }
        for dir in [&self.paths.home, &self.paths.cwd] {
            key.push(changed_at(&dir.join(".npmrc")));
        }
        key
    }
}

#[derive(Deserialize, Serialize)]
struct NpmRoot {
    key: Vec<String>,
    root: PathBuf,
}

fn changed_at(path: &Path) -> String {
    let modified = fs::metadata(path).and_then(|meta| meta.modified());
    let since = modified
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or_else(String::new, |since| since.as_nanos().to_string())
}
