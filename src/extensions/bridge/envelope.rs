//! What comes with the calls of JavaScript, and how answers go back.

use js_runtime::HostError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Answer;
use crate::agent::event::UiMethod;
use crate::ai::nesting::{self, Of};
use crate::ai::words::words;
use crate::extensions::diagnostics::type_errors::misfit;
use crate::extensions::lifecycle::reports::Culprit;
use crate::extensions::lifecycle::stale_calls::StaleCallId;
use crate::extensions::registry::{ExtensionId, ToolRegistration};
use crate::tools::tool::ToolOutput;

/// The arguments of `enter`.
#[derive(Deserialize)]
pub(super) struct Enter {
    #[serde(flatten)]
    pub culprit: Culprit,
    /// Of an event that waits in the queue.
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
pub(super) struct Replacement {
    pub parent_session: Option<String>,
    /// What `ctx.prepareSession` made.
    pub session: Option<u64>,
    /// Whoever asked has something left to do here; JavaScript says when that is done.
    pub begin_stale_call: Option<StaleCallId>,
}

#[derive(Deserialize)]
pub(super) struct On {
    pub extension: ExtensionId,
    pub event: String,
    pub id: u64,
}

#[derive(Deserialize)]
pub(super) struct Owner {
    pub extension: ExtensionId,
    /// Asked by the handler that the queue stands still for.
    #[serde(default)]
    pub queued: bool,
    /// What its code was called for.
    #[serde(default)]
    pub during: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Name {
    pub extension: ExtensionId,
    pub name: String,
}

#[derive(Deserialize)]
pub(super) struct Token {
    pub token: u64,
}

#[derive(Deserialize)]
pub(super) struct ReportArgs {
    /// Without it the one whose code runs.
    pub extension: Option<ExtensionId>,
    pub event: String,
    /// With the stack.
    pub error: String,
    pub plain: String,
    /// Everything works all the same.
    #[serde(default)]
    pub warning: bool,
}

#[derive(Deserialize)]
pub(super) struct Update {
    pub token: u64,
    pub output: ToolOutput,
}

#[derive(Deserialize)]
pub(super) struct Since {
    pub id: String,
    pub since: usize,
}

#[derive(Deserialize)]
pub(super) struct UiName {
    pub method: String,
}

#[derive(Deserialize)]
pub(super) struct Ask {
    pub extension: ExtensionId,
    pub token: u64,
    #[serde(default)]
    pub timeout: Option<f64>,
}

/// The arguments of `ui.ask` and `ui.tell` are the members of the request.
pub(super) fn ui_method(args: &str) -> Result<UiMethod, HostError> {
    let named: UiName = parse("ctx.ui", args)?;
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

pub(in crate::extensions) fn parse<T: DeserializeOwned>(
    method: &str,
    args: &str,
) -> Result<T, HostError> {
    nesting::from_str(args, Of::HandedOn).map_err(|error| type_error(method, &words(error)))
}

/// [`parse`] for what is kept.
pub(in crate::extensions) fn parse_kept<T: DeserializeOwned>(
    method: &str,
    args: &str,
) -> Result<T, HostError> {
    nesting::from_str(args, Of::Arguments).map_err(|error| type_error(method, &words(error)))
}

/// [`parse_kept`] for what authors write by hand: the error says where. (It is not for all,
/// because it doubles what is compiled for a type: a megabyte.)
pub(in crate::extensions) fn parse_told<T: DeserializeOwned>(
    method: &str,
    args: &str,
) -> Result<T, HostError> {
    nesting::from_str(args, Of::Arguments).map_err(|error| {
        let why = misfit::<T>(args, Of::Arguments).unwrap_or_else(|| words(error));
        type_error(method, &why)
    })
}

fn type_error(method: &str, why: &str) -> HostError {
    HostError {
        class: "TypeError",
        message: format!("{method}: {why}"),
    }
}

pub(in crate::extensions) fn to_value(value: impl serde::Serialize) -> Answer {
    serde_json::to_value(value).map_err(|error| HostError::new(error.to_string()))
}

/// `undefined` is an empty text.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        value => value.to_string(),
    }
}
