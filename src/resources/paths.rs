//! Locations: the agent folder, the project folder and names below them. Computed once at start
//! and passed on, so that nothing else reads the environment and tests can use a temporary
//! folder.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pi_base::normalize;

use crate::trust::{self, Distrust};

/// Name of a project's configuration folder.
pub const PROJECT_DIR_NAME: &str = ".pi";

/// A kind of resource, which has its own folder in the agent folder and in projects, and its
/// own key in settings and manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    Extensions,
    Skills,
    Prompts,
    Themes,
}

impl ResourceKind {
    pub const ALL: [Self; 4] = [Self::Extensions, Self::Skills, Self::Prompts, Self::Themes];

    /// Returns the name of the folder, the setting and the manifest key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Extensions => "extensions",
            Self::Skills => "skills",
            Self::Prompts => "prompts",
            Self::Themes => "themes",
        }
    }

    /// Returns the singular for the start of a sentence.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Extensions => "Extension",
            Self::Skills => "Skill",
            Self::Prompts => "Prompt template",
            Self::Themes => "Theme",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub home: PathBuf,
    /// `PI_CODING_AGENT_DIR`, or `~/.pi/agent`.
    pub agent_dir: PathBuf,
    /// The working folder of the session.
    pub cwd: PathBuf,
    /// The reason why the project's resources are ignored; `None` if they are used.
    pub distrust: Option<Distrust>,
}

impl Paths {
    /// Reads `HOME` and `PI_CODING_AGENT_DIR`. A relative agent folder is resolved against the
    /// current folder of the process, which may change later.
    pub fn from_env(cwd: &Path) -> Self {
        let home = env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        let agent_dir = agent_dir(env::var_os("PI_CODING_AGENT_DIR").as_deref(), &home);
        Self::new(home, absolute(&agent_dir), absolute(cwd))
    }

    fn new(home: PathBuf, agent_dir: PathBuf, cwd: PathBuf) -> Self {
        Self {
            distrust: trust::distrust(&home, &agent_dir, &cwd),
            home,
            agent_dir,
            cwd,
        }
    }

    /// Returns the same locations for a session with another working folder. Whether the project
    /// is trusted may have been decided anew.
    pub fn with_cwd(&self, cwd: &Path) -> Self {
        let cwd = absolute(cwd);
        match self.distrust {
            Some(Distrust::Requested) => Self {
                cwd,
                ..self.clone()
            },
            _ => Self::new(self.home.clone(), self.agent_dir.clone(), cwd),
        }
    }

    /// Returns the locations of a session that an extension starts, with the agent folder that
    /// it chose. The project is only trusted if it is trusted here and by the extension.
    pub fn for_extension(&self, agent_dir: PathBuf, is_trusted: bool) -> Self {
        let mut paths = match agent_dir == self.agent_dir {
            true => self.clone(),
            false => Self::new(self.home.clone(), agent_dir, self.cwd.clone()),
        };
        if !is_trusted {
            paths.distrust = Some(Distrust::Requested);
        }
        paths
    }

    pub fn ignores_project(&self) -> bool {
        self.distrust.is_some()
    }

    pub fn project_dir(&self) -> PathBuf {
        self.cwd.join(PROJECT_DIR_NAME)
    }

    /// Returns the project folder if the project is trusted.
    pub fn trusted_project_dir(&self) -> Option<PathBuf> {
        (!self.ignores_project()).then(|| self.project_dir())
    }

    pub fn global_settings(&self) -> PathBuf {
        self.agent_dir.join("settings.json")
    }

    pub fn project_settings(&self) -> PathBuf {
        self.project_dir().join("settings.json")
    }

    /// Returns the record of the user's installed packages.
    pub fn global_lock(&self) -> PathBuf {
        self.agent_dir.join("pi.lock")
    }

    /// Returns the record of the project's installed packages.
    pub fn project_lock(&self) -> PathBuf {
        self.project_dir().join("pi.lock")
    }

    pub fn models(&self) -> PathBuf {
        self.agent_dir.join("models.json")
    }

    pub fn auth(&self) -> PathBuf {
        self.agent_dir.join("auth.json")
    }

    pub fn keybindings(&self) -> PathBuf {
        self.agent_dir.join("keybindings.json")
    }

    pub fn sessions(&self) -> PathBuf {
        self.agent_dir.join("sessions")
    }

    /// Folder of pi's own programs (`fd`, `rg`); first in the `PATH` of commands.
    pub fn bin(&self) -> PathBuf {
        self.agent_dir.join("bin")
    }

    /// Folder of clones of git packages.
    pub fn git_packages(&self) -> PathBuf {
        self.agent_dir.join("git")
    }

    /// Resolves a path that a user wrote: `~` is the home folder, relative paths start at
    /// `base`, and `.` and `..` are removed.
    pub fn resolve(&self, text: &str, base: &Path) -> PathBuf {
        normalize(&base.join(expand_tilde(text.trim(), &self.home)))
    }
}

/// Returns the folder with the installed documents and examples: the one that has `docs`, in
/// `PI_PACKAGE_DIR` or next to the executable.
pub fn package_dir(home: &Path) -> Option<PathBuf> {
    let executable = env::current_exe().ok();
    let from_env = env::var("PI_PACKAGE_DIR").ok();
    package_dir_of(from_env.as_deref(), executable.as_deref(), home)
}

fn package_dir_of(from_env: Option<&str>, exe: Option<&Path>, home: &Path) -> Option<PathBuf> {
    let dir = match from_env {
        Some(dir) if !dir.is_empty() => absolute(&expand_tilde(dir, home)),
        _ => exe?.parent()?.to_owned(),
    };
    dir.join("docs").is_dir().then_some(dir)
}

fn agent_dir(from_env: Option<&OsStr>, home: &Path) -> PathBuf {
    match from_env {
        Some(dir) if !dir.is_empty() => match dir.to_str() {
            Some(text) => expand_tilde(text, home),
            None => PathBuf::from(dir),
        },
        _ => home.join(PROJECT_DIR_NAME).join("agent"),
    }
}

/// Replaces `~` and `~/x` by paths in `home`. `~x` is in `home` too, because other users' homes
/// are not looked up.
pub fn expand_tilde(text: &str, home: &Path) -> PathBuf {
    match text.strip_prefix('~') {
        Some(rest) => home.join(rest.trim_start_matches('/')),
        None => PathBuf::from(text),
    }
}

fn absolute(path: &Path) -> PathBuf {
    normalize(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_folder_comes_from_the_environment_or_home() {
        let home = Path::new("/home/u");
        let dir = |value: Option<&str>| agent_dir(value.map(OsStr::new), home);
        assert_eq!(dir(None), Path::new("/home/u/.pi/agent"));
        assert_eq!(dir(Some("")), Path::new("/home/u/.pi/agent"));
        assert_eq!(dir(Some("~")), Path::new("/home/u"));
        assert_eq!(dir(Some("~/a/b")), Path::new("/home/u/a/b"));
        assert_eq!(dir(Some("/srv/agent")), Path::new("/srv/agent"));
    }

    #[test]
    fn documents_are_found_by_environment_or_executable() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        std::fs::create_dir_all(home.join("share/docs")).unwrap();
        std::fs::create_dir_all(home.join("bin/docs")).unwrap();
        let exe = home.join("bin/pi");
        let find = |from_env| package_dir_of(from_env, Some(&exe), home);
        assert_eq!(find(Some("~/share")), Some(home.join("share")));
        assert_eq!(find(Some("~/elsewhere")), None);
        assert_eq!(find(Some("")), Some(home.join("bin")));
        assert_eq!(find(None), Some(home.join("bin")));
    }

    #[test]
    fn paths_of_users_are_expanded_and_normalised() {
        let paths = Paths {
            home: "/home/u".into(),
            agent_dir: "/home/u/.pi/agent".into(),
            cwd: "/p".into(),
            distrust: None,
        };
        let base = paths.project_dir();
        let resolve = |text| paths.resolve(text, &base);
        assert_eq!(resolve(" ~/x.ts "), Path::new("/home/u/x.ts"));
        assert_eq!(resolve("./a/../b.ts"), Path::new("/p/.pi/b.ts"));
        assert_eq!(resolve("../../../../x"), Path::new("/x"));
        assert_eq!(resolve("/abs/./x"), Path::new("/abs/x"));
    }
}
