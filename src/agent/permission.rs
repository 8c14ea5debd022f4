//! Questions to the user whether a tool call may run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The question to the user whether a tool call may run. Extensions neither see nor answer it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    pub id: String,
    pub tool: String,
    pub tool_call_id: String,
    /// The input that runs if the call is allowed.
    pub input: Value,
    /// A short text about the call. The command of `bash` may have several lines.
    pub title: String,
    /// The child session that makes the call, by its name or else its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child_session: Option<String>,
    /// Files that the call is known to use.
    pub locations: Vec<PermissionLocation>,
    /// The change of the file, as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<PermissionAnnotations>,
    pub options: Vec<PermissionOption>,
    /// The reason of the question: the rule, or what was not understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rules that `allow_session` and `allow_always` add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionLocation {
    /// An absolute path.
    pub path: String,
}

/// Facts about the tool, by the names of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionAnnotations {
    pub read_only_hint: bool,
    pub destructive_hint: bool,
}

/// An answer to a [`PermissionRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PermissionOption {
    AllowOnce,
    /// Allow this call also later in this session.
    AllowSession,
    /// Write rules that allow this call to the user's settings.
    AllowAlways,
    Deny,
}
