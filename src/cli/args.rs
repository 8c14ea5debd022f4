//! The command line as it is written: our options (clap), `@file` arguments,
//! messages, and options that must be an extension's.
//!
//! clap knows what our options are and checks them. It does not see the words
//! themselves, because the rules for those are older than this program: options
//! that nobody knows yet are kept for the extensions, `-ne` is one option, and a
//! value may begin with a dash.

use std::ffi::OsString;
use std::iter::Peekable;
use std::path::PathBuf;
use std::vec::IntoIter;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, Parser, ValueEnum};

use crate::modes::wire::Agreed;

const MODEL: &str = "Model";
const SESSION: &str = "Session";
const AGENT: &str = "What the agent gets";
const EXTENSIONS: &str = "Extensions";
/// Where Node listens, too: debuggers look there.
const DEBUG_ADDRESS: &str = "127.0.0.1:9229";

/// `--mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputMode {
    Text,
    Json,
    Rpc,
}

/// `--tui-mode`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TuiMode {
    Regular,
    Fullscreen,
}

/// The texts are what `--help` shows.
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

    /// What goes to stdout: the answer's text, every event as JSON, or the RPC protocol
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
        value_parser = PossibleValuesParser::new(Agreed::NAMES),
        hide_possible_values = true
    )]
    pub rpc_capabilities: Vec<String>,

    /// The provider of the model; alone: its default model
    #[arg(long, value_name = "NAME", help_heading = MODEL)]
    pub provider: Option<String>,

    /// An id or a part of one; "provider/id" and "id:thinking" work, too
    #[arg(long, value_name = "PATTERN", help_heading = MODEL)]
    pub model: Option<String>,

    /// How hard it thinks: off, minimal, low, medium, high, xhigh, max
    #[arg(long, value_name = "LEVEL", help_heading = MODEL)]
    pub thinking: Option<String>,

    /// The models to switch among, with commas; globs such as "anthropic/*" work
    #[arg(long, value_name = "PATTERNS", help_heading = MODEL)]
    pub models: Option<String>,

    /// For the model's provider, this time only (other users may see it in the process list)
    #[arg(long, value_name = "KEY", help_heading = MODEL)]
    pub api_key: Option<String>,

    /// Show the models that you have keys for
    #[arg(
        long,
        value_name = "PATTERN",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        help_heading = MODEL
    )]
    pub list_models: Option<String>,

    /// Go on with the latest session of this folder
    #[arg(long = "continue", short = 'c', help_heading = SESSION)]
    pub continue_: bool,

    /// Choose a session to go on with
    #[arg(long, short, help_heading = SESSION)]
    pub resume: bool,

    /// Go on with this one: a file, or the beginning of an id
    #[arg(long, value_name = "SESSION", help_heading = SESSION)]
    pub session: Option<String>,

    /// Go on with the one of this folder that has this very id; make it if there is none
    #[arg(long, value_name = "ID", help_heading = SESSION)]
    pub session_id: Option<String>,

    /// What the session is called
    #[arg(long, short, value_name = "NAME", help_heading = SESSION)]
    pub name: Option<String>,

    /// Go on with a copy of this one
    #[arg(long, value_name = "SESSION", help_heading = SESSION)]
    pub fork: Option<String>,

    /// Where sessions are kept
    #[arg(long, value_name = "FOLDER", help_heading = SESSION)]
    pub session_dir: Option<String>,

    /// Keep this session in memory only
    #[arg(long, help_heading = SESSION)]
    pub no_session: bool,

    /// Make an HTML page of a session file: pi --export FILE [PAGE]
    #[arg(long, value_name = "FILE", help_heading = SESSION)]
    pub export: Option<PathBuf>,

    /// Only these tools, built in or of extensions, with commas; * stands for any
    /// characters. +NAME and -NAME alone change the usual selection
    #[arg(long, short, value_name = "NAMES", help_heading = AGENT)]
    pub tools: Option<String>,

    /// No tools at all, but those of --tools (short: -nt)
    #[arg(long, help_heading = AGENT)]
    pub no_tools: bool,

    /// No built-in tools; those of extensions stay (short: -nbt)
    #[arg(long, help_heading = AGENT)]
    pub no_builtin_tools: bool,

    /// None of these tools, built in or of extensions; with commas and * (short: -xt)
    #[arg(long, value_name = "NAMES", help_heading = AGENT)]
    pub exclude_tools: Option<String>,

    /// No MCP servers: pi itself has none, so nothing changes (for scripts written for the original)
    #[arg(long, help_heading = AGENT)]
    pub no_mcp: bool,

    /// A text or a file in the place of the system prompt
    #[arg(long, value_name = "TEXT", help_heading = AGENT)]
    pub system_prompt: Option<String>,

    /// A text or a file after the system prompt; may be repeated
    #[arg(long, value_name = "TEXT", help_heading = AGENT)]
    pub append_system_prompt: Vec<String>,

    /// A skill, or a folder of skills, to offer, too; may be repeated
    #[arg(long, value_name = "PATH", help_heading = AGENT)]
    pub skill: Vec<String>,

    /// No others than those of --skill (short: -ns)
    #[arg(long, help_heading = AGENT)]
    pub no_skills: bool,

    /// A prompt template, or a folder of them, to offer, too; may be repeated
    #[arg(long, value_name = "PATH", help_heading = AGENT)]
    pub prompt_template: Vec<String>,

    /// No others than those of --prompt-template (short: -np)
    #[arg(long, help_heading = AGENT)]
    pub no_prompt_templates: bool,

    /// Leave out AGENTS.md and CLAUDE.md (short: -nc)
    #[arg(long, help_heading = AGENT)]
    pub no_context_files: bool,

    /// Leave out what the project brings in .pi and .agents (short: -na)
    #[arg(long, help_heading = AGENT)]
    pub no_approve: bool,

    /// Take it, which is the rule, also if trust.json says otherwise
    #[arg(long, short, help_heading = AGENT)]
    pub approve: bool,

    /// Load this file, folder or package (npm:, git:), too; may be repeated
    #[arg(long, short, value_name = "SOURCE", help_heading = EXTENSIONS)]
    pub extension: Vec<String>,

    /// Load no others than those of -e (short: -ne)
    #[arg(long, help_heading = EXTENSIONS)]
    pub no_extensions: bool,

    /// Let Chrome's DevTools or an editor debug them (default: 127.0.0.1:9229)
    #[arg(long, value_name = "ADDRESS", help_heading = EXTENSIONS, num_args = 0..=1,
          require_equals = true, default_missing_value = DEBUG_ADDRESS)]
    pub inspect: Option<String>,

    /// The same, and stop at the first statement of the first one
    #[arg(long, value_name = "ADDRESS", help_heading = EXTENSIONS, num_args = 0..=1,
          require_equals = true, default_missing_value = DEBUG_ADDRESS)]
    pub inspect_brk: Option<String>,

    /// A theme, or a folder of them, to offer, too; may be repeated
    #[arg(long, value_name = "PATH")]
    pub theme: Vec<String>,

    /// No others than those of --theme
    #[arg(long)]
    pub no_themes: bool,

    /// The theme of this run, in the place of the setting
    #[arg(long, value_name = "NAME")]
    pub use_theme: Option<String>,

    /// How a terminal is used: this version has lines only, so both mean the same
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "regular|fullscreen"
    )]
    pub tui_mode: Option<TuiMode>,

    /// Nothing from the network except the model: missing packages are not installed
    #[arg(long)]
    pub offline: bool,

    /// Write more to the log, as PI_LOG=pi=debug does
    #[arg(long)]
    pub verbose: bool,

    /// Show this
    #[arg(long, short)]
    pub help: bool,

    /// Show the version
    #[arg(long, short)]
    pub version: bool,
}

/// Options of two letters, which clap does not have.
const TWO_LETTERS: [(&str, &str); 8] = [
    ("-xt", "exclude-tools"),
    ("-nt", "no-tools"),
    ("-nbt", "no-builtin-tools"),
    ("-na", "no-approve"),
    ("-ne", "no-extensions"),
    ("-ns", "no-skills"),
    ("-np", "no-prompt-templates"),
    ("-nc", "no-context-files"),
];

/// Their value is never the next word, which may be a message.
const ONLY_WITH_EQUALS: [&str; 2] = ["inspect", "inspect-brk"];

/// What the TypeScript pi has and this one does not have yet. To hand these to
/// the extensions, or to ignore them, would do something else than was asked for.
const COMMANDS_TO_COME: [&str; 1] = ["config"];

/// What newer versions have. A message may begin with these words, but not so.
const COMMANDS_OF_NEWER_VERSIONS: [(&str, &[&str], &str); 2] = [
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
    /// Without their `@`.
    pub files: Vec<String>,
    pub messages: Vec<String>,
    /// Options that are not ours: name and value.
    pub flags: Vec<(String, Option<String>)>,
}

/// What is wrong with a command line; a sentence each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("This argument is not valid Unicode: {0}")]
    NotUnicode(String),
    #[error("Unknown option: {0}")]
    Unknown(String),
    #[error("{0} needs a value (see pi --help)")]
    NoValue(String),
    #[error(
        "pi {0} is not there yet in this version of pi. \
         If it is the beginning of a message, write: pi -- {0} ..."
    )]
    CommandToCome(String),
    #[error(
        "pi {0} is a command of newer versions of the original. {1}. \
         If it is the beginning of a message, write: pi -- {0} ..."
    )]
    NewerCommand(String, &'static str),
    #[error("{0}")]
    Invalid(String),
}

/// Whether pi has an option of this name, which is without dashes.
pub fn is_own_option(name: &str) -> bool {
    let options = Options::command();
    let mut names = options.get_arguments().filter_map(Arg::get_long);
    names.any(|own| own == name)
}

/// The name of the program is not among `words`.
pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Arguments, Vec<ArgumentError>> {
    let words: Vec<String> = words.map(unicode).collect::<Result<_, _>>().map_err(only)?;
    if let Some(first) = words.first()
        && COMMANDS_TO_COME.contains(&first.as_str())
    {
        return Err(only(ArgumentError::CommandToCome(first.clone())));
    }
    let names = (words.first(), words.get(1));
    for (name, subcommands, instead) in COMMANDS_OF_NEWER_VERSIONS {
        let is_meant = |word: &String| subcommands.contains(&word.as_str());
        if names.0.is_some_and(|first| first == name) && names.1.is_none_or(is_meant) {
            let error = ArgumentError::NewerCommand(words[..words.len().min(2)].join(" "), instead);
            return Err(only(error));
        }
    }
    let mut sorter = Sorter {
        command: Options::command(),
        ours: vec!["pi".into()],
        files: Vec::new(),
        messages: Vec::new(),
        flags: Vec::new(),
        errors: Vec::new(),
    };
    sorter.sort(words);
    if !sorter.errors.is_empty() {
        return Err(sorter.errors);
    }
    let options = Options::try_parse_from(sorter.ours).map_err(|error| only(invalid(&error)))?;
    Ok(Arguments {
        options,
        files: sorter.files,
        messages: sorter.messages,
        flags: sorter.flags,
    })
}

fn only(error: ArgumentError) -> Vec<ArgumentError> {
    vec![error]
}

fn unicode(word: OsString) -> Result<String, ArgumentError> {
    word.into_string()
        .map_err(|word| ArgumentError::NotUnicode(word.to_string_lossy().into_owned()))
}

/// clap's sentence, without its `error:` and its advice.
fn invalid(error: &clap::Error) -> ArgumentError {
    let text = error.render().to_string();
    let sentence = text.split("\n\n").next().unwrap_or_default();
    let sentence = sentence.trim().trim_start_matches("error: ");
    ArgumentError::Invalid(sentence.to_string())
}

struct Sorter {
    command: Command,
    /// For clap: `--name` or `--name=value` each, so that no value is mistaken
    /// for an option.
    ours: Vec<String>,
    files: Vec<String>,
    messages: Vec<String>,
    flags: Vec<(String, Option<String>)>,
    errors: Vec<ArgumentError>,
}

impl Sorter {
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
        if let Some((takes, long)) = self.find(name) {
            let value = match takes {
                _ if value.is_some() => value,
                Takes::Nothing => None,
                Takes::Maybe => words.next_if(|word| !is_special(word)),
                Takes::Value => {
                    let value = words.next();
                    if value.is_none() {
                        return self.errors.push(ArgumentError::NoValue(name.to_string()));
                    }
                    value
                }
            };
            self.ours.push(match value {
                Some(value) => format!("--{long}={value}"),
                None => format!("--{long}"),
            });
            return;
        }
        if let Some(name) = name.strip_prefix("--") {
            // Whether the extension's option takes a value is not known before the
            // extension is loaded.
            let value = value.or_else(|| words.next_if(|word| !is_special(word)));
            self.flags.push((name.to_string(), value));
        } else {
            self.errors.push(ArgumentError::Unknown(word.to_string()));
        }
    }

    /// One of our options, by any of its names: what it takes, and its long name.
    fn find(&self, name: &str) -> Option<(Takes, String)> {
        let long = TWO_LETTERS
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
        Some((Takes::of(arg), arg.get_long()?.to_string()))
    }
}

/// Not a value of an option that may also have none.
fn is_special(word: &str) -> bool {
    word.starts_with(['-', '@'])
}

#[derive(Clone, Copy)]
enum Takes {
    Nothing,
    Maybe,
    Value,
}

impl Takes {
    fn of(arg: &Arg) -> Self {
        let optional = arg
            .get_num_args()
            .is_some_and(|range| range.min_values() == 0);
        match arg.get_action().takes_values() {
            false => Self::Nothing,
            true if arg
                .get_long()
                .is_some_and(|long| ONLY_WITH_EQUALS.contains(&long)) =>
            {
                Self::Nothing
            }
            true if optional => Self::Maybe,
            true => Self::Value,
        }
    }
}

#[cfg(test)]
mod tests;
