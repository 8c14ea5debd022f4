//! Whether what a project brings in `.pi` and `.agents` counts. Nobody is asked here, but
//! what people answered to newer versions of the original holds: those ask, and keep the
//! answers in `trust.json`, one of `true`, `false` or `null` for a folder and all in it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use js_runtime::read_regular_text;
use serde_json::{Map, Value};

use super::paths::PROJECT_DIR_NAME;
use super::settings::global_value;

/// What `--approve` and `--no-approve` said.
static APPROVAL: OnceLock<bool> = OnceLock::new();

/// What can change what pi does, in a project's folder of pi.
const RESOURCES: [&str; 7] = [
    "settings.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// Why what a project brings is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// By `--no-approve`, or by who began the session.
    Asked,
    /// `folder` is the project's or one around it.
    Recorded { file: PathBuf, folder: PathBuf },
    /// `defaultProjectTrust` is `never`.
    Default { file: PathBuf },
    /// Nobody can know what was answered.
    Unreadable { file: PathBuf, why: String },
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("asked for with --no-approve"),
            Self::Recorded { file, folder } => {
                write!(
                    f,
                    "{} is not trusted in {}",
                    folder.display(),
                    file.display()
                )
            }
            Self::Default { file } => {
                write!(f, "defaultProjectTrust is \"never\" in {}", file.display())
            }
            Self::Unreadable { file, why } => write!(
                f,
                "{}: {why}. Correct the file or remove it",
                file.display()
            ),
        }
    }
}

/// What the command line says of every project, once.
pub fn approve(all: bool) {
    // The first counts: it is what everything so far went by.
    let _ = APPROVAL.set(all);
}

/// `None`: what the project brings counts. As in newer versions of the original, the
/// answer for the nearest folder counts, then `defaultProjectTrust`.
pub fn distrust(agent_dir: &Path, project: &Path) -> Option<Distrust> {
    match APPROVAL.get() {
        Some(true) => return None,
        Some(false) => return Some(Distrust::Asked),
        None => {}
    }
    let file = agent_dir.join("trust.json");
    match recorded(&file, project) {
        Ok(Some((_, true))) => None,
        Ok(Some((folder, false))) => Some(Distrust::Recorded { file, folder }),
        Ok(None) => by_default(agent_dir),
        Err(why) => Some(Distrust::Unreadable { file, why }),
    }
}

/// Whether there is anything that would count if the project were trusted.
pub fn has_something_to_trust(home: &Path, project: &Path) -> bool {
    let project = real(project);
    let own = project.join(PROJECT_DIR_NAME);
    let mine = real(home).join(".agents/skills");
    RESOURCES.iter().any(|name| own.join(name).exists())
        || (project.ancestors())
            .map(|folder| folder.join(".agents/skills"))
            .any(|skills| skills != mine && skills.exists())
}

/// What was said of `project`, or of the nearest folder around it. `Err` says what is
/// wrong with the file.
pub fn recorded(file: &Path, project: &Path) -> Result<Option<(PathBuf, bool)>, String> {
    let Some(answers) = object(file)? else {
        return Ok(None);
    };
    for (folder, answer) in &answers {
        if !answer.is_boolean() && !answer.is_null() {
            return Err(format!("{folder:?} is neither true nor false nor null"));
        }
    }
    let project = real(project);
    let answer = |folder: &Path| {
        let answer = answers.get(folder.to_string_lossy().as_ref())?;
        Some((folder.to_path_buf(), answer.as_bool()?))
    };
    Ok(project.ancestors().find_map(answer))
}

/// A project must not say this of itself, so its settings do not count.
fn by_default(agent_dir: &Path) -> Option<Distrust> {
    let file = agent_dir.join("settings.json");
    let value = global_value(&file, "defaultProjectTrust")?;
    (value == "never").then_some(Distrust::Default { file })
}

fn object(file: &Path) -> Result<Option<Map<String, Value>>, String> {
    let text = match read_regular_text(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err("it is no object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// As the file system has it, if it is there.
fn real(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}
