//! The Rust half of the bridge to extensions: what they registered, the events that are
//! emitted to them, how results of handlers are merged, and how long handlers may take.
//! This layer does not depend on V8.

pub mod api;
mod bridge;
pub mod child;
mod config;
pub mod diagnostics;
mod events;
mod lifecycle;
mod limits;
pub mod registry;
mod trusted_files;

pub use api::user_bash::UserBash;
pub use bridge::{BridgeResult, ConsoleSink};
pub use config::{ExtensionsConfig, GenerationLimits};
pub use diagnostics::name_conflicts::{OwnNames, Shortcuts};
pub use events::dispatch::Emission;
pub use events::event_body::EventBody;
pub use events::mutations::Mutation;
pub use events::table::{ineffective_limits, unknown_event};
pub use events::turn_end::{Draft, Proposal, parse_drafts};
pub use js_runtime::{HostError, InputAnswer, InputKind, LoadInput};
pub use lifecycle::debugger::waits_for_debugger;
pub use lifecycle::load_error::LoadFailure;
pub use lifecycle::load_record::LoadRecord;
pub use lifecycle::{Extensions, LoadReport, Statistics};
pub use trusted_files::{expect_allowed_files, expect_trusted_files};
