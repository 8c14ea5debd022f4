//! `--help`: pi's options, and those of the extensions that a session here would load.

use std::io::{self, IsTerminal};
use std::sync::Arc;

use async_trait::async_trait;
use clap::CommandFactory;

use super::args::{Arguments, Options};
use super::config;
use super::{CliError, output, paths, runtime, warn};
use pi_agent::event::Event;
use pi_app::{AgentSession, AppConfig, EventSink, Mode, ModelChoice, SessionTarget, StartError};
use pi_extensions::registry::{FlagKind, FlagRegistration};
use pi_resources::discovery::extensions::{ResourceSources, find_extensions};
use pi_resources::settings::Settings;

const EXTRA_HELP: &str = "\
Commands (pi <command> --help tells more):
  pi install <source>... [-l]                   add a package: npm:name, git:host/path, ./folder
  pi remove <source>... [-l]                    take it away again
  pi update [source]...                         fetch newer versions
  pi list                                       the packages there are
  pi doctor [--json]                            what is wrong with this installation
  pi ext list                                   the extensions, and what they register
  pi ext check FILE...                          what is wrong with an extension
  pi trust [allow|deny|forget|diff|list]        whether this folder may bring code
  pi test [path]...                             run the tests of extensions
  pi launcher [PATH]                            a script for clients that start `node PATH`

Examples:
  pi --provider demo -p \"list the files here\"   try pi, without a key or a network
  pi                                            a conversation
  pi -p \"what does this project do?\"            one answer
  pi @notes.md @photo.png \"compare these\"       with files
  git diff | pi -p \"review this\"                with what a command says
  pi -c \"and now?\"                              go on with the last session
  pi --model sonnet:high \"why does it hang?\"    a model, and how hard it thinks
  pi --tools read -p \"look for bugs in src\"     without changing anything
  pi -e ./gate.ts                               with an extension
  pi -- --help is a nice option                 after -- there are no options

Environment:
  ANTHROPIC_API_KEY, OPENAI_API_KEY, ...        keys of the providers
  PI_CODING_AGENT_DIR                           settings, sessions, extensions (~/.pi/agent)
  PI_CODING_AGENT_SESSION_DIR                   as --session-dir
  PI_LOG                                        what is logged, such as pi=debug
                                                (to logs/pi.log in that folder)
";

pub fn run(arguments: &Arguments) -> Result<(), CliError> {
    let mut more = EXTRA_HELP.to_string();
    match extension_flags(arguments) {
        Ok(flags) if flags.is_empty() => {}
        Ok(flags) => more = format!("{}\n{more}", section(&flags)),
        // The help is printed even if extensions cannot be loaded.
        Err(error) => warn(&error.to_string()),
    }
    let help = Options::command().after_help(more).render_help();
    output(&match io::stdout().is_terminal() {
        true => help.ansi().to_string(),
        false => help.to_string(),
    })
}

/// Loads the extensions, if there are any, and returns their options.
fn extension_flags(arguments: &Arguments) -> Result<Vec<FlagRegistration>, CliError> {
    let config = AppConfig {
        session: SessionTarget::InMemory,
        session_id: None,
        session_name: None,
        model: ModelChoice::default(),
        flags: Vec::new(),
        // `--help` installs nothing.
        fetch_packages: false,
        ..config::build(arguments, paths()?, Mode::Print, &mut Vec::new())?
    };
    let settings = Settings::load(&config.paths);
    let found = find_extensions(&ResourceSources {
        paths: &config.paths,
        settings: &settings,
        cli_extensions: &config.extensions,
        discover: config.discover_extensions,
    });
    if found.paths.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = runtime()?;
    let flags = runtime.block_on(load(config));
    runtime.shutdown_background();
    Ok(flags?)
}

async fn load(config: AppConfig) -> Result<Vec<FlagRegistration>, StartError> {
    let session = AgentSession::start(config, Arc::new(IgnoreEvents)).await?;
    for (path, error) in session.load_report().failed {
        warn(&format!("{path}: {error}"));
    }
    let flags = session.extensions().flags();
    session.shutdown(0).await;
    Ok(flags)
}

/// Ignores events: the session is never opened.
struct IgnoreEvents;

#[async_trait]
impl EventSink for IgnoreEvents {
    async fn send(&self, _: Arc<Event>) {}
}

fn section(flags: &[FlagRegistration]) -> String {
    let mut text = "Extension CLI Flags:\n".to_string();
    for flag in flags {
        let value = match flag.kind {
            FlagKind::String => " <VALUE>",
            FlagKind::Boolean => "",
        };
        let name = format!("--{}{value}", flag.name);
        let description = flag.description.as_deref().unwrap_or_default();
        text += format!("  {name:<34}{description}").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_explained() {
        for arg in Options::command().get_arguments() {
            assert!(arg.get_help().is_some(), "{arg:?}");
        }
    }

    #[test]
    fn extension_options_are_listed() {
        let flag = |name: &str, kind, description: Option<&str>| FlagRegistration {
            extension: 0,
            name: name.into(),
            description: description.map(str::to_string),
            kind,
            default: None,
        };
        let flags = [
            flag("plan", FlagKind::Boolean, Some("Plan first")),
            flag("level", FlagKind::String, None),
        ];
        assert_eq!(
            section(&flags),
            "Extension CLI Flags:\n  \
             --plan                            Plan first\n  \
             --level <VALUE>\n"
        );
    }
}
