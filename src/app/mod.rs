//! One session as a whole: the only room that ties the agent, its session file,
//! the user's resources and the extensions together. Modes are its clients.

mod actions;
mod bash;
mod compact;
mod config;
mod models;
mod navigate;
mod prompt;
mod replace;
mod run;
mod session;
mod start;
mod state;
mod stats;
mod summary;
mod texts;
mod tools;

pub use bash::BashOutcome;
pub use config::{AppConfig, ModelChoice, SessionTarget, ToolChoice};
pub use models::CycledModel;
pub use prompt::{Accepted, Behavior, PromptError, PromptRequest, Source};
pub use session::{AgentSession, EventSink};
pub use start::StartError;
pub use stats::{SessionState, SessionStats};
