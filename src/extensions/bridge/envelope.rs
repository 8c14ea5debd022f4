//! Arguments of bridge calls, how they are parsed, and how results are serialized.

use std::path::PathBuf;

use js_runtime::HostError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::BridgeResult;
use crate::diagnostics::type_errors::explain_type_error;
use crate::lifecycle::reports::Attribution;
use crate::lifecycle::stale_calls::StaleCallId;
use crate::registry::{ExtensionId, ToolRegistration};
use pi_agent::event::UiMethod;
use pi_ai::json::depth::{self, Origin};
use pi_ai::json::errors::describe;
use pi_tools::tool::ToolOutput;

/// Arguments of `enter`.
#[derive(Deserialize)]
pub(super) struct EnterArgs {
    #[serde(flatten)]
    pub attribution: Attribution,
    /// Whether the event comes from the queue.
    #[serde(default)]
    pub queued: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StaleCallArgs {
    pub stale_call: StaleCallId,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReplacementArgs {
    pub parent_session: Option<String>,
    /// Token of a session made by `ctx.prepareSession`.
    pub session: Option<u64>,
    /// Number of a stale call that starts with this replacement; `staleCall.end` ends it.
    pub begin_stale_call: Option<StaleCallId>,
}

#[derive(Deserialize)]
pub(super) struct HandlerArgs {
    pub extension: ExtensionId,
    pub event: String,
    pub id: u64,
}

#[derive(Deserialize)]
pub(super) struct CallerArgs {
    pub extension: ExtensionId,
    /// Whether the caller is the handler that blocks the event queue.
    #[serde(default)]
    pub queued: bool,
    /// The event, tool or command that the calling code runs for.
    #[serde(default)]
    pub during: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct FlagArgs {
    pub extension: ExtensionId,
    pub name: String,
}

#[derive(Deserialize)]
pub(super) struct WatchArgs {
    pub extension: ExtensionId,
    pub path: PathBuf,
}

#[derive(Deserialize)]
pub(super) struct TokenArgs {
    pub token: u64,
}

#[derive(Deserialize)]
pub(super) struct ReportArgs {
    /// Defaults to the extension whose code runs.
    pub extension: Option<ExtensionId>,
    pub event: String,
    /// The thrown value, with its stack.
    pub error: String,
    pub plain: String,
    /// Whether the extension still works.
    #[serde(default)]
    pub warning: bool,
}

#[derive(Deserialize)]
pub(super) struct ToolUpdateArgs {
    pub token: u64,
    pub output: ToolOutput,
}

#[derive(Deserialize)]
pub(super) struct SinceArgs {
    pub id: String,
    pub since: usize,
}

#[derive(Deserialize)]
pub(super) struct UiMethodName {
    pub method: String,
}

#[derive(Deserialize)]
pub(super) struct UiRequestArgs {
    pub extension: ExtensionId,
    pub token: u64,
    #[serde(default)]
    pub timeout: Option<f64>,
}

/// Parses the arguments of `ui.request` and `ui.show`, which are the members of the
/// request.
pub(super) fn ui_method(args: &str) -> Result<UiMethod, HostError> {
    let named: UiMethodName = parse("ctx.ui", args)?;
    parse(&format!("ctx.ui.{}", named.method), args)
}

pub(super) fn check_tool(tool: &ToolRegistration) -> Result<(), HostError> {
    if tool.name.is_empty() {
        return Err(HostError::new("pi.registerTool: the tool has no name"));
    }
    if !tool.parameters.is_object() {
        return Err(HostError::new(format!(
            "pi.registerTool: parameters of \"{}\" must be a JSON schema, such as \
             Type.Object({{}}) from @sinclair/typebox",
            tool.name
        )));
    }
    Ok(())
}

pub(crate) fn parse<T: DeserializeOwned>(method: &str, args: &str) -> Result<T, HostError> {
    depth::from_str(args, Origin::Forwarded).map_err(|error| type_error(method, &describe(error)))
}

/// Like [`parse`], for data that is stored: its nesting limit is stricter.
pub(crate) fn parse_stored<T: DeserializeOwned>(method: &str, args: &str) -> Result<T, HostError> {
    depth::from_str(args, Origin::CallArguments)
        .map_err(|error| type_error(method, &describe(error)))
}

/// Like [`parse_stored`], for data that authors write by hand: the error names the member.
/// Other calls do not use it because it doubles the code compiled for a type (about 1 MB in
/// total).
pub(crate) fn parse_explained<T: DeserializeOwned>(
    method: &str,
    args: &str,
) -> Result<T, HostError> {
    depth::from_str(args, Origin::CallArguments).map_err(|error| {
        let why =
            explain_type_error::<T>(args, Origin::CallArguments).unwrap_or_else(|| describe(error));
        type_error(method, &why)
    })
}

fn type_error(method: &str, why: &str) -> HostError {
    HostError {
        class: "TypeError",
        message: format!("{method}: {why}"),
    }
}

pub(crate) fn to_value(value: impl serde::Serialize) -> BridgeResult {
    serde_json::to_value(value).map_err(|error| HostError::new(error.to_string()))
}

/// Serializes a result; `undefined` becomes an empty string.
pub(super) fn json_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => value.to_string(),
    }
}
