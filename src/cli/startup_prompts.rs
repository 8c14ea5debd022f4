//! Questions to the user before a session starts: which session to continue, whether to copy one
//! of another folder, and where to work if its folder is missing.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use chrono::Utc;

use super::{CliError, output};
use pi_app::{
    AppConfig, FoundSession, Mode, SessionTarget, StartError, find_session, list_sessions,
    missing_cwd,
};
use pi_modes::session_list::{Choice, SessionList};
use pi_resources::settings::Settings;

/// The user's decision.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    Start,
    /// No session starts. Holds the message for the user.
    Exit(&'static str),
}

/// Resolves which session starts and stores it in `config`. Modes that cannot ask get an error
/// here, or when the session starts.
pub fn resolve_session(
    config: &mut AppConfig,
    resume: bool,
    mode: Mode,
) -> Result<Decision, CliError> {
    if mode != Mode::Line {
        return match &config.session {
            SessionTarget::New | SessionTarget::Recent if resume => {
                Err(CliError::ResumeNeedsTerminal)
            }
            // A named session wins over --resume, as in the original.
            _ => Ok(Decision::Start),
        };
    }
    let settings = Settings::load(&config.paths);
    let path = match &config.session {
        SessionTarget::New | SessionTarget::Recent if resume => {
            let Some(path) = choose_session(config, &settings)? else {
                return Ok(Decision::Exit("No session selected"));
            };
            path
        }
        SessionTarget::Named(name) => match find_session(config, &settings, name)? {
            FoundSession::Here(path) => path,
            FoundSession::Elsewhere { path, cwd } => {
                output(&format!("Session found in different project: {cwd}\n"))?;
                if !confirm("Fork this session into current directory?")? {
                    return Ok(Decision::Exit("Aborted."));
                }
                config.session = SessionTarget::ForkOf(path.display().to_string());
                return Ok(Decision::Start);
            }
        },
        _ => return Ok(Decision::Start),
    };
    if let Some(cwd) = missing_cwd(&path) {
        let (gone, here) = (cwd.display(), config.paths.cwd.display());
        output(&format!("The folder of this session is gone: {gone}\n"))?;
        if !confirm(&format!("Continue in {here}?"))? {
            return Ok(Decision::Exit("Aborted."));
        }
        config.continue_here = true;
    }
    config.session = SessionTarget::Named(absolute(&path).display().to_string());
    Ok(Decision::Start)
}

fn choose_session(config: &AppConfig, settings: &Settings) -> Result<Option<PathBuf>, CliError> {
    let list = |all, query: &str| -> Result<SessionList, StartError> {
        Ok(SessionList::new(
            list_sessions(config, settings, all)?,
            all,
            query,
        ))
    };
    let mut shown = list(false, "")?;
    loop {
        let width = crossterm::terminal::size().ok();
        let width = width.map(|(columns, _)| usize::from(columns).saturating_sub(1));
        output(&format!(
            "{}\n> ",
            shown.text(Utc::now().timestamp_millis(), width)
        ))?;
        let Some(line) = read_line()? else {
            output("\n")?;
            return Ok(None);
        };
        match shown.choose(&line) {
            Choice::Session(path) => return Ok(Some(path)),
            Choice::Nothing => return Ok(None),
            Choice::Show => {}
            Choice::Scope { all } => shown = list(all, shown.query())?,
        }
    }
}

fn confirm(question: &str) -> Result<bool, CliError> {
    output(&format!("{question} [y/N] "))?;
    let answer = read_line()?.unwrap_or_default().trim().to_lowercase();
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

/// Reads a line; `None` at the end of the input. Nothing after the line is read: that is for the
/// session.
fn read_line() -> Result<Option<String>, CliError> {
    io::stdout().flush().map_err(CliError::Stdout)?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    match read.map_err(CliError::Stdin)? {
        0 => Ok(None),
        _ => Ok(Some(line)),
    }
}

/// Makes the path absolute. A name with a slash is looked up as a path.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
