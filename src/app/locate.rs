//! Which session is meant by `--session` and `--fork`, and which there are: files,
//! and the beginnings of ids.

use std::path::{Path, PathBuf};

use super::config::AppConfig;
use super::start::{StartError, session_dir};
use crate::resources::paths::expand_tilde;
use crate::resources::settings::Settings;
use crate::session::{
    SessionInfo, SessionRef, find_by_id, list, list_all, read_header, session_dirs,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Located {
    Here(PathBuf),
    /// Held in another folder.
    Elsewhere {
        path: PathBuf,
        cwd: String,
    },
}

/// A path, or the beginning of an id: of this folder's sessions, then of all; the
/// last written of those.
pub fn locate(config: &AppConfig, settings: &Settings, name: &str) -> Result<Located, StartError> {
    let paths = &config.paths;
    let is_path = name.contains(['/', '\\']) || name.ends_with(".jsonl");
    if is_path {
        let path = paths.cwd.join(expand_tilde(name, &paths.home));
        return Ok(Located::Here(path));
    }
    let dir = session_dir(config, settings, &paths.cwd);
    if let Some(found) = find_by_id(&dir, name)?.into_iter().next() {
        return Ok(Located::Here(found.path));
    }
    let mut found: Vec<SessionRef> = Vec::new();
    for dir in session_dirs(&paths.sessions())? {
        found.extend(find_by_id(&dir, name)?);
    }
    let best = found
        .into_iter()
        .max_by_key(|session| (session.header.id == name, session.modified));
    match best {
        Some(found) => Ok(Located::Elsewhere {
            cwd: found.header.cwd.unwrap_or_default().display().to_string(),
            path: found.path,
        }),
        None => Err(StartError::NoSuchSession(name.to_string())),
    }
}

/// The sessions of the folder, or of all, the last active first.
pub fn listed(
    config: &AppConfig,
    settings: &Settings,
    all: bool,
) -> Result<Vec<SessionInfo>, StartError> {
    Ok(match all {
        true => list_all(&config.paths.sessions())?,
        false => list(&session_dir(config, settings, &config.paths.cwd))?,
    })
}

/// The folder in which the session was held, if it is gone.
pub fn missing_cwd(session: &Path) -> Option<PathBuf> {
    let cwd = read_header(session)?.cwd?;
    (!cwd.as_os_str().is_empty() && !cwd.is_dir()).then_some(cwd)
}
