//! The command line: what is asked for, which mode does it, and the exit code,
//! which is decided here and nowhere else: 0 done, 1 failed, 128 + n ended by
//! signal n.

mod args;
mod as_node;
mod choose;
mod config;
mod doctor;
mod ext;
mod help;
mod input;
mod launcher;
mod list_models;
mod log;
mod packages;
mod proxy;
mod test;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use args::{ArgumentError, Arguments, Options, OutputMode};
use choose::Decision;
use config::{Conflict, InvalidId, NoTheme, ToolListError};
use input::{Files, InputError};
use js_runtime::Console;
use launcher::LauncherError;

use crate::ai::nesting;
use crate::app::{AppConfig, PromptContent, SessionTarget, StartError};
use crate::export::{ExportError, PageColors, export_file};
use crate::extensions::ConsoleSink;
use crate::modes::{self, complain};
use crate::resources::migrations;
use crate::resources::paths::Paths;
use crate::resources::resource_paths::ResourceSources;
use crate::resources::settings::{ExtensionHost, Settings};
use crate::resources::themes::{find_theme, load_themes};
use crate::resources::trust;
use pi_base::{VERSION, compared_version};

/// Threads besides the main one, V8's and those that wait for files.
const WORKERS: usize = 2;
/// How long stdin may stay open until the user is told that it is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\nError: "))]
    Arguments(Vec<ArgumentError>),
    #[error(transparent)]
    Conflict(#[from] Conflict),
    #[error(transparent)]
    InvalidId(#[from] InvalidId),
    #[error(transparent)]
    ToolList(#[from] ToolListError),
    #[error(transparent)]
    NoTheme(#[from] NoTheme),
    #[error("@file arguments are not supported in RPC mode")]
    FilesInRpc,
    #[error("the current folder cannot be used: {0}")]
    Cwd(io::Error),
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error("--export takes a session and at most one name for the page, not {0:?} as well")]
    ExportToMany(String),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    #[error(transparent)]
    Session(#[from] StartError),
    #[error(transparent)]
    Script(#[from] js_runtime::StartError),
    #[error(
        "--resume needs a terminal, to choose a session on. Use --continue for the latest one of \
         this folder, or --session with a file or the beginning of an id"
    )]
    ResumeNeedsTerminal,
    #[error("{0}")]
    Debugger(String),
    #[error("stdin: {0}")]
    Stdin(io::Error),
    #[error("stdout: {0}")]
    Stdout(io::Error),
    #[error("no threads can be started: {0}")]
    Threads(io::Error),
}

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Version,
    Help,
    ListModels(String),
    Export(PathBuf),
    Session(Mode),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Print,
    Json,
    Rpc,
    Line,
}

pub fn main() -> ExitCode {
    let code = run().unwrap_or_else(|error| {
        complain(&format!("Error: {error}"));
        1
    });
    ExitCode::from(code)
}

fn run() -> Result<u8, CliError> {
    let words: Vec<_> = js_runtime::arguments().collect();
    if let Some(script) = as_node::asked(&words) {
        return Ok(as_node::run(script, &paths()?)?);
    }
    if let Some(code) = command(&words)? {
        return Ok(code);
    }
    let arguments = args::parse(words.into_iter()).map_err(CliError::Arguments)?;
    let options = &arguments.options;
    tell_children(options.offline);
    approve(options.approve, options.no_approve);
    let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    match task(&arguments.options, terminal) {
        Task::Version => version()?,
        Task::Help => help::run(&arguments)?,
        Task::ListModels(pattern) => list_models::run(&arguments, &pattern)?,
        Task::Export(session) => export(&session, &arguments)?,
        Task::Session(mode) => return session(mode, arguments),
    }
    Ok(0)
}

/// A person is told the whole version. A program reads stdout and may know nothing but numbers
/// and dots (pi-agent-python-sdk 0.2.6 does not), so it gets the version that it compares there.
fn version() -> Result<(), CliError> {
    if io::stdout().is_terminal() {
        return output(&format!("{VERSION}\n"));
    }
    output(&format!("{}\n", compared_version()))?;
    complain(&format!("pi {VERSION}"));
    Ok(())
}

/// Of both the careful one counts.
fn approve(yes: bool, no: bool) {
    if yes || no {
        trust::approve(!no);
    }
}

/// Commands instead of a session; `None` if the words ask for none.
fn command(words: &[OsString]) -> Result<Option<u8>, CliError> {
    let words: Option<Vec<String>> = words
        .iter()
        .map(|word| word.to_str().map(str::to_owned))
        .collect();
    // What is no Unicode is complained about with the other arguments.
    let Some(words) = words else {
        return Ok(None);
    };
    match words.first().map(String::as_str) {
        Some("install" | "remove" | "uninstall" | "update" | "list") => {
            let has = |names: [&str; 2]| words.iter().any(|word| names.contains(&word.as_str()));
            tell_children(words.iter().any(|word| word == "--offline"));
            approve(has(["-a", "--approve"]), has(["-na", "--no-approve"]));
            packages::run(&words)
        }
        Some("doctor") => {
            tell_children(words.iter().any(|word| word == "--offline"));
            doctor::run(&words).map(Some)
        }
        Some("ext") => {
            tell_children(words.iter().any(|word| word == "--offline"));
            ext::run(&words).map(Some)
        }
        Some("test") => test::run(&words).map(Some),
        Some("launcher") if words.len() <= 2 => launcher::run(&words).map(Some),
        Some("rpc") if words[1..] == ["schema"] => {
            output(modes::rpc::schema::SCHEMA)?;
            Ok(Some(0))
        }
        _ => Ok(None),
    }
}

/// What runs inside pi, extensions included, can tell that it does.
#[expect(clippy::disallowed_methods, reason = "the only thread there is yet")]
fn tell_children(offline: bool) {
    // SAFETY: no other thread runs that could be reading the environment.
    unsafe {
        std::env::set_var("PI_CODING_AGENT", "true");
        // Of any agent's.
        std::env::set_var("AI_AGENT", "pi");
        if offline {
            std::env::set_var("PI_OFFLINE", "1");
            std::env::set_var("PI_SKIP_VERSION_CHECK", "1");
        }
    }
}

fn task(options: &Options, terminal: bool) -> Task {
    if options.version {
        return Task::Version;
    }
    if options.help {
        return Task::Help;
    }
    if let Some(pattern) = &options.list_models {
        return Task::ListModels(pattern.clone());
    }
    if let Some(session) = &options.export {
        return Task::Export(session.clone());
    }
    Task::Session(match options.mode {
        Some(OutputMode::Rpc) => Mode::Rpc,
        Some(OutputMode::Json) => Mode::Json,
        _ if options.print || !terminal => Mode::Print,
        Some(OutputMode::Text) | None => Mode::Line,
    })
}

/// The page's name is the first message, as it always was.
fn export(session: &Path, arguments: &Arguments) -> Result<(), CliError> {
    let mut names = arguments.messages.iter();
    let page = names.next().map(Path::new);
    if let Some(name) = names.chain(&arguments.files).next() {
        return Err(CliError::ExportToMany(name.clone()));
    }
    let (page, warnings) = export_file(session, page, colors(&paths()?))?;
    for warning in warnings {
        warn(&warning.to_string());
    }
    output(&format!("Exported to: {}\n", page.display()))
}

/// Those of the theme that the settings choose, if it is a file.
fn colors(paths: &Paths) -> Option<PageColors> {
    let settings = Settings::load(paths);
    let chosen = settings.values().theme.clone()?;
    let sources = ResourceSources {
        paths,
        settings: &settings,
        cli_extensions: &[],
        discover: true,
    };
    let (themes, problems) = load_themes(&sources, &[]);
    let theme = find_theme(&themes, &chosen);
    if theme.is_none() {
        for problem in problems {
            warn(&problem.to_string());
        }
    }
    theme.map(PageColors::of)
}

fn session(mode: Mode, arguments: Arguments) -> Result<u8, CliError> {
    if mode == Mode::Rpc && !arguments.files.is_empty() {
        return Err(CliError::FilesInRpc);
    }
    let paths = paths()?;
    proxy::set(&paths);
    let mut warnings = Vec::new();
    let asked = std::env::var("PI_LOG").ok();
    if let Err(problem) = log::start(&paths.agent_dir, asked, arguments.options.verbose) {
        warnings.push(problem.to_string());
    }
    tracing::info!(version = VERSION, mode = mode.name(), cwd = %paths.cwd.display(), "pi starts");
    for note in migrations::run(&paths) {
        complain(&note);
    }
    let old = migrations::old_folders(&paths);
    warnings.extend(old.iter().map(ToString::to_string));
    let asked_for = debug_address(&arguments.options)?;
    let mut config = config::build(&arguments, paths, mode, &mut warnings)?;
    if mode == Mode::Rpc && !arguments.messages.is_empty() {
        warnings.push("messages on the command line are not used in RPC mode".into());
    }
    for warning in &warnings {
        warn(warning);
    }
    if let Decision::Leave(why) = choose::settle(&mut config, arguments.options.resume, mode)? {
        output(&format!("{why}\n"))?;
        return Ok(0);
    }
    // The settings are read for it when a debugger is asked for, and again by the session.
    let place = match asked_for {
        Some(_) => Settings::load(&config.paths).values().extension_host,
        None => ExtensionHost::default(),
    };
    let capabilities = arguments.options.rpc_capabilities.clone();
    let prompts = match mode {
        Mode::Rpc => Vec::new(),
        _ => prompts(arguments, &config.paths)?,
    };
    let new = config.session == SessionTarget::New;
    let nothing_asked = prompts.is_empty() && matches!(mode, Mode::Print | Mode::Json) && new;
    // On the main thread, before those that may start V8's: the first extension may
    // come late, with a reload.
    js_runtime::init();
    inspect(asked_for, place)?;
    let runtime = runtime()?;
    let code = runtime.block_on(mode.run(config, prompts, &capabilities));
    // Not before: what is wrong with the options may be the reason.
    if nothing_asked && code == 0 {
        warn("nothing was asked: give a message, or pipe one in (see pi --help)");
    }
    tracing::info!(code, "pi ends");
    // Whatever still waits, such as a read of stdin, ends with the process.
    runtime.shutdown_background();
    Ok(code)
}

/// Where `--inspect` or `--inspect-brk` wants the debugger, and whether it is waited
/// for. A port alone is one of this machine.
fn debug_address(options: &Options) -> Result<Option<(SocketAddr, bool)>, CliError> {
    let (text, wait) = match (&options.inspect_brk, &options.inspect) {
        (Some(text), _) => (text, true),
        (None, Some(text)) => (text, false),
        (None, None) => return Ok(None),
    };
    let port = text
        .parse::<u16>()
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    // Of a name, such as `localhost`, the address that a port alone has comes first.
    let named = || text.to_socket_addrs().ok()?.min_by_key(SocketAddr::is_ipv6);
    let address = port.or_else(|_| text.parse()).ok().or_else(named);
    match address {
        Some(address) => Ok(Some((address, wait))),
        None => Err(CliError::Debugger(format!(
            "--inspect takes an address and a port, such as 127.0.0.1:9229, or a port, not {text}"
        ))),
    }
}

fn inspect(asked_for: Option<(SocketAddr, bool)>, place: ExtensionHost) -> Result<(), CliError> {
    let Some((address, wait)) = asked_for else {
        return Ok(());
    };
    let started = match place {
        ExtensionHost::Thread => js_runtime::start_inspector(address, wait),
        ExtensionHost::Process => js_runtime::inspect_processes(address, wait),
    };
    started.map_err(CliError::Debugger)
}

impl Mode {
    /// `capabilities` are those of RPC clients.
    async fn run(
        self,
        config: AppConfig,
        prompts: Vec<PromptContent>,
        capabilities: &[String],
    ) -> u8 {
        match self {
            Self::Print => modes::print::run(config, prompts).await,
            Self::Json => modes::json::run(config, prompts).await,
            Self::Rpc => modes::rpc::run(config, capabilities).await,
            Self::Line => modes::line::run(config, prompts).await,
        }
    }

    /// As extensions know it.
    fn name(self) -> &'static str {
        match self {
            Self::Print => "print",
            Self::Json => "json",
            Self::Rpc => "rpc",
            Self::Line => "interactive",
        }
    }

    /// Whether there is somebody who can be asked.
    fn has_ui(self) -> bool {
        match self {
            Self::Rpc | Self::Line => true,
            Self::Print | Self::Json => false,
        }
    }

    /// Where extensions' output goes: never to stdout.
    fn console(self) -> ConsoleSink {
        match self {
            Self::Line => log::console(),
            Self::Print | Self::Json | Self::Rpc => {
                Arc::new(|_: Console, line: &str| complain(line))
            }
        }
    }
}

fn prompts(arguments: Arguments, paths: &Paths) -> Result<Vec<PromptContent>, CliError> {
    let stdin = io::stdin();
    let piped = match stdin.is_terminal() {
        true => None,
        false => input::read_piped(stdin, PATIENCE, || {
            complain("Waiting for the end of stdin. (If nothing is piped in: pi ... < /dev/null)");
        })?,
    };
    // The settings are read for pictures only.
    let resize_images =
        arguments.files.is_empty() || Settings::load(paths).values().images.auto_resize;
    let files = Files {
        names: &arguments.files,
        cwd: &paths.cwd,
        resize_images,
    };
    Ok(input::assemble(piped, &files, arguments.messages)?)
}

fn paths() -> Result<Paths, CliError> {
    let cwd: PathBuf = std::env::current_dir().map_err(CliError::Cwd)?;
    Ok(Paths::from_env(&cwd))
}

fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_stack_size(nesting::STACK)
        .enable_all()
        .build()
        .map_err(CliError::Threads)
}

/// To stdout. A reader that has gone away wants no more.
fn output(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Stdout(error)),
        _ => Ok(()),
    }
}

fn warn(text: &str) {
    complain(&format!("Warning: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task_of(words: &[&str], terminal: bool) -> Task {
        let arguments = args::parse(words.iter().map(OsString::from)).unwrap();
        task(&arguments.options, terminal)
    }

    #[test]
    fn the_mode_is_asked_for_or_follows_from_the_terminal() {
        let mode = |words: &[&str], terminal| match task_of(words, terminal) {
            Task::Session(mode) => mode,
            other => panic!("{other:?}"),
        };
        for (words, at_terminal, without) in [
            (&[][..], Mode::Line, Mode::Print),
            (&["hello"], Mode::Line, Mode::Print),
            (&["-p"], Mode::Print, Mode::Print),
            (&["--mode", "text"], Mode::Line, Mode::Print),
            (&["--mode", "json"], Mode::Json, Mode::Json),
            (&["--mode", "json", "-p"], Mode::Json, Mode::Json),
            (&["--mode", "rpc", "-p"], Mode::Rpc, Mode::Rpc),
        ] {
            assert_eq!(mode(words, true), at_terminal, "{words:?}");
            assert_eq!(mode(words, false), without, "{words:?}");
        }
    }

    #[test]
    fn what_only_shows_something_comes_first() {
        assert_eq!(task_of(&["-h", "-v", "--list-models"], true), Task::Version);
        assert_eq!(task_of(&["--list-models", "x", "-h"], true), Task::Help);
        assert_eq!(
            task_of(&["--mode", "rpc", "--export", "x.jsonl", "y.html"], true),
            Task::Export("x.jsonl".into())
        );
        assert_eq!(
            task_of(&["--mode", "rpc", "--list-models", "x"], true),
            Task::ListModels("x".into())
        );
    }

    #[test]
    fn every_wrong_argument_is_an_error_of_its_own() {
        let words = ["-x", "-y"].map(OsString::from);
        let error = CliError::Arguments(args::parse(words.into_iter()).unwrap_err());
        assert_eq!(
            error.to_string(),
            "Unknown option: -x\nError: Unknown option: -y"
        );
    }
}
