//! `pi trust`: shows and changes the recorded answers about project folders. Nothing of a project
//! runs.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{CliError, output, paths, print_stderr};
use pi_resources::paths::Paths;
use pi_resources::trust::answers;
use pi_resources::trust::file_set::ProjectFolder;
use pi_resources::trust::record::Record;
use pi_resources::trust::{self, Distrust, TrustAnswer};

const USAGE: &str = "\
Usage: pi trust [status] [FOLDER] [--json]   whether a folder is trusted, and what it brings
       pi trust allow [FOLDER] [--changes]   trust it as it is now (--changes: and later changes)
       pi trust deny [FOLDER]                do not trust it
       pi trust forget [FOLDER]              forget the answer: pi asks again
       pi trust diff [FOLDER]                what has changed since it was trusted
       pi trust list [--json]                all answers

The answers are in trust.json of the agent folder, together with the original's. Without FOLDER
the current folder is meant.
";
const SUBCOMMANDS: [&str; 6] = ["status", "allow", "deny", "forget", "diff", "list"];

/// Returns whether the arguments after `trust` are those of the command and not the beginning of
/// a message.
pub fn is_meant(args: &[String]) -> bool {
    let first = args.first().map(String::as_str);
    first.is_none_or(|first| {
        SUBCOMMANDS.contains(&first) || ["--json", "-h", "--help"].contains(&first)
    })
}

/// Runs the command and returns the exit code.
pub fn run(args: &[String]) -> Result<u8, CliError> {
    let (mut json, mut changes) = (false, false);
    let mut words = Vec::new();
    for arg in args {
        match arg.as_str() {
            "--json" => json = true,
            "--changes" => changes = true,
            "-h" | "--help" => {
                output(USAGE)?;
                return Ok(0);
            }
            option if option.starts_with('-') => {
                return usage_error(&format!("Unknown option {option} for \"trust\"."));
            }
            word => words.push(word.to_owned()),
        }
    }
    let (command, folders) = match words.split_first() {
        Some((command, folders)) => (command.as_str(), folders),
        None => ("status", &[][..]),
    };
    if folders.len() > 1 || command == "list" && !folders.is_empty() {
        return usage_error(&format!("\"pi trust {command}\" takes fewer arguments."));
    }
    let here = paths()?;
    let folder = folders
        .first()
        .map(|folder| here.resolve(folder, &here.cwd));
    let paths = match folder {
        Some(folder) if !folder.is_dir() => {
            print_stderr(&format!("Error: {} is no folder", folder.display()));
            return Ok(1);
        }
        Some(folder) => here.with_cwd(&folder),
        None => here,
    };
    let done = match command {
        "status" => status(&paths, json)?,
        "allow" => {
            let answer = match changes {
                true => TrustAnswer::TrustChanges,
                false => TrustAnswer::Trust,
            };
            changed(&paths, trust::answer(&paths, answer))?
        }
        "deny" => changed(&paths, trust::answer(&paths, TrustAnswer::Deny))?,
        "forget" => changed(&paths, forget(&paths))?,
        "diff" => diff(&paths)?,
        "list" => list(&paths, json)?,
        _ => return usage_error(&format!("There is no command \"pi trust {command}\".")),
    };
    Ok(done)
}

fn usage_error(what: &str) -> Result<u8, CliError> {
    print_stderr(what);
    print_stderr(USAGE.trim_end());
    Ok(1)
}

fn trust_file(paths: &Paths) -> PathBuf {
    paths.agent_dir.join("trust.json")
}

fn forget(paths: &Paths) -> Result<(), trust::TrustError> {
    let folder = ProjectFolder::new(&paths.home, &paths.cwd).path;
    answers::record(&trust_file(paths), &[(folder.clone(), None)])?;
    Record::remove(&paths.agent_dir, &folder);
    trust::recheck(paths, &paths.cwd);
    Ok(())
}

fn changed(paths: &Paths, done: Result<(), trust::TrustError>) -> Result<u8, CliError> {
    match done {
        Ok(()) => status(paths, false),
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            Ok(1)
        }
    }
}

fn status(paths: &Paths, json: bool) -> Result<u8, CliError> {
    let paths = paths.with_cwd(&paths.cwd);
    let folder = ProjectFolder::new(&paths.home, &paths.cwd);
    let recorded = trust::recorded_answer(&trust_file(&paths), &paths.cwd);
    let needs_trust = trust::has_something_to_trust(&paths.home, &paths.cwd);
    if json {
        let described = json!({
            "folder": folder.path,
            "needsTrust": needs_trust,
            "trusted": paths.distrust.is_none(),
            "reason": paths.distrust.as_ref().map(ToString::to_string),
            "recorded": recorded.as_ref().ok().cloned().flatten().map(|(folder, decision)| {
                json!({ "folder": folder, "decision": decision })
            }),
        });
        output(&format!("{described:#}\n"))?;
        return Ok(0);
    }
    let mut text = format!("{}\n", folder.path.display());
    if !needs_trust {
        text += "It brings nothing that needs trust.\n";
    } else {
        text += &format!("It brings {}\n", trust::summary(&paths));
    }
    text += &match &paths.distrust {
        None => "It is trusted".to_owned(),
        Some(Distrust::Changed(difference)) => format!(
            "It is not used: it has changed since it was trusted: {}\n\
             pi trust diff shows the changes, pi trust allow accepts them",
            difference.summary(&folder.path)
        ),
        Some(why) => format!("It is not used: {why}"),
    };
    match recorded {
        Ok(Some((from, _))) if from != folder.path => {
            text += &format!(" (answer for {})", from.display());
        }
        Ok(_) => {}
        Err(error) => text += &format!("\n{error}"),
    }
    output(&format!("{text}\n"))?;
    Ok(0)
}

fn diff(paths: &Paths) -> Result<u8, CliError> {
    match &paths.distrust {
        Some(Distrust::Changed(difference)) => {
            let folder = ProjectFolder::new(&paths.home, &paths.cwd);
            output(&difference.diff(&paths.agent_dir, &folder.path))?;
        }
        _ => output("There are no changes that need trust.\n")?,
    }
    Ok(0)
}

fn list(paths: &Paths, json: bool) -> Result<u8, CliError> {
    let answers = match answers::read(&trust_file(paths)) {
        Ok(answers) => answers,
        Err(error) => {
            print_stderr(&format!("Error: {error}"));
            return Ok(1);
        }
    };
    if json {
        let text = serde_json::to_string_pretty(&answers).unwrap_or_default();
        output(&format!("{text}\n"))?;
        return Ok(0);
    }
    let lines = answers.iter().filter_map(|(folder, answer)| {
        let word = match (*answer)? {
            true => "trusted    ",
            false => "not trusted",
        };
        let gone = if Path::new(folder).is_dir() {
            ""
        } else {
            " (gone)"
        };
        Some(format!("{word} {folder}{gone}\n"))
    });
    let text: String = lines.collect();
    output(match text.is_empty() {
        true => "There are no answers.\n",
        false => &text,
    })?;
    Ok(0)
}
