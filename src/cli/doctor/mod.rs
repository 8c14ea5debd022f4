//! `pi doctor`: looks at a whole installation and says what is wrong, where, and
//! how to mend it. Runs no code of extensions, so that it works when they do not.

mod files;
mod machine;
mod resources;

pub(super) use resources::{module_of, syntax_of};

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{CliError, complain, output, paths};
use crate::resources::diagnostic::{Diagnostic, Severity};
use crate::resources::paths::Paths;
use crate::resources::settings::Settings;
use pi_base::{OWN_VERSION, VERSION, compared_version};

const USAGE: &str = "\
Usage: pi doctor [--json]

Checks settings, keys, models, key bindings, themes, skills, prompt templates,
packages, extensions and folders, of the user and of the project one is in.
Nothing is changed, and no code of extensions runs. The exit code is 1 if
something does not work.
";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// Worth to know.
    Note,
    /// Something is not as its user wanted it.
    Warning,
    /// Something does not work.
    Error,
}

#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    /// What was looked at: `settings`, `packages`, …
    check: &'static str,
    path: PathBuf,
    message: String,
    /// What to do about it.
    fix: String,
}

#[derive(Debug, Serialize)]
struct Versions {
    /// The whole version, as `hello`, `get_state` and extensions have it.
    version: &'static str,
    /// The part that other programs compare: the version of the original that is covered.
    compared: &'static str,
    program: &'static str,
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            version: VERSION,
            compared: compared_version(),
            program: OWN_VERSION,
        }
    }
}

#[derive(Debug, Default, Serialize)]
struct Report {
    #[serde(flatten)]
    versions: Versions,
    findings: Vec<Finding>,
    errors: usize,
    warnings: usize,
}

/// What the checks look at, and what they find.
struct Doctor {
    paths: Paths,
    settings: std::sync::Arc<Settings>,
    check: &'static str,
    report: Report,
}

type Check = fn(&mut Doctor);

const CHECKS: [(&str, Check); 11] = [
    ("folders", machine::folders),
    ("settings", files::settings),
    ("keys", files::auth),
    ("models", files::models),
    ("key bindings", files::keybindings),
    ("themes", resources::themes),
    ("skills", resources::skills),
    ("prompts", resources::prompts),
    ("packages", resources::packages),
    ("extensions", resources::extensions),
    ("locks", machine::locks),
];

/// Gives the exit code.
pub fn run(words: &[String]) -> Result<u8, CliError> {
    let mut json = false;
    for word in &words[1..] {
        match word.as_str() {
            "--json" => json = true,
            "-h" | "--help" => {
                output(USAGE)?;
                return Ok(0);
            }
            "--offline" => {}
            other => {
                complain(&format!("Unknown option {other} for \"doctor\"."));
                complain("Usage: pi doctor [--json]");
                return Ok(1);
            }
        }
    }
    let paths = paths()?;
    let report = Doctor::examine(paths.clone());
    let text = match json {
        true => serde_json::to_string_pretty(&report).unwrap_or_default() + "\n",
        false => in_words(&report, &paths),
    };
    output(&text)?;
    Ok(u8::from(report.errors > 0))
}

impl Doctor {
    fn examine(paths: Paths) -> Report {
        let mut doctor = Self {
            settings: Settings::load(&paths),
            paths,
            check: "",
            report: Report::default(),
        };
        for (name, check) in CHECKS {
            doctor.check = name;
            check(&mut doctor);
        }
        let mut report = doctor.report;
        let count = |level| report.findings.iter().filter(|f| f.level == level).count();
        (report.errors, report.warnings) = (count(Level::Error), count(Level::Warning));
        report
    }

    fn find(
        &mut self,
        level: Level,
        path: &Path,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.report.findings.push(Finding {
            level,
            check: self.check,
            path: path.to_owned(),
            message: message.into(),
            fix: fix.into(),
        });
    }

    fn error(&mut self, path: &Path, message: impl Into<String>, fix: impl Into<String>) {
        self.find(Level::Error, path, message, fix);
    }

    fn warning(&mut self, path: &Path, message: impl Into<String>, fix: impl Into<String>) {
        self.find(Level::Warning, path, message, fix);
    }

    fn note(&mut self, path: &Path, message: impl Into<String>, fix: impl Into<String>) {
        self.find(Level::Note, path, message, fix);
    }

    /// What other rooms have to say about a file.
    fn pass_on(&mut self, problems: Vec<Diagnostic>, fix: &str) {
        for problem in problems {
            let level = match problem.severity {
                Severity::Error => Level::Error,
                Severity::Warning => Level::Warning,
            };
            self.find(level, &problem.path, problem.message, fix);
        }
    }
}

fn in_words(report: &Report, paths: &Paths) -> String {
    let Versions {
        version,
        compared,
        program,
    } = report.versions;
    let mut text = format!(
        "pi {version}: program {program}, with the extension API and the RPC protocol of {compared}\n\
         The installation in {}, for a session in {}\n\n",
        paths.agent_dir.display(),
        paths.cwd.display()
    );
    for (name, _) in CHECKS {
        let found = report
            .findings
            .iter()
            .filter(|finding| finding.check == name);
        let worst = found.clone().map(|finding| finding.level).max();
        let word = match worst {
            None | Some(Level::Note) => "ok",
            Some(Level::Warning) => "warning",
            Some(Level::Error) => "error",
        };
        text += &format!("{word:<9}{name}\n");
        for finding in found {
            let level = match finding.level {
                Level::Note => "note",
                Level::Warning => "warning",
                Level::Error => "error",
            };
            text += &format!("  {level}: {}\n", finding.path.display());
            for line in finding.message.lines() {
                text += &format!("    {line}\n");
            }
            for line in finding.fix.lines() {
                text += &format!("    -> {line}\n");
            }
        }
    }
    let many = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    text += &match (report.errors, report.warnings) {
        (0, 0) => "\nNothing is wrong.\n".to_owned(),
        (errors, warnings) => {
            format!(
                "\n{}, {}\n",
                many(errors, "error"),
                many(warnings, "warning")
            )
        }
    };
    text
}
