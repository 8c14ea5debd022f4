//! Finds and lists session files, for `--session` and `--fork`.

use std::path::{Path, PathBuf};

use crate::startup::config::AppConfig;
use crate::startup::{StartError, session_dir};
use pi_resources::paths::expand_tilde;
use pi_resources::settings::Settings;
use pi_session::{SessionInfo, SessionRef, find_by_id, list, list_all, read_header, session_dirs};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundSession {
    Here(PathBuf),
    /// The session's working folder is another one.
    Elsewhere {
        path: PathBuf,
        cwd: String,
    },
}

/// Finds a session by path or by the beginning of its id: among the sessions of this folder first,
/// then among all. The exact id wins, then the latest modification.
pub fn find_session(
    config: &AppConfig,
    settings: &Settings,
    name: &str,
) -> Result<FoundSession, StartError> {
    let paths = &config.paths;
    let is_path = name.contains(['/', '\\']) || name.ends_with(".jsonl");
    if is_path {
        let path = paths.cwd.join(expand_tilde(name, &paths.home));
        return Ok(FoundSession::Here(path));
    }
    let dir = session_dir(config, settings, &paths.cwd);
    if let Some(found) = find_by_id(&dir, name)?.into_iter().next() {
        return Ok(FoundSession::Here(found.path));
    }
    let mut found: Vec<SessionRef> = Vec::new();
    for dir in session_dirs(&paths.sessions())? {
        found.extend(find_by_id(&dir, name)?);
    }
    let best = found
        .into_iter()
        .max_by_key(|session| (session.header.id == name, session.modified));
    match best {
        Some(found) => Ok(FoundSession::Elsewhere {
            cwd: found.header.cwd.unwrap_or_default().display().to_string(),
            path: found.path,
        }),
        None => Err(StartError::NoSuchSession(name.to_string())),
    }
}

/// Lists the sessions of the folder, or of all folders, the most recently active first.
pub fn list_sessions(
    config: &AppConfig,
    settings: &Settings,
    all: bool,
) -> Result<Vec<SessionInfo>, StartError> {
    Ok(match all {
        true => list_all(&config.paths.sessions())?,
        false => list(&session_dir(config, settings, &config.paths.cwd))?,
    })
}

/// Returns the session's working folder if it does not exist any more.
pub fn missing_cwd(session: &Path) -> Option<PathBuf> {
    let cwd = read_header(session)?.cwd?;
    (!cwd.as_os_str().is_empty() && !cwd.is_dir()).then_some(cwd)
}
