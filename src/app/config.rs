//! What a session is started with: what the command line said, in our words.

use std::path::PathBuf;

use super::packages::Progress;
use crate::ai::model::ThinkingLevel;
use crate::extensions::ConsoleSink;
use crate::resources::paths::Paths;
use crate::resources::prompts::system_prompt_files::PromptFlags;

pub struct AppConfig {
    /// The folder to work in, the user's home, and `~/.pi/agent`.
    pub paths: Paths,
    /// `interactive`, `rpc`, `json` or `print`: what extensions are told.
    pub mode: &'static str,
    /// Whether extensions can ask somebody.
    pub has_ui: bool,
    pub session: SessionTarget,
    /// `--session-id`: of a new session or a copy. Without a copy the one that has it is
    /// opened.
    pub session_id: Option<String>,
    /// `--name`
    pub session_name: Option<String>,
    /// If the session's own folder is gone, the one to work in takes its place.
    pub continue_here: bool,
    /// Overrides the setting `sessionDir`.
    pub session_dir: Option<PathBuf>,
    pub model: ModelChoice,
    pub tools: ToolChoice,
    /// `--use-theme`: in the place of the setting `theme`, for this run.
    pub theme: Option<String>,
    pub prompt: PromptFlags,
    /// `--no-context-files`
    pub no_context_files: bool,
    /// `-e`, in order.
    pub extensions: Vec<String>,
    /// `--no-extensions`: only those of `extensions` are loaded.
    pub discover_extensions: bool,
    /// `--skill`, `--no-skills` and the like.
    pub resources: ResourceFlags,
    /// Options that are not ours: extensions may have registered them.
    pub flags: Vec<(String, Option<String>)>,
    /// Whether an option is ours, without its dashes.
    pub is_own_option: fn(&str) -> bool,
    pub console: ConsoleSink,
    /// Packages that are missing are installed.
    pub fetch_packages: bool,
    /// What takes long before the mode has begun.
    pub progress: Progress,
}

/// What the command line says of skills, prompt templates and themes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceFlags {
    pub skills: KindFlags,
    pub prompts: KindFlags,
    pub themes: KindFlags,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindFlags {
    /// Files and folders to load, too.
    pub named: Vec<String>,
    /// No others than those.
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
    /// Tools that `only` does not match do not exist, whether built in or of an extension.
    pub no_others: bool,
    /// `--tools` with signs: `+name` and `-name` change the usual selection.
    pub changes: Vec<String>,
    /// `--no-builtin-tools`: the usual selection has no built-in tools.
    pub no_builtin: bool,
    /// `--exclude-tools`: names and patterns of tools that do not exist.
    pub except: Vec<String>,
}
