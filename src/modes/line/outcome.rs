//! Describes the outcomes of commands for the user.

use super::commands::header;
use super::sanitize::{counted, extension_name, sanitize};
use pi_app::{AgentSession, CommandOutcome, UserCommandResult};
use pi_extensions::LoadReport;

const VETOED: &str = "An extension wants to stay in this session.";

/// Returns the text for an outcome; empty if there is nothing to say, or if events say it.
pub fn describe(session: &AgentSession, outcome: CommandOutcome) -> String {
    match outcome {
        CommandOutcome::Done
        | CommandOutcome::Accepted(_)
        | CommandOutcome::Compacted(_)
        | CommandOutcome::Appended(_) => String::new(),
        CommandOutcome::Dequeued {
            mut steering,
            follow_up,
        } => {
            steering.extend(follow_up);
            steering.join("\n\n")
        }
        CommandOutcome::Switched(true) => header(session),
        CommandOutcome::Forked(Some(_)) => {
            format!("Forked to a new session.\n{}", header(session))
        }
        CommandOutcome::Switched(false) | CommandOutcome::Forked(None) => VETOED.to_string(),
        CommandOutcome::Navigated(navigated) => match (navigated.aborted, navigated.cancelled) {
            (true, _) => "Aborted: the session stays where it is.".to_string(),
            (false, true) => "An extension wants to stay here.".to_string(),
            (false, false) => String::new(),
        },
        CommandOutcome::Model(model) => format!("Model: {}", model.reference()),
        CommandOutcome::CycledModel(cycled) => match cycled {
            Some(cycled) => format!("Model: {}", cycled.model.reference()),
            None => "There is no other model.".to_string(),
        },
        CommandOutcome::CycledLevel(level) => match level {
            Some(level) => format!("Thinking: {}", level.as_str()),
            None => "The model offers no other level.".to_string(),
        },
        CommandOutcome::UserCommand(outcome) => describe_bash(&outcome),
        CommandOutcome::Exported(path) => format!("Session exported to: {}", path.display()),
        CommandOutcome::Reloaded(report) => reloaded(&report),
        CommandOutcome::Trust(trust) => match (trust.needs_trust, trust.answered) {
            (false, _) => "This folder brings nothing that needs trust.".to_string(),
            (true, false) => "Nothing was changed.".to_string(),
            (true, true) if trust.trusted => "The project is trusted.".to_string(),
            (true, true) => "The project is not trusted: what it brings is left out.".to_string(),
        },
    }
}

/// Describes a reload in one line. Events have reported the reasons of failures.
fn reloaded(report: &LoadReport) -> String {
    let names = |paths: &mut dyn Iterator<Item = &String>| {
        let names: Vec<String> = paths.map(|path| extension_name(path)).collect();
        names.join(", ")
    };
    let count = counted(report.loaded.len(), "extension", "extensions");
    let mut line = match report.loaded.is_empty() {
        true => format!("Reloaded {count}."),
        false => format!("Reloaded {count}: {}.", names(&mut report.loaded.iter())),
    };
    let others = [
        (
            "Last good version kept",
            names(&mut report.kept.iter().map(|(path, _)| path)),
        ),
        ("Gone", names(&mut report.gone.iter())),
        (
            "Failed",
            names(&mut report.failed.iter().map(|(path, _)| path)),
        ),
    ];
    for (what, names) in others.iter().filter(|(_, names)| !names.is_empty()) {
        line += &format!(" {what}: {names}.");
    }
    line
}

fn describe_bash(outcome: &UserCommandResult) -> String {
    let mut lines = Vec::new();
    let output = sanitize(outcome.output.trim_end_matches('\n'));
    if !output.is_empty() {
        lines.push(output);
    }
    if outcome.truncated
        && let Some(path) = &outcome.full_output_path
    {
        lines.push(format!("(cut; all of it: {path})"));
    }
    match outcome.exit_code {
        _ if outcome.cancelled => lines.push("(aborted)".to_string()),
        Some(0) if lines.is_empty() => lines.push("(no output)".to_string()),
        Some(0) => {}
        Some(code) => lines.push(format!("(exit code {code})")),
        None => lines.push("(no exit code)".to_string()),
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_command_ends_with_its_outcome() {
        let outcome = |output: &str, exit_code, cancelled| UserCommandResult {
            output: output.into(),
            exit_code,
            cancelled,
            truncated: false,
            full_output_path: None,
        };
        assert_eq!(describe_bash(&outcome("a\n", Some(0), false)), "a");
        assert_eq!(describe_bash(&outcome("", Some(0), false)), "(no output)");
        assert_eq!(
            describe_bash(&outcome("a", Some(2), false)),
            "a\n(exit code 2)"
        );
        assert_eq!(describe_bash(&outcome("a", None, true)), "a\n(aborted)");
    }

    #[test]
    fn a_reload_is_described_in_one_line() {
        let report = LoadReport {
            loaded: vec!["/x/a.ts".into(), "/x/todo/index.ts".into()],
            ..LoadReport::default()
        };
        assert_eq!(reloaded(&report), "Reloaded 2 extensions: a.ts, todo.");
        let report = LoadReport {
            loaded: vec![],
            kept: vec![("/x/d.ts".into(), "threw".to_owned().into())],
            gone: vec!["/x/e.ts".into()],
            failed: vec![
                (
                    "/x/b.ts".into(),
                    "Expected ';'\n at /x/b.ts:3:5".to_owned().into(),
                ),
                ("/x/c.ts".into(), "did not finish".to_owned().into()),
            ],
        };
        assert_eq!(
            reloaded(&report),
            "Reloaded 0 extensions. Last good version kept: d.ts. Gone: e.ts. Failed: b.ts, c.ts."
        );
    }
}
