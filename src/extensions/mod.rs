//! The Rust half of the bridge: what extensions registered, which of them hears
//! of what, how their answers are merged, and how long they may take. Knows
//! nothing of V8.

mod absent;
mod act;
pub mod actions;
pub mod answers;
mod behind;
mod boundary;
mod clipboard;
mod config;
mod conflicts;
mod deadline;
mod debugger;
pub mod described;
mod dispatch;
pub mod events;
pub mod exec;
pub mod explain;
mod farewell;
mod generation;
mod host;
mod ledger;
mod manager;
mod members;
pub(crate) mod misfit;
mod model_streams;
mod notifications;
pub mod parameters;
mod patience;
mod providers;
pub mod registry;
mod reports;
mod resources;
pub mod second;
mod services;
pub mod sessions;
mod summaries;
mod summary_questions;
mod tool;
mod tool_runs;
pub mod ui;
mod unheard;
mod updates;
mod user_bash;
mod visits;
mod yields;

pub use crate::resources::settings::ExtensionTimeouts as Limits;
pub use boundary::{Draft, Proposal, drafts};
pub use config::{Allowance, ExtensionsConfig};
pub use conflicts::Shortcuts;
pub use debugger::waits_for_debugger;
pub use dispatch::Emission;
pub use events::{complaint as unknown_event, limits_of_nothing};
pub use host::ConsoleSink;
pub use manager::{Extensions, LoadReport, Statistics};
pub use user_bash::UserBash;
