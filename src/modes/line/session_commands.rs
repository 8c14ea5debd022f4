//! The commands that switch to another session, and their dialogs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::Utc;

use super::commands::{CommandOutput, execute, header};
use super::outcome::describe;
use super::sanitize::one_line;
use crate::session_list::{Choice, SessionList};
use pi_agent::event::{UiAnswer, UiMethod};
use pi_app::{
    AgentSession, CommandOutcome, ForkPosition, ImmediateCommand, SessionCommand, missing_cwd,
};

const NOTHING_CHOSEN: &str = "Nothing was chosen.";

pub async fn resume(session: &Arc<AgentSession>, query: &str) -> CommandOutput {
    let list = async |all, query: &str| -> Result<SessionList, String> {
        let found = session.list_sessions(all).await;
        let found = found.map_err(|error| error.to_string())?;
        Ok(SessionList::new(found, all, query))
    };
    let mut shown = list(false, query).await?;
    loop {
        let width = crossterm::terminal::size().ok();
        let width = width.map(|(columns, _)| usize::from(columns).saturating_sub(1));
        let text = shown.text(Utc::now().timestamp_millis(), width);
        let Some(line) = input(session, text).await else {
            return Ok(NOTHING_CHOSEN.into());
        };
        match shown.choose(&line) {
            Choice::Session(path) => return switch(session, &path).await,
            Choice::Nothing => return Ok(NOTHING_CHOSEN.into()),
            Choice::Show => {}
            Choice::Scope { all } => shown = list(all, shown.query()).await?,
        }
    }
}

async fn switch(session: &Arc<AgentSession>, path: &Path) -> CommandOutput {
    let Some(cwd) = work_folder(session, path).await else {
        return Ok(NOTHING_CHOSEN.into());
    };
    let path = path.to_owned();
    execute(session, SessionCommand::SwitchSession { path, cwd }).await
}

/// Returns the folder to continue a session in if its own folder is missing, else `Some(None)`;
/// `None` if the user declines.
async fn work_folder(session: &Arc<AgentSession>, path: &Path) -> Option<Option<PathBuf>> {
    let Some(gone) = missing_cwd(path) else {
        return Some(None);
    };
    let here = std::env::current_dir().ok()?;
    let title = format!("The folder of this session is gone: {}", gone.display());
    let message = format!("Continue in {}?", here.display());
    let yes = confirm(session, title, message).await;
    yes.then_some(Some(here))
}

/// Forks before a message. `args` is the number of the message, or empty.
pub async fn fork(session: &Arc<AgentSession>, args: &str) -> CommandOutput {
    let messages = session.fork_messages();
    if messages.is_empty() {
        return Ok("No messages to fork from".into());
    }
    let mut number = Some(args.trim().to_string()).filter(|text| !text.is_empty());
    let mut wrong = String::new();
    loop {
        if let Some(text) = number {
            if text.is_empty() {
                return Ok(NOTHING_CHOSEN.into());
            }
            let parsed = text.parse::<usize>().ok();
            let chosen = parsed.and_then(|number| messages.get(number.checked_sub(1)?));
            if let Some((id, _)) = chosen {
                return fork_before(session, id).await;
            }
            wrong = format!("There is no message {text} to fork before.\n");
        }
        let lines = messages.iter().enumerate();
        let lines =
            lines.map(|(index, (_, text))| format!("{:>3}. {}\n", index + 1, one_line(text)));
        let text = format!(
            "{wrong}Fork before which message?\n{}Type a number, or nothing.",
            lines.collect::<String>()
        );
        match input(session, text).await {
            Some(text) => number = Some(text.trim().to_string()),
            None => return Ok(NOTHING_CHOSEN.into()),
        }
    }
}

async fn fork_before(session: &Arc<AgentSession>, entry: &str) -> CommandOutput {
    let command = SessionCommand::Fork {
        entry: entry.to_owned(),
        position: ForkPosition::Before,
    };
    let outcome = session.execute(command).await?;
    if let CommandOutcome::Forked(Some(forked)) = &outcome {
        // The prompt suggests the text of the message, to be changed.
        let text = forked.text.clone().unwrap_or_default();
        session.set_editor_text(text).await;
    }
    Ok(describe(session, outcome))
}

pub async fn clone(session: &Arc<AgentSession>) -> CommandOutput {
    let outcome = session.execute(SessionCommand::CloneSession).await?;
    Ok(switched(session, outcome, "Cloned to a new session."))
}

/// Describes the outcome of a switch; `what` precedes the line about the new session.
fn switched(session: &AgentSession, outcome: CommandOutcome, what: &str) -> String {
    match outcome {
        CommandOutcome::Switched(true) => format!("{what}\n{}", header(session)),
        outcome => describe(session, outcome),
    }
}

/// Exports a HTML page, or a copy of the file if the path ends with `.jsonl`.
pub async fn export(session: &Arc<AgentSession>, args: &str) -> CommandOutput {
    let path = path_argument(args)?;
    if path.as_ref().is_some_and(|path| path.ends_with(".jsonl")) {
        return execute(session, ImmediateCommand::ExportJsonl { path }.into()).await;
    }
    let path = path.map(PathBuf::from);
    execute(session, SessionCommand::ExportHtml { path })
        .await
        .map_err(|error| format!("Failed to export session: {error}"))
}

pub async fn import(session: &Arc<AgentSession>, args: &str) -> CommandOutput {
    let path = path_argument(args)?.ok_or("Usage: /import <path.jsonl>")?;
    let title = "Import session".to_string();
    if !confirm(
        session,
        title,
        format!("Replace current session with {path}?"),
    )
    .await
    {
        return Ok("Import cancelled".into());
    }
    let file = std::env::current_dir().unwrap_or_default().join(&path);
    let Some(cwd) = work_folder(session, &file).await else {
        return Ok("Import cancelled".into());
    };
    let what = format!("Session imported from: {path}");
    let command = SessionCommand::ImportSession { path, cwd };
    let outcome = session.execute(command).await?;
    Ok(switched(session, outcome, &what))
}

/// Parses a path: the first word, or a text in quotes.
fn path_argument(args: &str) -> Result<Option<String>, String> {
    let args = args.trim();
    let wrong = || "Put a path with spaces into quotes".to_string();
    let (path, rest) = match args.chars().next() {
        None => return Ok(None),
        Some(quote @ ('"' | '\'')) => args[1..].split_once(quote).ok_or_else(wrong)?,
        Some(_) => args.split_once(char::is_whitespace).unwrap_or((args, "")),
    };
    match rest.trim().is_empty() {
        true => Ok((!path.is_empty()).then(|| path.to_string())),
        false => Err(wrong()),
    }
}

async fn input(session: &Arc<AgentSession>, title: String) -> Option<String> {
    let method = UiMethod::Input {
        title,
        placeholder: None,
        timeout: None,
    };
    match session.show_dialog(method).await {
        UiAnswer::Value(text) => Some(text),
        UiAnswer::Confirmed(_) | UiAnswer::Cancelled => None,
    }
}

async fn confirm(session: &Arc<AgentSession>, title: String, message: String) -> bool {
    let method = UiMethod::Confirm {
        title,
        message,
        timeout: None,
    };
    session.show_dialog(method).await == UiAnswer::Confirmed(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_word_or_quoted() {
        let cases = [
            ("a.jsonl", Ok(Some("a.jsonl"))),
            ("  a.jsonl ", Ok(Some("a.jsonl"))),
            ("'a b.jsonl'", Ok(Some("a b.jsonl"))),
            ("\"\"", Ok(None)),
            ("", Ok(None)),
            ("a b.jsonl", Err(())),
            ("\"a b.jsonl\" more", Err(())),
            ("\"a b.jsonl", Err(())),
        ];
        for (args, path) in cases {
            let found = path_argument(args).map_err(drop);
            assert_eq!(found, path.map(|path| path.map(str::to_string)), "{args}");
        }
    }
}
