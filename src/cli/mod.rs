//! The command line: parses it, selects the mode, and decides the exit code, which is decided
//! nowhere else: 0 done, 1 failed, 128 + n ended by signal n.

mod args;
mod config;
mod doctor;
mod ext;
mod help;
mod input;
mod launcher;
mod list_models;
mod log;
mod node_compat;
mod packages;
mod proxy;
mod startup_prompts;
mod test;
mod trust;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use args::{ArgumentError, Arguments, Options, OutputMode};
use config::{Conflict, InvalidId, NoTheme, ToolListError};
use input::{FileArguments, InputError};
use js_runtime::Console;
use launcher::LauncherError;
use startup_prompts::Decision;

use pi_ai::json::depth;
use pi_ai::models::registry::ModelRegistry;
use pi_app::{AppConfig, Mode, PromptContent, SessionTarget, StartError};
use pi_base::{VERSION, compared_version, secrets};
use pi_export::{ExportError, PageColors, export_file};
use pi_extensions::ConsoleSink;
use pi_modes::print_stderr;
use pi_resources::discovery::ResourceSources;
use pi_resources::migrations;
use pi_resources::paths::Paths;
use pi_resources::settings::{ExtensionHost, Settings};
use pi_resources::themes::{find_theme, load_themes};

/// Tokio's worker threads, besides the main thread, V8's threads and those that wait for files.
const WORKER_THREADS: usize = 2;
/// How long stdin may stay open until the user is told that pi waits for its end.
const STDIN_NOTICE_DELAY: Duration = Duration::from_secs(3);

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

/// The task that the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Task {
    Version,
    Help,
    ListModels(String),
    Export(PathBuf),
    Session(Mode),
}

pub fn main() -> ExitCode {
    let code = run().unwrap_or_else(|error| {
        print_stderr(&format!("Error: {error}"));
        1
    });
    ExitCode::from(code)
}

fn run() -> Result<u8, CliError> {
    let args: Vec<_> = js_runtime::arguments().collect();
    if let Some(invocation) = node_compat::parse_invocation(&args) {
        return Ok(node_compat::run(invocation, &paths()?)?);
    }
    if let Some(code) = run_subcommand(&args)? {
        return Ok(code);
    }
    let arguments = args::parse(args.into_iter()).map_err(CliError::Arguments)?;
    let options = &arguments.options;
    set_environment(options.offline);
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

/// Prints the version: the whole version on a terminal. A program may accept only digits and dots
/// (pi-agent-python-sdk 0.2.6 does), so stdout gets the compared version otherwise.
fn version() -> Result<(), CliError> {
    if io::stdout().is_terminal() {
        return output(&format!("{VERSION}\n"));
    }
    output(&format!("{}\n", compared_version()))?;
    print_stderr(&format!("pi {VERSION}"));
    Ok(())
}

/// Applies `--approve` and `--no-approve`. When both flags are given, the stricter one applies.
fn approve(yes: bool, no: bool) {
    if yes || no {
        pi_resources::trust::set_approval(!no);
    }
}

/// Runs a subcommand and returns its exit code; `None` if the arguments name none.
fn run_subcommand(args: &[OsString]) -> Result<Option<u8>, CliError> {
    let args: Option<Vec<String>> = args
        .iter()
        .map(|arg| arg.to_str().map(str::to_owned))
        .collect();
    // Arguments that are not Unicode are reported with the errors of the other arguments.
    let Some(args) = args else {
        return Ok(None);
    };
    match args.first().map(String::as_str) {
        Some("install" | "remove" | "uninstall" | "update" | "list") => {
            let has = |names: [&str; 2]| args.iter().any(|arg| names.contains(&arg.as_str()));
            set_environment(args.iter().any(|arg| arg == "--offline"));
            approve(has(["-a", "--approve"]), has(["-na", "--no-approve"]));
            packages::run(&args)
        }
        Some("doctor") => {
            set_environment(args.iter().any(|arg| arg == "--offline"));
            doctor::run(&args).map(Some)
        }
        Some("ext") => {
            set_environment(args.iter().any(|arg| arg == "--offline"));
            ext::run(&args).map(Some)
        }
        Some("test") => test::run(&args).map(Some),
        Some("trust") if trust::is_meant(&args[1..]) => trust::run(&args[1..]).map(Some),
        Some("launcher") if args.len() <= 2 => launcher::run(&args).map(Some),
        Some("rpc") if args[1..] == ["schema"] => {
            output(pi_modes::rpc::schema::SCHEMA)?;
            Ok(Some(0))
        }
        _ => Ok(None),
    }
}

/// Sets the environment variables that tell child processes and extensions that they run inside
/// pi.
#[expect(clippy::disallowed_methods, reason = "the only thread there is yet")]
fn set_environment(offline: bool) {
    // SAFETY: no other thread runs that could be reading the environment.
    unsafe {
        std::env::set_var("PI_CODING_AGENT", "true");
        // A variable that several agents set.
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

/// Exports a session file as a page. The first message is the path of the page.
fn export(session: &Path, arguments: &Arguments) -> Result<(), CliError> {
    let mut names = arguments.messages.iter();
    let page = names.next().map(Path::new);
    if let Some(name) = names.chain(&arguments.files).next() {
        return Err(CliError::ExportToMany(name.clone()));
    }
    let paths = paths()?;
    // Their keys and tokens are replaced in the page.
    let _models = ModelRegistry::load(&paths.agent_dir);
    secrets::add_registry_tokens(&paths.home, &paths.cwd);
    let (page, warnings) = export_file(session, page, theme_colors(&paths))?;
    for warning in warnings {
        warn(&warning.to_string());
    }
    output(&format!("Exported to: {}\n", page.display()))
}

/// Returns the colours of the theme in the settings, if it is a theme file.
fn theme_colors(paths: &Paths) -> Option<PageColors> {
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
    theme.map(PageColors::from_theme)
}

fn session(mode: Mode, arguments: Arguments) -> Result<u8, CliError> {
    if mode == Mode::Rpc && !arguments.files.is_empty() {
        return Err(CliError::FilesInRpc);
    }
    let paths = paths()?;
    proxy::apply_setting(&paths);
    let mut warnings = Vec::new();
    let filter = std::env::var("PI_LOG").ok();
    if let Err(problem) = log::start(&paths, filter, arguments.options.verbose) {
        warnings.push(problem.to_string());
    }
    tracing::info!(version = VERSION, mode = mode.as_str(), cwd = %paths.cwd.display(), "pi starts");
    for note in migrations::run(&paths) {
        print_stderr(&note);
    }
    let old = migrations::old_folders(&paths);
    warnings.extend(old.iter().map(ToString::to_string));
    let debugger = debug_address(&arguments.options)?;
    let mut config = config::build(&arguments, paths, mode, &mut warnings)?;
    if mode == Mode::Rpc && !arguments.messages.is_empty() {
        warnings.push("messages on the command line are not used in RPC mode".into());
    }
    for warning in &warnings {
        warn(warning);
    }
    if let Decision::Exit(why) =
        startup_prompts::resolve_session(&mut config, arguments.options.resume, mode)?
    {
        output(&format!("{why}\n"))?;
        return Ok(0);
    }
    // The settings are read here only for a debugger; the session reads them again.
    let host = match debugger {
        Some(_) => Settings::load(&config.paths).values().extension_host,
        None => ExtensionHost::default(),
    };
    let capabilities = arguments.options.rpc_capabilities.clone();
    let prompts = match mode {
        Mode::Rpc => Vec::new(),
        _ => prompts(arguments, &config.paths)?,
    };
    let new = config.session == SessionTarget::New;
    let has_no_prompt = prompts.is_empty() && matches!(mode, Mode::Print | Mode::Json) && new;
    start_inspector(debugger, host)?;
    let runtime = runtime()?;
    let code = runtime.block_on(run_mode(mode, config, prompts, &capabilities));
    // Warned at the end, because wrong options may be the reason.
    if has_no_prompt && code == 0 {
        warn("nothing was asked: give a message, or pipe one in (see pi --help)");
    }
    tracing::info!(code, "pi ends");
    // Blocked threads, such as a read of stdin, end with the process.
    runtime.shutdown_background();
    Ok(code)
}

/// Returns the address for the debugger, and whether pi waits for it, from `--inspect` or
/// `--inspect-brk`. A port alone is a port of this machine.
fn debug_address(options: &Options) -> Result<Option<(SocketAddr, bool)>, CliError> {
    let (text, wait) = match (&options.inspect_brk, &options.inspect) {
        (Some(text), _) => (text, true),
        (None, Some(text)) => (text, false),
        (None, None) => return Ok(None),
    };
    let port = text
        .parse::<u16>()
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    // A name such as `localhost` resolves to its IPv4 address first, like a port alone.
    let named = || text.to_socket_addrs().ok()?.min_by_key(SocketAddr::is_ipv6);
    let address = port.or_else(|_| text.parse()).ok().or_else(named);
    match address {
        Some(address) => Ok(Some((address, wait))),
        None => Err(CliError::Debugger(format!(
            "--inspect takes an address and a port, such as 127.0.0.1:9229, or a port, not {text}"
        ))),
    }
}

fn start_inspector(
    debugger: Option<(SocketAddr, bool)>,
    host: ExtensionHost,
) -> Result<(), CliError> {
    let Some((address, wait)) = debugger else {
        return Ok(());
    };
    let started = match host {
        ExtensionHost::Thread => js_runtime::start_inspector(address, wait),
        ExtensionHost::Process => js_runtime::inspect_processes(address, wait),
    };
    started.map_err(CliError::Debugger)
}

/// Runs the mode and returns the exit code. `capabilities` are those of an RPC client.
async fn run_mode(
    mode: Mode,
    config: AppConfig,
    prompts: Vec<PromptContent>,
    capabilities: &[String],
) -> u8 {
    match mode {
        Mode::Print => pi_modes::print::run(config, prompts).await,
        Mode::Json => pi_modes::json::run(config, prompts).await,
        Mode::Rpc => pi_modes::rpc::run(config, capabilities).await,
        Mode::Line => pi_modes::line::run(config, prompts).await,
    }
}

/// Returns where console output of extensions goes, which is never stdout.
fn console(mode: Mode) -> ConsoleSink {
    match mode {
        Mode::Line => log::console(),
        Mode::Print | Mode::Json | Mode::Rpc => {
            Arc::new(|_: Console, line: &str| print_stderr(line))
        }
    }
}

fn prompts(arguments: Arguments, paths: &Paths) -> Result<Vec<PromptContent>, CliError> {
    let stdin = io::stdin();
    let piped = match stdin.is_terminal() {
        true => None,
        false => input::read_piped(stdin, STDIN_NOTICE_DELAY, || {
            print_stderr(
                "Waiting for the end of stdin. (If nothing is piped in: pi ... < /dev/null)",
            );
        })?,
    };
    // The settings are needed for images only.
    let resize_images =
        arguments.files.is_empty() || Settings::load(paths).values().images.auto_resize;
    let files = FileArguments {
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
        .worker_threads(WORKER_THREADS)
        .thread_stack_size(depth::STACK_SIZE)
        .enable_all()
        .build()
        .map_err(CliError::Threads)
}

/// Writes to stdout. A closed pipe is no error.
fn output(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    match written.and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(CliError::Stdout(error)),
        _ => Ok(()),
    }
}

fn warn(text: &str) {
    print_stderr(&format!("Warning: {text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task_of(words: &[&str], terminal: bool) -> Task {
        let arguments = args::parse(words.iter().map(OsString::from)).unwrap();
        task(&arguments.options, terminal)
    }

    #[test]
    fn the_mode_follows_from_options_and_terminal() {
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
    fn informational_options_come_first() {
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
    fn each_wrong_argument_is_reported() {
        let words = ["-x", "-y"].map(OsString::from);
        let error = CliError::Arguments(args::parse(words.into_iter()).unwrap_err());
        assert_eq!(
            error.to_string(),
            "Unknown option: -x\nError: Unknown option: -y"
        );
    }
}
