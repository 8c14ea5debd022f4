//! Trust of a project's `.pi` and `.agents`. pi does not ask, but it respects answers that
//! newer versions of the original stored in `trust.json`: `true`, `false` or `null` for a
//! folder and everything in it.

use pi_base::regular_file;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::paths::PROJECT_DIR_NAME;
use crate::settings::global_value;

/// Value of `--approve` and `--no-approve`.
static APPROVAL: OnceLock<bool> = OnceLock::new();

/// Files in a project's `.pi` that can change the behavior of pi.
const TRUSTED_NAMES: [&str; 7] = [
    "settings.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// The reason why a project's resources are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// Requested by `--no-approve`, or by the extension that started the session.
    Requested,
    /// Recorded in `file` for `folder`, which is the project or one of its ancestors.
    Recorded { file: PathBuf, folder: PathBuf },
    /// The setting `defaultProjectTrust` is `never`.
    Default { file: PathBuf },
    /// The recorded answers cannot be read.
    Unreadable { file: PathBuf, why: String },
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested => f.write_str("asked for with --no-approve"),
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

/// Sets the trust for all projects from the command line. Only the first call has an effect.
pub fn set_approval(all: bool) {
    // The first value stays, because earlier decisions were based on it.
    let _ = APPROVAL.set(all);
}

/// Returns the reason to ignore a project's resources; `None` if they are used. As in newer
/// versions of the original, the answer for the nearest folder takes precedence over
/// `defaultProjectTrust`.
pub fn distrust(agent_dir: &Path, project: &Path) -> Option<Distrust> {
    match APPROVAL.get() {
        Some(true) => return None,
        Some(false) => return Some(Distrust::Requested),
        None => {}
    }
    let file = agent_dir.join("trust.json");
    match recorded_answer(&file, project) {
        Ok(Some((_, true))) => None,
        Ok(Some((folder, false))) => Some(Distrust::Recorded { file, folder }),
        Ok(None) => default_distrust(agent_dir),
        Err(why) => Some(Distrust::Unreadable { file, why }),
    }
}

/// Returns whether the project has resources that trust would enable.
pub fn has_something_to_trust(home: &Path, project: &Path) -> bool {
    let project = canonical(project);
    let own = project.join(PROJECT_DIR_NAME);
    let mine = canonical(home).join(".agents/skills");
    TRUSTED_NAMES.iter().any(|name| own.join(name).exists())
        || (project.ancestors())
            .map(|folder| folder.join(".agents/skills"))
            .any(|skills| skills != mine && skills.exists())
}

/// Returns the recorded answer for `project`, or for its nearest ancestor, with the folder. The
/// error describes the problem with the file.
pub fn recorded_answer(file: &Path, project: &Path) -> Result<Option<(PathBuf, bool)>, String> {
    let Some(answers) = object(file)? else {
        return Ok(None);
    };
    for (folder, answer) in &answers {
        if !answer.is_boolean() && !answer.is_null() {
            return Err(format!("{folder:?} is neither true nor false nor null"));
        }
    }
    let project = canonical(project);
    let answer = |folder: &Path| {
        let answer = answers.get(folder.to_string_lossy().as_ref())?;
        Some((folder.to_path_buf(), answer.as_bool()?))
    };
    Ok(project.ancestors().find_map(answer))
}

/// Returns the default from the global settings; a project must not declare itself trusted.
fn default_distrust(agent_dir: &Path) -> Option<Distrust> {
    let file = agent_dir.join("settings.json");
    let value = global_value(&file, "defaultProjectTrust")?;
    (value == "never").then_some(Distrust::Default { file })
}

fn object(file: &Path) -> Result<Option<Map<String, Value>>, String> {
    let text = match regular_file::read_text(file) {
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

/// Returns the canonical path, or the path itself if it does not exist.
fn canonical(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf())
}
