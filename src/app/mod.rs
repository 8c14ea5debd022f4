//! One session as a whole. This layer alone ties the agent, the session file, the user's
//! resources and the extensions together. Modes are its clients.

mod activity;
mod cancel;
mod child;
mod command;
mod compaction;
mod error;
mod export;
mod extension_api;
mod log_events;
mod models;
mod prompt;
mod redaction;
mod run;
mod session;
mod session_lock;
mod shutdown;
mod sign_in;
mod startup;
mod state;
mod stats;
mod switch;
mod tools;
mod trust_question;
mod ui;
mod user_commands;

pub use command::{
    CommandOutcome, CommandResult, ImmediateCommand, ModelChangeSource, ModelReference,
    SessionCommand,
};
pub use error::{CommandError, ErrorCode};
pub use models::CycledModel;
pub use prompt::content::PromptContent;
pub use prompt::{Accepted, Behavior, Disposition, PromptError, PromptRequest, Source};
pub use session::{AgentSession, EventSink};
pub use startup::StartError;
pub use startup::config::{
    AppConfig, KindFlags, Mode, ModelChoice, ResourceFlags, SessionTarget, ToolChoice,
};
pub use startup::find_session::{FoundSession, find_session, list_sessions, missing_cwd};
pub use startup::install_missing::{Progress, is_offline};
pub use startup::list_models::known_models;
pub use stats::{SessionState, SessionStats};
pub use switch::fork::{ForkPosition, Forked, ListError};
pub use tools::{CommandSource, SlashCommand};
pub use trust_question::TrustOutcome;
pub use user_commands::{UserCommandRequest, UserCommandResult, UserCommandRunner};
