//! `pi ext`: what extensions there are, and what is wrong with one.

mod check;
mod list;

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde::Serialize;

use super::{CliError, complain, output, runtime, warn};
use crate::agent::event::Location;
use crate::ai::registry::ModelRegistry;
use crate::extensions::diagnostics::error_context::{code_frame, explain};
use crate::extensions::registry::inventory::DescribedExtension;
use crate::extensions::{Extensions, ExtensionsConfig};
use crate::resources::extension_paths::ExtensionPath;
use crate::resources::paths::Paths;
use crate::resources::settings::Settings;

const USAGE: &str = "\
Usage: pi ext list [--static] [--json]
       pi ext check FILE... [--json]

list     the extensions that a session here would load: where they are from, what
         they register, and what is wrong with them. It loads them; with --static
         nothing of them runs, and only what files tell is shown.
check    loads files or folders as extensions, each apart from the others and from
         everything else (what one folder or package holds is loaded together), and
         reports what is wrong. The exit code is 1 if something is.
";
/// Errors that come a moment after loading, from timers and promises, are waited
/// for this long.
const AFTERMATH: Duration = Duration::from_millis(200);
/// An isolate takes tens of megabytes.
const MOST_AT_A_TIME: usize = 4;

/// Gives the exit code.
pub fn run(words: &[String]) -> Result<u8, CliError> {
    let mut json = false;
    let mut is_static = false;
    let mut names = Vec::new();
    let mut rest = words[1..].iter().map(String::as_str);
    let command = match rest.next() {
        Some("-h" | "--help") => {
            output(USAGE)?;
            return Ok(0);
        }
        Some(command @ ("list" | "check")) => command,
        Some(other) => return wrong(&format!("\"pi ext\" has no command {other}.")),
        None => return wrong("\"pi ext\" needs a command."),
    };
    for word in rest {
        match word {
            "-h" | "--help" => {
                output(USAGE)?;
                return Ok(0);
            }
            "--json" => json = true,
            "--static" if command == "list" => is_static = true,
            "--offline" => {}
            option if option.starts_with('-') => {
                return wrong(&format!("Unknown option {option} for \"ext {command}\"."));
            }
            name => names.push(name.to_owned()),
        }
    }
    match (command, names.is_empty()) {
        ("list", true) => list::run(is_static, json),
        ("list", false) => wrong("\"pi ext list\" takes no files; pi ext check does."),
        (_, true) => wrong("\"pi ext check\" needs a file or folder."),
        (_, false) => check::run(&names, json),
    }
}

fn wrong(what: &str) -> Result<u8, CliError> {
    complain(what);
    complain(USAGE.trim_end());
    Ok(1)
}

/// What a scratch host, which no session belongs to, made of some extensions.
#[derive(Default)]
struct Scratch {
    extensions: Vec<DescribedExtension>,
    /// Extension and complaint, of the time after loading.
    reports: Vec<(String, String)>,
}

impl Scratch {
    fn load(found: Vec<ExtensionPath>, paths: &Paths) -> Result<Self, CliError> {
        let mut loaded = Self::load_each(vec![found], paths)?;
        Ok(loaded.pop().unwrap_or_default())
    }

    /// Each set in an isolate of its own, so that none sees what another registers or
    /// breaks; some at a time, because each waits for what comes after loading.
    fn load_each(sets: Vec<Vec<ExtensionPath>>, paths: &Paths) -> Result<Vec<Self>, CliError> {
        if sets.iter().all(Vec::is_empty) {
            return Ok(sets.iter().map(|_| Self::default()).collect());
        }
        js_runtime::init();
        let runtime = runtime()?;
        let shared = config(paths);
        let at_a_time = std::thread::available_parallelism().map_or(1, NonZero::get);
        let loaded = runtime.block_on(
            futures::stream::iter(sets)
                .map(|set| {
                    // Nor does one see the providers of another.
                    let models = Arc::new(ModelRegistry::load(&paths.agent_dir));
                    let shared = shared.clone();
                    Self::load_one(set, ExtensionsConfig { models, ..shared })
                })
                .buffered(at_a_time.min(MOST_AT_A_TIME))
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
        tokio::time::sleep(AFTERMATH).await;
        let reports = extensions.take_early_errors().into_iter();
        let reports = reports.map(|report| {
            let frame = report.details.code_frame.map(|frame| format!("\n{frame}"));
            let place = (report.details.location)
                .map(|place| format!("{}:{}:{}", place.file, place.line, place.column))
                .filter(|place| !report.error.contains(place.as_str()))
                .map(|place| format!(" ({place})"));
            let text = format!(
                "{}{}{}",
                report.error,
                place.unwrap_or_default(),
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

/// Of one that did not load; with the lines of code that it is about.
fn why_not_loaded(extension: &DescribedExtension) -> Option<String> {
    let mut report = extension.error.as_ref()?.to_error(&extension.path);
    explain(&mut report, None);
    let frame = report.details.code_frame.map(|frame| format!("\n{frame}"));
    Some(format!("{}{}", report.error, frame.unwrap_or_default()))
}

/// With the lines of code that it is about.
fn framed(module: &Path, problem: String) -> String {
    let place = || {
        let (line, rest) = problem.strip_prefix("line ")?.split_once(", column ")?;
        let (column, _) = rest.split_once(": ")?;
        code_frame(&Location {
            file: module.display().to_string(),
            line: line.parse().ok()?,
            column: column.parse().ok()?,
        })
    };
    match place() {
        Some(frame) => format!("{problem}\n{frame}"),
        None => problem,
    }
}

fn config(paths: &Paths) -> ExtensionsConfig {
    let settings = Settings::load(paths);
    for warning in settings.take_warnings() {
        warn(&warning.describe("pi ext"));
    }
    let models = Arc::new(ModelRegistry::load(&paths.agent_dir));
    ExtensionsConfig::new(&settings, paths, models, Arc::new(|_, line| complain(line)))
}

fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    output(&format!("{text}\n"))
}
