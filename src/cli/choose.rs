//! Questions before a session starts, where somebody can answer them: which one to
//! go on with, whether to copy one of another folder, where to work if its folder
//! is gone.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use chrono::Utc;

use super::{CliError, Mode, output};
use crate::app::{AppConfig, Located, SessionTarget, StartError, listed, locate, missing_cwd};
use crate::modes::session_list::{Choice, SessionList};
use crate::resources::settings::Settings;

/// What the user decided.
#[derive(Debug, PartialEq, Eq)]
pub enum Decision {
    Start,
    /// There is nothing to start; the sentence says so.
    Leave(&'static str),
}

/// Settles which session is meant; `config` knows it afterwards. Where nobody can
/// be asked, what would have to be is an error now or when the session starts.
pub fn settle(config: &mut AppConfig, resume: bool, mode: Mode) -> Result<Decision, CliError> {
    if mode != Mode::Line {
        return match &config.session {
            SessionTarget::New | SessionTarget::Recent if resume => {
                Err(CliError::ResumeNeedsTerminal)
            }
            // What was named comes before the choice, as in the original.
            _ => Ok(Decision::Start),
        };
    }
    let settings = Settings::load(&config.paths);
    let path = match &config.session {
        SessionTarget::New | SessionTarget::Recent if resume => {
            let Some(path) = choose(config, &settings)? else {
                return Ok(Decision::Leave("No session selected"));
            };
            path
        }
        SessionTarget::Named(name) => match locate(config, &settings, name)? {
            Located::Here(path) => path,
            Located::Elsewhere { path, cwd } => {
                output(&format!("Session found in different project: {cwd}\n"))?;
                if !confirm("Fork this session into current directory?")? {
                    return Ok(Decision::Leave("Aborted."));
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
            return Ok(Decision::Leave("Aborted."));
        }
        config.continue_here = true;
    }
    config.session = SessionTarget::Named(absolute(&path).display().to_string());
    Ok(Decision::Start)
}

fn choose(config: &AppConfig, settings: &Settings) -> Result<Option<PathBuf>, CliError> {
    let list = |all, query: &str| -> Result<SessionList, StartError> {
        Ok(SessionList::new(listed(config, settings, all)?, all, query))
    };
    let mut shown = list(false, "")?;
    loop {
        let width = crossterm::terminal::size().ok();
        let width = width.map(|(columns, _)| usize::from(columns).saturating_sub(1));
        output(&format!(
            "{}\n> ",
            shown.text(Utc::now().timestamp_millis(), width)
        ))?;
        let Some(line) = line()? else {
            output("\n")?;
            return Ok(None);
        };
        match shown.hear(&line) {
            Choice::Session(path) => return Ok(Some(path)),
            Choice::Nothing => return Ok(None),
            Choice::Show => {}
            Choice::Scope { all } => shown = list(all, shown.query())?,
        }
    }
}

fn confirm(question: &str) -> Result<bool, CliError> {
    output(&format!("{question} [y/N] "))?;
    let answer = line()?.unwrap_or_default().trim().to_lowercase();
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

/// `None` at the end of the input. Reads no further than the line: what follows is
/// for the session.
fn line() -> Result<Option<String>, CliError> {
    io::stdout().flush().map_err(CliError::Stdout)?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    match read.map_err(CliError::Stdin)? {
        0 => Ok(None),
        _ => Ok(Some(line)),
    }
}

/// What is looked for by name has a slash, so that it is a path.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
