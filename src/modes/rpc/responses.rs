//! Responses, and the `data` of every command that has any.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use pi_agent::AgentMessage;
use pi_ai::model::{Model, ThinkingLevel};
use pi_app::{
    Accepted, CommandOutcome, CycledModel, Disposition, ErrorCode, SessionState, SessionStats,
    SlashCommand, UserCommandResult,
};
use pi_compaction::Compacted;
use pi_extensions::api::session_api::Navigated;
use pi_extensions::{LoadFailure, LoadReport, Statistics};

/// The answer to a command. Members that are `None` are left out, as clients expect.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<serde_json::Value>,
    pub r#type: &'static str,
    pub command: String,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
}

/// The `data` of a response. `schema/tests.rs` lists which command has which.
#[derive(Serialize)]
#[serde(untagged)]
pub enum ResponseData {
    Prompt(PromptDisposition),
    Queues(Queues),
    Switched(Cancelled),
    Forked(ForkedText),
    State(Box<SessionState>),
    Messages(Messages),
    Model(Arc<Model>),
    CycledModel(Option<CycledModel>),
    Models(Models),
    CycledLevel(Option<Level>),
    Levels(Levels),
    Navigated(Navigated),
    Compacted(Compacted),
    Bash(UserCommandResult),
    Stats(SessionStats),
    Path(Path),
    EntryId(EntryId),
    ForkMessages(ForkMessages),
    BranchMessages(BranchMessages),
    /// Text that is JSON already.
    Json(Box<RawValue>),
    Text(Text),
    Commands(Commands),
    Hello(Greeting),
    Ping(Pong),
    ExtensionStats(Statistics),
    Reloaded(Reloaded),
    Trust(Trust),
}

impl ResponseData {
    /// Formats the outcome of a command; `None` if it has no data.
    pub fn from_outcome(outcome: CommandOutcome) -> Option<Self> {
        Some(match outcome {
            CommandOutcome::Done => return None,
            CommandOutcome::Accepted(accepted) => Self::Prompt(PromptDisposition {
                disposition: accepted.disposition,
                accepted,
            }),
            CommandOutcome::Dequeued {
                steering,
                follow_up,
            } => Self::Queues(Queues {
                steering,
                follow_up,
            }),
            CommandOutcome::Switched(is_done) => Self::Switched(Cancelled {
                cancelled: !is_done,
            }),
            CommandOutcome::Forked(forked) => Self::Forked(ForkedText {
                cancelled: forked.is_none(),
                text: forked.and_then(|forked| forked.text),
            }),
            CommandOutcome::Navigated(navigated) => Self::Navigated(navigated),
            CommandOutcome::Model(model) => Self::Model(model),
            CommandOutcome::CycledModel(cycled) => Self::CycledModel(cycled),
            CommandOutcome::CycledLevel(level) => {
                Self::CycledLevel(level.map(|level| Level { level }))
            }
            CommandOutcome::Compacted(compacted) => Self::Compacted(compacted),
            CommandOutcome::UserCommand(outcome) => Self::Bash(outcome),
            CommandOutcome::Exported(path) => Self::Path(Path { path }),
            CommandOutcome::Appended(entry_id) => Self::EntryId(EntryId { entry_id }),
            CommandOutcome::Reloaded(report) => Self::Reloaded(report.into()),
            CommandOutcome::Trust(outcome) => Self::Trust(Trust {
                needs_trust: outcome.needs_trust,
                answered: outcome.answered,
                trusted: outcome.trusted,
            }),
        })
    }
}

/// The id of an appended entry.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryId {
    pub entry_id: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Disposed"))]
pub struct PromptDisposition {
    pub disposition: Disposition,
    /// The run of the prompt begins when this is dropped.
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    #[expect(dead_code, reason = "its drop is its use")]
    pub accepted: Accepted,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queues {
    pub steering: Vec<String>,
    pub follow_up: Vec<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// An extension objected.
    pub cancelled: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ForkedText {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub cancelled: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Messages {
    pub messages: Vec<Arc<AgentMessage>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Models {
    pub models: Vec<Arc<Model>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Level {
    pub level: ThinkingLevel,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Levels {
    pub levels: Vec<ThinkingLevel>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Path {
    pub path: std::path::PathBuf,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ForkMessages {
    pub messages: Vec<ForkMessage>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkMessage {
    pub entry_id: String,
    pub text: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BranchMessages {
    pub messages: Vec<BranchMessage>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BranchMessage {
    pub entry_index: usize,
    pub entry_id: String,
    pub text: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Text {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Commands {
    pub commands: Vec<Command>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Command {
    #[serde(flatten)]
    pub command: SlashCommand,
    /// `sourceInfo.path`, as before 0.60.
    pub path: String,
    /// `user`, `project` or `path`, as before 0.60.
    pub location: &'static str,
}

/// Identifies this program and lists its capabilities.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Greeting {
    pub protocol_version: u32,
    pub server: Server,
    /// Capabilities that a client may ask for.
    pub capabilities: Vec<&'static str>,
    /// The known ones of the capabilities that the client asked for.
    pub enabled: Vec<&'static str>,
    /// The methods of `ctx.ui` that pi can send to a client.
    pub ui: [&'static str; 9],
    pub commands: Vec<&'static str>,
    /// Number of the last event before this response.
    pub seq: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub name: &'static str,
    pub version: &'static str,
    /// The version of the original whose clients work unchanged.
    pub compatible_with: &'static str,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Pong {
    /// Number of the last event before this response.
    pub seq: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reloaded {
    /// Extensions that were loaded from their files.
    pub loaded: Vec<String>,
    /// Extensions whose files do not load and whose last good version goes on.
    pub kept: Vec<Failed>,
    /// Extensions that ran before the reload and no longer exist.
    pub gone: Vec<String>,
    /// Extensions that are not loaded at all.
    pub failed: Vec<Failed>,
}

/// The result of the question about the project.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Trust {
    /// The folder brings something that needs trust. Otherwise no question was asked.
    pub needs_trust: bool,
    /// The user has answered. Otherwise nothing was changed.
    pub answered: bool,
    /// The resources of the folder are used now.
    pub trusted: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failed {
    pub path: String,
    pub error: String,
}

impl From<LoadReport> for Reloaded {
    fn from(report: LoadReport) -> Self {
        let failures = |all: Vec<(String, LoadFailure)>| {
            let failed = all.into_iter().map(|(path, error)| Failed {
                path,
                error: error.to_string(),
            });
            failed.collect()
        };
        Self {
            loaded: report.loaded,
            kept: failures(report.kept),
            gone: report.gone,
            failed: failures(report.failed),
        }
    }
}
