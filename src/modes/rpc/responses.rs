//! Responses, and the `data` of every command that has any.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;

use pi_agent::AgentMessage;
#[cfg(test)]
use pi_agent::event::{Entry, Nullable};
use pi_ai::model::{Model, ThinkingLevel};
use pi_app::{
    BashOutcome, CycledModel, Disposition, ErrorCode, SessionState, SessionStats, SlashCommand,
};
use pi_compaction::Compacted;
use pi_extensions::{LoadReport, Statistics};

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

/// The `data` by command. Commands that are not listed have no `data`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
#[cfg_attr(
    test,
    schemars(!untagged, tag = "command", content = "data", rename_all = "snake_case")
)]
pub enum ResponseData {
    Prompt(PromptDisposition),
    Steer(PromptDisposition),
    FollowUp(PromptDisposition),
    ClearQueue(Queues),
    NewSession(Cancelled),
    SwitchSession(Cancelled),
    Clone(Cancelled),
    Fork(ForkedText),
    Branch(ForkedText),
    GetState(Box<SessionState>),
    GetMessages(Messages),
    SetModel(Arc<Model>),
    CycleModel(Option<CycledModel>),
    GetAvailableModels(Models),
    CycleThinkingLevel(Option<Level>),
    GetAvailableThinkingLevels(Levels),
    Compact(Compacted),
    Bash(BashOutcome),
    GetSessionStats(SessionStats),
    ExportHtml(Path),
    GetForkMessages(ForkMessages),
    GetBranchMessages(BranchMessages),
    GetEntries(#[cfg_attr(test, schemars(with = "Entries"))] Box<RawValue>),
    GetTree(#[cfg_attr(test, schemars(with = "Tree"))] Box<RawValue>),
    GetLastAssistantText(Text),
    GetCommands(Commands),
    Hello(Greeting),
    Ping(Pong),
    GetEvents(#[cfg_attr(test, schemars(with = "Events"))] Box<RawValue>),
    GetExtensionStats(Statistics),
    Reload(Reloaded),
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "Disposed"))]
pub struct PromptDisposition {
    pub disposition: Disposition,
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
    pub loaded: Vec<String>,
    pub failed: Vec<Failed>,
    /// The extensions from before stay: one that runs could not be loaded again.
    pub kept_old: bool,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failed {
    pub path: String,
    pub error: String,
}

impl From<LoadReport> for Reloaded {
    fn from(report: LoadReport) -> Self {
        let failed = report.failed.into_iter();
        let failed = failed.map(|(path, error)| Failed {
            path,
            error: error.to_string(),
        });
        Self {
            loaded: report.loaded,
            failed: failed.collect(),
            kept_old: report.kept_old,
        }
    }
}

/// Entries as they are in the file.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "used for its schema only")]
struct Entries {
    entries: Vec<Entry>,
    leaf_id: Nullable,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "used for its schema only")]
struct Tree {
    tree: Vec<TreeNode>,
    leaf_id: Nullable,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "used for its schema only")]
struct TreeNode {
    entry: Entry,
    children: Vec<TreeNode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_timestamp: Option<String>,
}

/// Events as they were written, except that `message_update` lacks the message so far.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "used for its schema only")]
struct Events {
    events: Vec<crate::rpc::schema::EventLine>,
    /// Number of the last event.
    latest: u64,
}
