//! One session as a whole: the only room that ties the agent, its session file,
//! the user's resources and the extensions together. Modes are its clients.

mod actions;
mod bash;
mod compact;
mod config;
mod export;
mod forks;
mod known_models;
mod left;
mod locate;
mod models;
mod navigate;
mod packages;
mod prompt;
mod prompt_options;
mod refusal;
mod replace;
mod rest;
mod run;
mod run_hooks;
mod second;
mod session;
mod sign_in;
mod start;
mod state;
mod stats;
mod summary;
mod summary_retry;
mod texts;
mod tools;
mod trace;
mod ui_prompt;
mod watch;

pub use bash::BashOutcome;
pub use config::{AppConfig, KindFlags, ModelChoice, ResourceFlags, SessionTarget, ToolChoice};
pub use forks::{ForkPosition, Forked};
pub use known_models::known_models;
pub use locate::{Located, listed, locate, missing_cwd};
pub use models::CycledModel;
pub use packages::{Progress, is_offline};
pub use prompt::{Accepted, Behavior, Disposition, PromptError, PromptRequest, Source};
pub use refusal::{ErrorCode, Refusal};
pub use session::{AgentSession, EventSink};
pub use start::StartError;
pub use stats::{SessionState, SessionStats};
pub use tools::{CommandSource, SlashCommand};
