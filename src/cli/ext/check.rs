//! `pi ext check`: reports what is wrong with extensions.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use super::{LoadedSet, print_json, why_not_loaded, with_code_frame};
use crate::cli::config::OWN_NAMES;
use crate::cli::doctor::{check_loadable, entry_module};
use crate::cli::{CliError, output, paths};
use pi_extensions::diagnostics::tool_schema;
use pi_extensions::registry::inventory::{DescribedExtension, DescribedTool};
use pi_extensions::unknown_event;
use pi_resources::discovery::SearchLog;
use pi_resources::discovery::collect::collect_dir;
use pi_resources::discovery::extensions::{ExtensionPath, ResourceSources, find_extensions};
use pi_resources::paths::ResourceKind;
use pi_resources::settings::Settings;
use pi_resources::source_info::{Origin, SourceInfo, SourceScope};

/// Maximum length of a tool's name in the APIs of Anthropic and OpenAI.
const MAX_TOOL_NAME: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// Information.
    Note,
    /// The extension works, but perhaps not as its author expects.
    Warning,
    /// The extension does not work.
    Error,
}

#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    message: String,
}

#[derive(Serialize)]
struct CheckResult {
    path: PathBuf,
    /// Index of the set of extensions that are loaded together.
    #[serde(skip)]
    set: usize,
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extension: Option<DescribedExtension>,
}

pub fn run(names: &[String], json: bool) -> Result<u8, CliError> {
    let paths = paths()?;
    let mut checked: Vec<CheckResult> = Vec::new();
    // The extensions of one argument, for example of a package, are loaded together; those of
    // different arguments apart from each other.
    let mut sets: Vec<Vec<ExtensionPath>> = Vec::new();
    let settings = Settings::load(&paths);
    for name in names {
        let set = sets.len();
        let mut loadable = Vec::new();
        let path = paths.resolve(name, &paths.cwd);
        if !path.exists() {
            let problem = Some("There is no such file or folder".into());
            checked.push(CheckResult::new(path, set, problem));
            sets.push(loadable);
            continue;
        }
        // Search as `-e` does: a folder may be a package.
        let found = find_extensions(&ResourceSources {
            paths: &paths,
            settings: &settings,
            cli_extensions: &[path.display().to_string()],
            discover: false,
        });
        let problems = found.diagnostics.iter().map(ToString::to_string);
        let problems: Vec<String> = problems.collect();
        let mut extensions = found.paths;
        // A folder with an index is one extension if it lies in a folder of extensions.
        let is_hidden = extensions.is_empty()
            && problems.is_empty()
            && entry_module(&path).is_some_and(|module| module != path);
        if is_hidden {
            extensions.push(ExtensionPath {
                source_info: source_info(&path),
                path: path.clone(),
            });
        }
        let is_empty = extensions.is_empty();
        for extension in extensions.into_iter().flat_map(contained_extensions) {
            let problem = match entry_module(&extension.path) {
                None => Some("It is no module: there is no index.ts or index.js in it".to_owned()),
                // The parser's message is better than that of loading.
                Some(module) => check_loadable(&module)
                    .err()
                    .map(|problem| with_code_frame(&module, problem)),
            };
            let mut one = CheckResult::new(extension.path.clone(), set, problem.clone());
            one.findings.extend(is_hidden.then(folder_is_package));
            checked.push(one);
            if problem.is_none() {
                loadable.push(ExtensionPath {
                    source_info: source_info(&extension.path),
                    ..extension
                });
            }
        }
        // Added after the extensions, one of which may have the same path.
        if is_empty {
            let problem = match problems.is_empty() {
                true => "It is a package without extensions".to_owned(),
                false => problems.join("\n"),
            };
            checked.push(CheckResult::new(path, set, Some(problem)));
        } else if !problems.is_empty() {
            let mut package = CheckResult::new(path, set, None);
            package.findings.extend(problems.into_iter().map(warning));
            checked.push(package);
        }
        sets.push(loadable);
    }
    for (set, loaded) in LoadedSet::load_each(sets, &paths)?.into_iter().enumerate() {
        for extension in loaded.extensions {
            let path = Path::new(&extension.path);
            let is_it = |one: &&mut CheckResult| one.set == set && one.path == path;
            let Some(one) = checked.iter_mut().find(is_it) else {
                continue;
            };
            one.findings.extend(examine(&extension));
            let own = (loaded.reports.iter()).filter(|(path, _)| *path == extension.path);
            one.findings
                .extend(own.map(|(_, report)| error(report.clone())));
            one.extension = Some(extension);
        }
    }
    let failed = checked.iter().any(CheckResult::failed);
    match json {
        true => print_json(&json!({ "extensions": checked }))?,
        false => output(&format_report(&checked))?,
    }
    Ok(u8::from(failed))
}

/// Returns the extensions in a folder that is no extension itself, such as
/// `~/.pi/agent/extensions`.
fn contained_extensions(extension: ExtensionPath) -> Vec<ExtensionPath> {
    let files = match entry_module(&extension.path) {
        Some(_) => Vec::new(),
        None => collect_dir(
            &extension.path,
            ResourceKind::Extensions,
            &mut SearchLog::default(),
        ),
    };
    if files.is_empty() {
        return vec![extension];
    }
    let one = |path| ExtensionPath {
        path,
        ..extension.clone()
    };
    files.into_iter().map(one).collect()
}

impl CheckResult {
    fn new(path: PathBuf, set: usize, problem: Option<String>) -> Self {
        Self {
            path,
            set,
            findings: problem.into_iter().map(error).collect(),
            extension: None,
        }
    }

    fn failed(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.level == Level::Error)
    }
}

fn source_info(path: &Path) -> SourceInfo {
    SourceInfo {
        path: path.display().to_string(),
        source: "cli".to_owned(),
        scope: SourceScope::Temporary,
        origin: Origin::TopLevel,
        base_dir: None,
    }
}

fn error(message: String) -> Finding {
    Finding {
        level: Level::Error,
        message,
    }
}

fn warning(message: String) -> Finding {
    Finding {
        level: Level::Warning,
        message,
    }
}

/// The finding for a folder that has an index and is laid out as a package.
fn folder_is_package() -> Finding {
    Finding {
        level: Level::Note,
        message: "-e and \"packages\" take this folder for a package, and find no extension in it: \
                  its index is one where the folder lies in an extensions folder. To have it \
                  everywhere, name it in a package.json: \"pi\": { \"extensions\": [\"./index.ts\"] }"
            .to_owned(),
    }
}

fn examine(extension: &DescribedExtension) -> Vec<Finding> {
    if let Some(problem) = why_not_loaded(extension) {
        return vec![error(problem)];
    }
    let mut findings: Vec<Finding> = extension.tools.iter().flat_map(examine_tool).collect();
    for command in &extension.commands {
        let name = &command.name;
        if name.contains(char::is_whitespace) || name.is_empty() {
            findings.push(error(format!(
                "The command \"{name}\" cannot be typed: what follows a blank is its arguments"
            )));
        }
        if let Some(bare) = name.strip_prefix('/') {
            findings.push(warning(format!(
                "The command \"{name}\" is typed with two slashes: call it \"{bare}\""
            )));
        }
        findings.extend(OWN_NAMES.command_conflict(name).map(warning));
    }
    for flag in &extension.flags {
        let name = &flag.name;
        if name.contains(char::is_whitespace) || name.is_empty() {
            findings.push(error(format!("The flag \"{name}\" cannot be typed")));
        }
        let bare = name.trim_start_matches('-');
        if bare != name {
            findings.push(warning(format!(
                "The flag \"{name}\" is typed as --{name}: call it \"{bare}\""
            )));
        }
    }
    let flags = extension.flags.iter();
    findings.extend(flags.filter_map(|flag| OWN_NAMES.flag_conflict(&flag.name).map(error)));
    let unknown = extension.unknown_events.iter();
    findings.extend(unknown.filter_map(|name| unknown_event(name)).map(warning));
    let does_nothing = extension.tools.is_empty()
        && extension.commands.is_empty()
        && extension.flags.is_empty()
        && extension.shortcuts.is_empty()
        && extension.renderers.is_empty()
        && extension.providers.is_empty()
        && extension.events.is_empty();
    if does_nothing {
        findings.push(warning(
            "It registers nothing: no tools, commands, flags, shortcuts, renderers, providers or \
             handlers of events"
                .to_owned(),
        ));
    }
    findings
}

fn examine_tool(tool: &DescribedTool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = &tool.name;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.chars().all(fits) || name.len() > MAX_TOOL_NAME {
        findings.push(error(format!(
            "The tool \"{name}\" cannot be sent to models: they take letters, digits, _ and -, \
             at most {MAX_TOOL_NAME}"
        )));
    }
    if tool.description.trim().is_empty() {
        findings.push(warning(format!(
            "The tool {name} has no description: the model will not know when to use it"
        )));
    }
    if tool_schema::schema_problem(name, &tool.parameters).is_some() {
        // Registration of the tool has reported this, with the line.
    } else if tool.parameters["type"] != "object" {
        findings.push(error(format!(
            "The parameters of the tool {name} are no object: models want \"type\": \"object\", \
             as Type.Object({{…}}) makes it"
        )));
    } else if let Err(problem) = pi_tools::arguments::validate::check_schema(&tool.parameters) {
        findings.push(error(format!(
            "The parameters of the tool {name} are no valid JSON schema: {problem}"
        )));
    }
    let replaced = OWN_NAMES.tool_conflict(name);
    findings.extend(replaced.map(|message| Finding {
        level: Level::Note,
        message,
    }));
    findings
}

fn format_report(checked: &[CheckResult]) -> String {
    let mut text = String::new();
    for one in checked {
        let word = match one.failed() {
            true => "FAILED",
            false => "ok",
        };
        let _ = writeln!(text, "{word:<7} {}", one.path.display());
        for finding in &one.findings {
            let level = match finding.level {
                Level::Note => "note",
                Level::Warning => "warning",
                Level::Error => "error",
            };
            for (index, line) in finding.message.lines().enumerate() {
                let _ = match index {
                    0 => writeln!(text, "  {level}: {line}"),
                    _ => writeln!(text, "    {line}"),
                };
            }
        }
        if let Some(extension) = one.extension.as_ref().filter(|one| one.error.is_none()) {
            let count = |count: usize, what: &str| match count {
                1 => format!("1 {what}"),
                count => format!("{count} {what}s"),
            };
            let some = |counted: usize, what: &str| match counted {
                0 => String::new(),
                some => format!("{}, ", count(some, what)),
            };
            let _ = writeln!(
                text,
                "  registers {}, {}, {}, {}{}{}handlers of {}",
                count(extension.tools.len(), "tool"),
                count(extension.commands.len(), "command"),
                count(extension.flags.len(), "flag"),
                some(extension.shortcuts.len(), "shortcut"),
                some(extension.renderers.len(), "renderer"),
                some(extension.providers.len(), "provider"),
                count(extension.events.len(), "event"),
            );
        }
    }
    text
}
