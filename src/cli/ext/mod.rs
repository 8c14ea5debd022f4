//! `pi ext`: what extensions there are, and what is wrong with one.

mod check;
mod list;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::{CliError, complain, output, runtime, warn};
use crate::ai::registry::ModelRegistry;
use crate::extensions::described::Described;
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
check    loads files or folders as extensions, apart from everything else, and
         reports what is wrong. The exit code is 1 if something is.
";
/// Errors that come a moment after loading, from timers and promises, are waited
/// for this long.
const AFTERMATH: Duration = Duration::from_millis(200);

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
struct Scratch {
    extensions: Vec<Described>,
    /// Extension and complaint, of the time after loading.
    reports: Vec<(String, String)>,
}

impl Scratch {
    fn load(found: Vec<ExtensionPath>, paths: &Paths) -> Result<Self, CliError> {
        if found.is_empty() {
            return Ok(Self {
                extensions: Vec::new(),
                reports: Vec::new(),
            });
        }
        js_runtime::init();
        let runtime = runtime()?;
        let config = config(paths);
        let loaded = runtime.block_on(async {
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
                extensions: extensions.described(),
                reports: reports.collect(),
            }
        });
        runtime.shutdown_background();
        Ok(loaded)
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
