//! `pi ext`: lists extensions and checks them.

mod check;
mod list;

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde::Serialize;

use super::{CliError, output, print_stderr, runtime, warn};
use pi_agent::event::Location;
use pi_ai::models::registry::ModelRegistry;
use pi_extensions::diagnostics::error_context::{code_frame, explain};
use pi_extensions::registry::inventory::DescribedExtension;
use pi_extensions::{Extensions, ExtensionsConfig};
use pi_resources::discovery::extensions::ExtensionPath;
use pi_resources::paths::Paths;
use pi_resources::settings::Settings;
use pi_resources::trust;

const USAGE: &str = "\
Usage: pi ext list [--static] [--json]
       pi ext check FILE... [--json]

list     the extensions that a session here would load: where they are from, what
         they register, and what is wrong with them. It loads them; with --static
         none of them runs, and only the contents of their files are shown.
check    loads files or folders as extensions, each apart from the others and from
         everything else (what one folder or package holds is loaded together), and
         reports what is wrong. The exit code is 1 if something is.
";
/// How long errors after loading, from timers and promises, are collected.
const LATE_ERROR_PERIOD: Duration = Duration::from_millis(200);
/// Maximum number of isolates at a time. Each takes tens of megabytes.
const MAX_ISOLATES: usize = 4;

/// Runs the command and returns the exit code.
pub fn run(args: &[String]) -> Result<u8, CliError> {
    let mut json = false;
    let mut is_static = false;
    let mut names = Vec::new();
    let mut rest = args[1..].iter().map(String::as_str);
    let command = match rest.next() {
        Some("-h" | "--help") => {
            output(USAGE)?;
            return Ok(0);
        }
        Some(command @ ("list" | "check")) => command,
        Some(other) => return usage_error(&format!("\"pi ext\" has no command {other}.")),
        None => return usage_error("\"pi ext\" needs a command."),
    };
    for arg in rest {
        match arg {
            "-h" | "--help" => {
                output(USAGE)?;
                return Ok(0);
            }
            "--json" => json = true,
            "--static" if command == "list" => is_static = true,
            "--offline" => {}
            option if option.starts_with('-') => {
                return usage_error(&format!("Unknown option {option} for \"ext {command}\"."));
            }
            name => names.push(name.to_owned()),
        }
    }
    match (command, names.is_empty()) {
        ("list", true) => list::run(is_static, json),
        ("list", false) => usage_error("\"pi ext list\" takes no files; pi ext check does."),
        (_, true) => usage_error("\"pi ext check\" needs a file or folder."),
        (_, false) => check::run(&names, json),
    }
}

fn usage_error(what: &str) -> Result<u8, CliError> {
    print_stderr(what);
    print_stderr(USAGE.trim_end());
    Ok(1)
}

/// Extensions that were loaded without a session.
#[derive(Default)]
struct LoadedSet {
    extensions: Vec<DescribedExtension>,
    /// Path of the extension and message of each error after loading.
    reports: Vec<(String, String)>,
}

impl LoadedSet {
    fn load(found: Vec<ExtensionPath>, paths: &Paths) -> Result<Self, CliError> {
        let mut loaded = Self::load_each(vec![found], paths)?;
        Ok(loaded.pop().unwrap_or_default())
    }

    /// Loads each set in an isolate of its own, so that no set sees what another registers or
    /// breaks. Several sets are loaded at a time, because each waits for errors after loading.
    fn load_each(sets: Vec<Vec<ExtensionPath>>, paths: &Paths) -> Result<Vec<Self>, CliError> {
        if sets.iter().all(Vec::is_empty) {
            return Ok(sets.iter().map(|_| Self::default()).collect());
        }
        let runtime = runtime()?;
        let shared = config(paths);
        let at_a_time = std::thread::available_parallelism().map_or(1, NonZero::get);
        let loaded = runtime.block_on(
            futures::stream::iter(sets)
                .map(|set| {
                    // Each set has a registry of its own, so that it does not see the providers of
                    // another.
                    let models = Arc::new(ModelRegistry::load(&paths.agent_dir));
                    let shared = shared.clone();
                    Self::load_one(set, ExtensionsConfig { models, ..shared })
                })
                .buffered(at_a_time.min(MAX_ISOLATES))
                .collect(),
        );
        runtime.shutdown_background();
        Ok(loaded)
    }

    async fn load_one(found: Vec<ExtensionPath>, config: ExtensionsConfig) -> Self {
        if found.is_empty() {
            return Self::default();
        }
        let extensions = Extensions::new(config);
        extensions.load(found).await;
        tokio::time::sleep(LATE_ERROR_PERIOD).await;
        let reports = extensions.take_waiting_errors().await.into_iter();
        let reports = reports.map(|report| {
            let frame = report.details.code_frame.map(|frame| format!("\n{frame}"));
            let position = (report.details.location)
                .map(|at| format!("{}:{}:{}", at.file, at.line, at.column))
                .filter(|at| !report.error.contains(at.as_str()))
                .map(|at| format!(" ({at})"));
            let text = format!(
                "{}{}{}",
                report.error,
                position.unwrap_or_default(),
                frame.unwrap_or_default()
            );
            (report.extension_path, text)
        });
        Self {
            extensions: extensions.describe(),
            reports: reports.collect(),
        }
    }
}

/// Returns why an extension did not load, with the code frame; `None` if it loaded.
fn why_not_loaded(extension: &DescribedExtension) -> Option<String> {
    let mut report = extension.error.as_ref()?.to_error(&extension.path);
    explain(&mut report, None);
    let frame = report.details.code_frame.map(|frame| format!("\n{frame}"));
    Some(format!("{}{}", report.error, frame.unwrap_or_default()))
}

/// Appends the code frame to a syntax error.
fn with_code_frame(module: &Path, problem: String) -> String {
    let frame = || {
        let (line, rest) = problem.strip_prefix("line ")?.split_once(", column ")?;
        let (column, _) = rest.split_once(": ")?;
        code_frame(&Location {
            file: module.display().to_string(),
            line: line.parse().ok()?,
            column: column.parse().ok()?,
        })
    };
    match frame() {
        Some(frame) => format!("{problem}\n{frame}"),
        None => problem,
    }
}

fn config(paths: &Paths) -> ExtensionsConfig {
    let settings = Settings::load(paths);
    for warning in settings.take_warnings() {
        warn(&warning.describe("pi ext"));
    }
    if let Some(note) = trust::note(paths) {
        warn(&note);
    }
    let models = Arc::new(ModelRegistry::load(&paths.agent_dir));
    ExtensionsConfig::new(
        &settings,
        paths,
        models,
        Arc::new(|_, line| print_stderr(line)),
    )
}

fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    output(&format!("{text}\n"))
}
