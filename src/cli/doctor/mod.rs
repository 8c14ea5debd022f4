//! `pi doctor`: checks an installation, and reports what is wrong, where, and how to fix it. No
//! code of extensions runs, so that it works when they do not.

mod environment;
mod files;

mod resources;

pub(super) use resources::{check_loadable, entry_module};

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{CliError, output, paths, print_stderr};
use pi_base::{OWN_VERSION, VERSION, compared_version};
use pi_resources::diagnostic::{Diagnostic, Severity};
use pi_resources::paths::Paths;
use pi_resources::settings::Settings;

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
    /// Information.
    Note,
    /// Something does not work as the user intended.
    Warning,
    /// Something does not work.
    Error,
}

#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    /// Name of the check, such as `settings` or `packages`.
    check: &'static str,
    path: PathBuf,
    message: String,
    /// Advice to the user.
    fix: String,
}

#[derive(Debug, Serialize)]
struct Versions {
    /// The whole version, as in `hello`, `get_state` and the extension API.
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

/// Input of the checks, and their findings.
struct Doctor {
    paths: Paths,
    settings: std::sync::Arc<Settings>,
    check: &'static str,
    report: Report,
}

type Check = fn(&mut Doctor);

const CHECKS: [(&str, Check); 11] = [
    ("folders", environment::folders),
    ("settings", files::settings),
    ("keys", files::auth),
    ("models", files::models),
    ("key bindings", files::keybindings),
    ("themes", resources::themes),
    ("skills", resources::skills),
    ("prompts", resources::prompts),
    ("packages", resources::packages),
    ("extensions", resources::extensions),
    ("locks", environment::locks),
];

/// Runs the command and returns the exit code.
pub fn run(args: &[String]) -> Result<u8, CliError> {
    let mut json = false;
    for arg in &args[1..] {
        match arg.as_str() {
            "--json" => json = true,
            "-h" | "--help" => {
                output(USAGE)?;
                return Ok(0);
            }
            "--offline" => {}
            other => {
                print_stderr(&format!("Unknown option {other} for \"doctor\"."));
                print_stderr("Usage: pi doctor [--json]");
                return Ok(1);
            }
        }
    }
    let paths = paths()?;
    let report = Doctor::examine(paths.clone());
    let text = match json {
        true => serde_json::to_string_pretty(&report).unwrap_or_default() + "\n",
        false => format_report(&report, &paths),
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

    fn add_finding(
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
        self.add_finding(Level::Error, path, message, fix);
    }

    fn warning(&mut self, path: &Path, message: impl Into<String>, fix: impl Into<String>) {
        self.add_finding(Level::Warning, path, message, fix);
    }

    fn note(&mut self, path: &Path, message: impl Into<String>, fix: impl Into<String>) {
        self.add_finding(Level::Note, path, message, fix);
    }

    /// Adds diagnostics of other modules as findings.
    fn add_diagnostics(&mut self, problems: Vec<Diagnostic>, fix: &str) {
        for problem in problems {
            let level = match problem.severity {
                Severity::Error => Level::Error,
                Severity::Warning => Level::Warning,
            };
            self.add_finding(level, &problem.path, problem.message, fix);
        }
    }
}

fn format_report(report: &Report, paths: &Paths) -> String {
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
    let count_of = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    text += &match (report.errors, report.warnings) {
        (0, 0) => "\nNothing is wrong.\n".to_owned(),
        (errors, warnings) => {
            format!(
                "\n{}, {}\n",
                count_of(errors, "error"),
                count_of(warnings, "warning")
            )
        }
    };
    text
}
