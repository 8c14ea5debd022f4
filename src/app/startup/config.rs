//! The configuration of a session, from the command line.

use std::path::PathBuf;

use crate::startup::install_missing::Progress;
use pi_ai::model::ThinkingLevel;
use pi_extensions::{ConsoleSink, OwnNames};
use pi_resources::paths::Paths;
use pi_resources::prompts::system_prompt_files::PromptFlags;

/// The client of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Print,
    Json,
    Rpc,
    Line,
}

impl Mode {
    /// Returns the name of the mode in the extension API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Print => "print",
            Self::Json => "json",
            Self::Rpc => "rpc",
            Self::Line => "interactive",
        }
    }

    /// Returns whether a user or a client can answer dialogs.
    pub fn has_ui(self) -> bool {
        match self {
            Self::Rpc | Self::Line => true,
            Self::Print | Self::Json => false,
        }
    }
}

pub struct AppConfig {
    /// The working folder, the user's home and `~/.pi/agent`.
    pub paths: Paths,
    pub mode: Mode,
    /// Whether extensions can show dialogs.
    pub has_ui: bool,
    pub session: SessionTarget,
    /// `--session-id`: the id of a new session or a copy. Without `--fork`, an existing session
    /// with this id is opened.
    pub session_id: Option<String>,
    /// `--name`
    pub session_name: Option<String>,
    /// Whether the working folder replaces the session's own folder if that is missing.
    pub continue_here: bool,
    /// Overrides the setting `sessionDir`.
    pub session_dir: Option<PathBuf>,
    pub model: ModelChoice,
    pub tools: ToolChoice,
    /// `--use-theme`: overrides the setting `theme` for this start.
    pub theme: Option<String>,
    pub prompt: PromptFlags,
    /// `--no-context-files`
    pub no_context_files: bool,
    /// `-e`, in order.
    pub extensions: Vec<String>,
    /// `--no-extensions` clears it: only those of `extensions` are loaded.
    pub discover_extensions: bool,
    /// `--skill`, `--no-skills` and the like.
    pub resources: ResourceFlags,
    /// Unknown options, which extensions may have registered.
    pub flags: Vec<(String, Option<String>)>,
    /// Names that extensions should not use.
    pub own_names: OwnNames,
    pub console: ConsoleSink,
    /// Whether missing packages are installed.
    pub fetch_packages: bool,
    /// Receives progress of slow steps before the mode has begun.
    pub progress: Progress,
}

/// Options for skills, prompt templates and themes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceFlags {
    pub skills: KindFlags,
    pub prompts: KindFlags,
    pub themes: KindFlags,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindFlags {
    /// Additional files and folders to load.
    pub named: Vec<String>,
    /// Whether only `named` is loaded.
    pub only_named: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionTarget {
    New,
    /// `--continue`
    Recent,
    /// `--session`: a file or the beginning of an id.
    Named(String),
    /// `--fork`: a file or the beginning of an id, copied.
    ForkOf(String),
    /// `--no-session`
    InMemory,
}

#[derive(Clone, Debug, Default)]
pub struct ModelChoice {
    pub provider: Option<String>,
    /// A pattern, possibly with `:<thinking>`.
    pub model: Option<String>,
    pub thinking: Option<ThinkingLevel>,
    /// `--models`
    pub scope: Vec<String>,
    pub api_key: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolChoice {
    /// `--tools`: names and patterns (`*`) of the tools that are active at the start.
    pub only: Option<Vec<String>>,
    /// Removes all tools that `only` does not match, built-in ones and those of extensions.
    pub no_others: bool,
    /// `--tools` with signs: `+name` and `-name` change the default selection.
    pub changes: Vec<String>,
    /// `--no-builtin-tools`: the default selection has no built-in tools.
    pub no_builtin: bool,
    /// `--exclude-tools`: names and patterns of tools to remove.
    pub except: Vec<String>,
}
