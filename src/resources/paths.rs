//! Where things are: the agent folder, the project folder and the names under
//! them. Computed once at start and handed down, so that nothing else reads the
//! environment and tests can point everything at a temporary folder.

use std::env;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::trust::{self, Distrust};

/// The folder of a project's own configuration, below its root.
pub const PROJECT_DIR_NAME: &str = ".pi";

/// Kinds of resource that have a folder of their own under both roots, a key of
/// their own in settings and in a package's manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceKind {
    Extensions,
    Skills,
    Prompts,
    Themes,
}

impl ResourceKind {
    pub const ALL: [Self; 4] = [Self::Extensions, Self::Skills, Self::Prompts, Self::Themes];

    /// The name of the folder, of the setting and of the manifest's key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Extensions => "extensions",
            Self::Skills => "skills",
            Self::Prompts => "prompts",
            Self::Themes => "themes",
        }
    }

    /// One of them, at the start of a sentence.
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
    /// Where the session works.
    pub cwd: PathBuf,
    /// Why what the project brings is left out, if it is.
    pub distrust: Option<Distrust>,
}

impl Paths {
    /// Reads `HOME` and `PI_CODING_AGENT_DIR`. A relative agent folder counts
    /// from the process's folder as it is now, which may change later.
    pub fn from_env(cwd: &Path) -> Self {
        let home = env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
        let agent_dir = agent_dir(env::var_os("PI_CODING_AGENT_DIR").as_deref(), &home);
        Self::new(home, absolute(&agent_dir), absolute(cwd))
    }

    fn new(home: PathBuf, agent_dir: PathBuf, cwd: PathBuf) -> Self {
        Self {
            distrust: trust::distrust(&agent_dir, &cwd),
            home,
            agent_dir,
            cwd,
        }
    }

    /// The same roots for a session that works elsewhere, in a project of its own.
    pub fn with_cwd(&self, cwd: &Path) -> Self {
        let cwd = absolute(cwd);
        match self.distrust {
            _ if cwd == self.cwd => self.clone(),
            Some(Distrust::Asked) => Self {
                cwd,
                ..self.clone()
            },
            _ => Self::new(self.home.clone(), self.agent_dir.clone(), cwd),
        }
    }

    /// For a session that an extension began: in an agent folder that may be another one,
    /// and with less trust if the extension says so.
    pub fn of_extension(&self, agent_dir: PathBuf, is_trusted: bool) -> Self {
        let mut paths = match agent_dir == self.agent_dir {
            true => self.clone(),
            false => Self::new(self.home.clone(), agent_dir, self.cwd.clone()),
        };
        if !is_trusted {
            paths.distrust = Some(Distrust::Asked);
        }
        paths
    }

    pub fn ignores_project(&self) -> bool {
        self.distrust.is_some()
    }

    pub fn project_dir(&self) -> PathBuf {
        self.cwd.join(PROJECT_DIR_NAME)
    }

    /// The same, if what is there counts.
    pub fn trusted_project_dir(&self) -> Option<PathBuf> {
        (!self.ignores_project()).then(|| self.project_dir())
    }

    pub fn global_settings(&self) -> PathBuf {
        self.agent_dir.join("settings.json")
    }

    pub fn project_settings(&self) -> PathBuf {
        self.project_dir().join("settings.json")
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

    /// Programs of our own (`fd`, `rg`); first in the `PATH` of commands.
    pub fn bin(&self) -> PathBuf {
        self.agent_dir.join("bin")
    }

    /// Clones of packages that come from git.
    pub fn git_packages(&self) -> PathBuf {
        self.agent_dir.join("git")
    }

    pub fn debug_log(&self) -> PathBuf {
        self.agent_dir.join("pi-debug.log")
    }

    /// What a user wrote as a path: `~` is home, relative counts from `base`,
    /// `.` and `..` are gone.
    pub fn resolve(&self, text: &str, base: &Path) -> PathBuf {
        normalize(&base.join(expand_tilde(text.trim(), &self.home)))
    }
}

/// The folder that our documents and examples were installed in: a `docs`
/// folder in `PI_PACKAGE_DIR` or beside the executable.
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

/// `~` and `~/x` are in `home`; `~x` too, since other people's homes are not
/// looked up.
pub fn expand_tilde(text: &str, home: &Path) -> PathBuf {
    match text.strip_prefix('~') {
        Some(rest) => home.join(rest.trim_start_matches('/')),
        None => PathBuf::from(text),
    }
}

/// Removes `.` and `..` by name alone, so that it works for what does not exist.
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
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
    fn documents_lie_where_the_environment_says_or_beside_the_executable() {
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
