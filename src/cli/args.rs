//! Parses the command line: pi's options (with clap), `@file` arguments, messages, and options
//! of extensions.
//!
//! clap defines and checks pi's options. It does not see the arguments themselves, because their
//! rules are those of the original: unknown options are kept for the extensions, `-ne` is one
//! option, and a value may begin with a dash.

use std::ffi::OsString;
use std::iter::Peekable;
use std::path::PathBuf;
use std::vec::IntoIter;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, Parser, ValueEnum};

use pi_modes::wire::Capabilities;

const MODEL_HEADING: &str = "Model";
const SESSION_HEADING: &str = "Session";
const AGENT_HEADING: &str = "What the agent gets";
const EXTENSIONS_HEADING: &str = "Extensions";
/// Node's own default address, where debuggers look.
const DEBUG_ADDRESS: &str = "127.0.0.1:9229";

/// Values of `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputMode {
    Text,
    Json,
    Rpc,
}

/// Values of `--tui-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TuiMode {
    Regular,
    Fullscreen,
}

/// pi's options. Their doc comments are the texts of `--help`.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(
    name = "pi",
    about = "A coding agent that its users script in TypeScript",
    override_usage = "pi [OPTIONS] [@FILE...] [MESSAGE...]",
    args_override_self = true,
    disable_help_flag = true,
    disable_version_flag = true
)]
pub struct Options {
    /// Answer and exit, instead of a conversation; also when stdin or stdout is no terminal
    #[arg(long, short)]
    pub print: bool,

    /// Output on stdout: the answer's text, every event as JSON, or the RPC protocol
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "text|json|rpc"
    )]
    pub mode: Option<OutputMode>,

    /// Capabilities for an RPC client that does not ask itself, with commas (docs/rpc.md)
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = PossibleValuesParser::new(Capabilities::NAMES),
        hide_possible_values = true
    )]
    pub rpc_capabilities: Vec<String>,

    /// Provider of the model; without --model its default model is used
    #[arg(long, value_name = "NAME", help_heading = MODEL_HEADING)]
    pub provider: Option<String>,

    /// Model id, or a part of it; "provider/id" and "id:thinking" work, too
    #[arg(long, value_name = "PATTERN", help_heading = MODEL_HEADING)]
    pub model: Option<String>,

    /// Thinking level: off, minimal, low, medium, high, xhigh, max
    #[arg(long, value_name = "LEVEL", help_heading = MODEL_HEADING)]
    pub thinking: Option<String>,

    /// The models to switch among, with commas; globs such as "anthropic/*" work
    #[arg(long, value_name = "PATTERNS", help_heading = MODEL_HEADING)]
    pub models: Option<String>,

    /// API key for the model's provider in this run (other users may see it in the process list)
    #[arg(long, value_name = "KEY", help_heading = MODEL_HEADING)]
    pub api_key: Option<String>,

    /// Show the models that you have keys for
    #[arg(
        long,
        value_name = "PATTERN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = MODEL_HEADING
    )]
    pub list_models: Option<String>,

    /// Continue the latest session of this folder
    #[arg(long = "continue", short = 'c', help_heading = SESSION_HEADING)]
    pub continue_: bool,

    /// Choose a session to continue
    #[arg(long, short, help_heading = SESSION_HEADING)]
    pub resume: bool,

    /// Continue this session: a file, or the beginning of an id
    #[arg(long, value_name = "SESSION", help_heading = SESSION_HEADING)]
    pub session: Option<String>,

    /// Continue the session of this folder with exactly this id, or create it
    #[arg(long, value_name = "ID", help_heading = SESSION_HEADING)]
    pub session_id: Option<String>,

    /// Name of the session
    #[arg(long, short, value_name = "NAME", help_heading = SESSION_HEADING)]
    pub name: Option<String>,

    /// Continue in a copy of this session
    #[arg(long, value_name = "SESSION", help_heading = SESSION_HEADING)]
    pub fork: Option<String>,

    /// The folder of session files
    #[arg(long, value_name = "FOLDER", help_heading = SESSION_HEADING)]
    pub session_dir: Option<String>,

    /// Keep this session in memory only
    #[arg(long, help_heading = SESSION_HEADING)]
    pub no_session: bool,

    /// Make an HTML page of a session file: pi --export FILE [PAGE]
    #[arg(long, value_name = "FILE", help_heading = SESSION_HEADING)]
    pub export: Option<PathBuf>,

    /// Only these tools, built in or of extensions, with commas; * stands for any
    /// characters. +NAME and -NAME alone change the usual selection
    #[arg(long, short, value_name = "NAMES", help_heading = AGENT_HEADING)]
    pub tools: Option<String>,

    /// Disable all tools except those of --tools (short: -nt)
    #[arg(long, help_heading = AGENT_HEADING)]
    pub no_tools: bool,

    /// Disable built-in tools; those of extensions stay (short: -nbt)
    #[arg(long, help_heading = AGENT_HEADING)]
    pub no_builtin_tools: bool,

    /// Disable these tools, built in or of extensions; with commas and * (short: -xt)
    #[arg(long, value_name = "NAMES", help_heading = AGENT_HEADING)]
    pub exclude_tools: Option<String>,

    /// No MCP servers: pi itself has none, so nothing changes (for scripts written for the
    /// original)
    #[arg(long, help_heading = AGENT_HEADING)]
    pub no_mcp: bool,

    /// Text or file that replaces the system prompt
    #[arg(long, value_name = "TEXT", help_heading = AGENT_HEADING)]
    pub system_prompt: Option<String>,

    /// Text or file to append to the system prompt; may be repeated
    #[arg(long, value_name = "TEXT", help_heading = AGENT_HEADING)]
    pub append_system_prompt: Vec<String>,

    /// Also offer a skill, or a folder of skills; may be repeated
    #[arg(long, value_name = "PATH", help_heading = AGENT_HEADING)]
    pub skill: Vec<String>,

    /// Offer only the skills of --skill (short: -ns)
    #[arg(long, help_heading = AGENT_HEADING)]
    pub no_skills: bool,

    /// Also offer a prompt template, or a folder of them; may be repeated
    #[arg(long, value_name = "PATH", help_heading = AGENT_HEADING)]
    pub prompt_template: Vec<String>,

    /// Offer only the templates of --prompt-template (short: -np)
    #[arg(long, help_heading = AGENT_HEADING)]
    pub no_prompt_templates: bool,

    /// Leave out AGENTS.md and CLAUDE.md (short: -nc)
    #[arg(long, help_heading = AGENT_HEADING)]
    pub no_context_files: bool,

    /// Ignore the project's resources in .pi and .agents (short: -na)
    #[arg(long, help_heading = AGENT_HEADING)]
    pub no_approve: bool,

    /// Use the project's resources without a question, also if trust.json denies it
    #[arg(long, short, help_heading = AGENT_HEADING)]
    pub approve: bool,

    /// Also load this file, folder or package (npm:, git:); may be repeated
    #[arg(long, short, value_name = "SOURCE", help_heading = EXTENSIONS_HEADING)]
    pub extension: Vec<String>,

    /// Load only the extensions of -e (short: -ne)
    #[arg(long, help_heading = EXTENSIONS_HEADING)]
    pub no_extensions: bool,

    /// Let Chrome's DevTools or an editor debug them (default: 127.0.0.1:9229)
    #[arg(long, value_name = "ADDRESS", help_heading = EXTENSIONS_HEADING, num_args = 0..=1,
          require_equals = true, default_missing_value = DEBUG_ADDRESS)]
    pub inspect: Option<String>,

    /// Like --inspect, and stop at the first statement of the first one
    #[arg(long, value_name = "ADDRESS", help_heading = EXTENSIONS_HEADING, num_args = 0..=1,
          require_equals = true, default_missing_value = DEBUG_ADDRESS)]
    pub inspect_brk: Option<String>,

    /// Also offer a theme, or a folder of them; may be repeated
    #[arg(long, value_name = "PATH")]
    pub theme: Vec<String>,

    /// Offer only the themes of --theme
    #[arg(long)]
    pub no_themes: bool,

    /// Theme of this run, instead of the setting
    #[arg(long, value_name = "NAME")]
    pub use_theme: Option<String>,

    /// Accepted for the original's sake: this version has line mode only
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "regular|fullscreen"
    )]
    pub tui_mode: Option<TuiMode>,

    /// Use no network except for the model: missing packages are not installed
    #[arg(long)]
    pub offline: bool,

    /// Write more to the log, as PI_LOG=pi=debug does
    #[arg(long)]
    pub verbose: bool,

    /// Show this help
    #[arg(long, short)]
    pub help: bool,

    /// Show the version
    #[arg(long, short)]
    pub version: bool,
}

/// Short options with several letters, which clap does not support.
const MULTI_LETTER_OPTIONS: [(&str, &str); 8] = [
    ("-xt", "exclude-tools"),
    ("-nt", "no-tools"),
    ("-nbt", "no-builtin-tools"),
    ("-na", "no-approve"),
    ("-ne", "no-extensions"),
    ("-ns", "no-skills"),
    ("-np", "no-prompt-templates"),
    ("-nc", "no-context-files"),
];

/// Options whose value is never the next argument, which may be a message.
const VALUE_ONLY_AFTER_EQUALS: [&str; 2] = ["inspect", "inspect-brk"];

/// Commands of the original that are not implemented. Treating them as messages or as options of
/// extensions would do something else than the user asked for.
const MISSING_COMMANDS: [&str; 1] = ["config"];

/// Commands of newer versions of the original: name, subcommands and the alternative in this
/// version. A message may begin with the name, but not with one of these subcommands.
const NEWER_COMMANDS: [(&str, &[&str], &str); 2] = [
    (
        "auth",
        &[
            "login",
            "logout",
            "check",
            "print-api-key",
            "print-bearer-token",
        ],
        "Sign in with /login in pi, or put a key into auth.json (docs/settings.md)",
    ),
    (
        "mcp",
        &["add", "remove", "list", "login", "logout"],
        "There are no MCP servers in this version; an extension may bring them",
    ),
];

#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
    pub options: Options,
    /// Paths of `@file` arguments, without the `@`.
    pub files: Vec<String>,
    pub messages: Vec<String>,
    /// Options of extensions: name and value.
    pub flags: Vec<(String, Option<String>)>,
}

/// An error of the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("This argument is not valid Unicode: {0}")]
    NotUnicode(String),
    #[error("Unknown option: {0}")]
    Unknown(String),
    #[error("{0} needs a value (see pi --help)")]
    NoValue(String),
    #[error(
        "`pi {0}` is not implemented in this version. \
         If it is the beginning of a message, write: pi -- {0} ..."
    )]
    NotImplemented(String),
    #[error(
        "pi {0} is a command of newer versions of the original. {1}. \
         If it is the beginning of a message, write: pi -- {0} ..."
    )]
    NewerCommand(String, &'static str),
    #[error("{0}")]
    Invalid(String),
}

/// Whether pi has an option with this name, given without dashes.
pub fn is_own_option(name: &str) -> bool {
    let options = Options::command();
    let mut names = options.get_arguments().filter_map(Arg::get_long);
    names.any(|own| own == name)
}

/// Parses the arguments, without the program's name. Returns all errors.
pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Arguments, Vec<ArgumentError>> {
    let words: Vec<String> = words
        .map(unicode)
        .collect::<Result<_, _>>()
        .map_err(one_error)?;
    if let Some(first) = words.first()
        && MISSING_COMMANDS.contains(&first.as_str())
    {
        return Err(one_error(ArgumentError::NotImplemented(first.clone())));
    }
    let names = (words.first(), words.get(1));
    for (name, subcommands, instead) in NEWER_COMMANDS {
        let is_meant = |word: &String| subcommands.contains(&word.as_str());
        if names.0.is_some_and(|first| first == name) && names.1.is_none_or(is_meant) {
            let error = ArgumentError::NewerCommand(words[..words.len().min(2)].join(" "), instead);
            return Err(one_error(error));
        }
    }
    let mut sorter = ArgumentSorter {
        command: Options::command(),
        own: vec!["pi".into()],
        files: Vec::new(),
        messages: Vec::new(),
        flags: Vec::new(),
        errors: Vec::new(),
    };
    sorter.sort(words);
    if !sorter.errors.is_empty() {
        return Err(sorter.errors);
    }
    let options =
        Options::try_parse_from(sorter.own).map_err(|error| one_error(invalid(&error)))?;
    Ok(Arguments {
        options,
        files: sorter.files,
        messages: sorter.messages,
        flags: sorter.flags,
    })
}

fn one_error(error: ArgumentError) -> Vec<ArgumentError> {
    vec![error]
}

fn unicode(word: OsString) -> Result<String, ArgumentError> {
    word.into_string()
        .map_err(|word| ArgumentError::NotUnicode(word.to_string_lossy().into_owned()))
}

/// clap's error message, without its `error:` and its hints.
fn invalid(error: &clap::Error) -> ArgumentError {
    let text = error.render().to_string();
    let sentence = text.split("\n\n").next().unwrap_or_default();
    let sentence = sentence.trim().trim_start_matches("error: ");
    ArgumentError::Invalid(sentence.to_string())
}

struct ArgumentSorter {
    command: Command,
    /// pi's options for clap: `--name` or `--name=value` each, so that no value is mistaken for
    /// an option.
    own: Vec<String>,
    files: Vec<String>,
    messages: Vec<String>,
    flags: Vec<(String, Option<String>)>,
    errors: Vec<ArgumentError>,
}

impl ArgumentSorter {
    fn sort(&mut self, words: Vec<String>) {
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                return self.messages.extend(words);
            } else if let Some(file) = word.strip_prefix('@') {
                self.files.push(file.to_string());
            } else if word.starts_with('-') {
                self.option(&word, &mut words);
            } else {
                self.messages.push(word);
            }
        }
    }

    fn option(&mut self, word: &str, words: &mut Peekable<IntoIter<String>>) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => (name, Some(value.to_string())),
            _ => (word, None),
        };
        if let Some((rule, long)) = self.find(name) {
            let value = match rule {
                _ if value.is_some() => value,
                ValueRule::Nothing => None,
                ValueRule::Optional => words.next_if(|word| !is_special(word)),
                ValueRule::Required => {
                    let value = words.next();
                    if value.is_none() {
                        return self.errors.push(ArgumentError::NoValue(name.to_string()));
                    }
                    value
                }
            };
            self.own.push(match value {
                Some(value) => format!("--{long}={value}"),
                None => format!("--{long}"),
            });
            return;
        }
        if let Some(name) = name.strip_prefix("--") {
            // Whether an extension's option takes a value is known only after the extension is
            // loaded.
            let value = value.or_else(|| words.next_if(|word| !is_special(word)));
            self.flags.push((name.to_string(), value));
        } else {
            self.errors.push(ArgumentError::Unknown(word.to_string()));
        }
    }

    /// Finds one of pi's options by any of its names. Returns how it takes a value, and its long
    /// name.
    fn find(&self, name: &str) -> Option<(ValueRule, String)> {
        let long = MULTI_LETTER_OPTIONS
            .iter()
            .find(|(short, _)| *short == name)
            .map(|(_, long)| *long)
            .or_else(|| name.strip_prefix("--"));
        let short = match name.chars().collect::<Vec<_>>().as_slice() {
            ['-', short] => Some(*short),
            _ => None,
        };
        let is_long = |arg: &Arg, long: &str| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(long) || aliases.contains(&long)
        };
        let is_it = |arg: &&Arg| {
            long.is_some_and(|long| is_long(arg, long))
                || (short.is_some() && arg.get_short() == short)
        };
        let arg = self.command.get_arguments().find(is_it)?;
        Some((ValueRule::for_arg(arg), arg.get_long()?.to_string()))
    }
}

/// Whether an argument cannot be the optional value of an option.
fn is_special(word: &str) -> bool {
    word.starts_with(['-', '@'])
}

#[derive(Clone, Copy)]
enum ValueRule {
    Nothing,
    Optional,
    Required,
}

impl ValueRule {
    fn for_arg(arg: &Arg) -> Self {
        let optional = arg
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0);
        match arg.get_action().takes_values() {
            false => Self::Nothing,
            true if arg
                .get_long()
                .is_some_and(|long| VALUE_ONLY_AFTER_EQUALS.contains(&long)) =>
            {
                Self::Nothing
            }
            true if optional => Self::Optional,
            true => Self::Required,
        }
    }
}

#[cfg(test)]
mod tests;
