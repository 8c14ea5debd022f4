//! Arguments of the methods of `pi` and `ctx` that act on the session. The application executes
//! these methods.

use js_runtime::HostError;
use serde::Deserialize;
use serde_json::Value;

use super::session_api::{NavigateOptions, SendOptions};
use crate::bridge::parse_explained;
use crate::diagnostics::type_errors::misspelt_block_type;
use crate::registry::ExtensionId;
use pi_ai::message::{UserContent, present};
use pi_ai::model::ThinkingLevel;
use pi_session::message::CustomMessage;

/// Arguments of all methods; each reads its own.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionArgs {
    extension: Option<ExtensionId>,
    message: Option<CustomMessage>,
    content: Option<UserContent>,
    options: Option<SendOptions>,
    pub custom_type: Option<String>,
    /// `null` is valid data.
    #[serde(deserialize_with = "present")]
    pub data: Option<Value>,
    pub name: Option<String>,
    pub names: Option<Vec<String>>,
    pub entry_id: Option<String>,
    pub label: Option<String>,
    level: Option<String>,
    pub method: Option<String>,
    pub provider: Option<String>,
    pub id: Option<String>,
    pub model: Option<Value>,
    pub path: Option<String>,
    pub position: Option<String>,
    pub parent_session: Option<String>,
    pub custom_instructions: Option<String>,
    pub target_id: Option<String>,
    pub navigation: Option<NavigateOptions>,
    pub run: Option<u64>,
    pub queued: bool,
}

impl SessionArgs {
    /// Parses the arguments of `method`. Fails with a `TypeError` that names the wrong member.
    pub fn parse(method: &str, args: &str) -> Result<Self, HostError> {
        let arguments: Option<Self> = parse_explained(method, args)?;
        Ok(arguments.unwrap_or_default())
    }

    /// Takes the message of `pi.sendMessage` and `session.appendMessage`.
    pub fn message(&mut self, method: &str) -> Result<CustomMessage, HostError> {
        required(method, "message", self.message.take())
    }

    /// Takes the content of `pi.sendUserMessage`. Fails if blocks have unknown types.
    pub fn content(&mut self, method: &str) -> Result<UserContent, HostError> {
        let content = required(method, "content", self.content.take())?;
        check_block_types(method, &content)?;
        Ok(content)
    }

    /// Returns the options of `pi.sendMessage` and `pi.sendUserMessage`, with the extension that
    /// calls.
    pub fn send_options(&self) -> SendOptions {
        SendOptions {
            from: self.extension,
            ..self.options.unwrap_or_default()
        }
    }

    /// Returns the level of `pi.setThinkingLevel`.
    pub fn level(&mut self, method: &str) -> Result<ThinkingLevel, HostError> {
        let level = required(method, "level", self.level.take())?;
        parse_thinking_level(&level).map_err(|error| HostError {
            class: "TypeError",
            message: format!("{method}: level: {}", error.message),
        })
    }
}

/// Returns the value of a member that `method` cannot do without.
pub fn required<T>(method: &str, member: &str, value: Option<T>) -> Result<T, HostError> {
    value.ok_or_else(|| HostError {
        class: "TypeError",
        message: format!("{method}: {member} is missing"),
    })
}

/// Fails if blocks of the content have unknown types.
pub fn check_block_types(method: &str, content: &UserContent) -> Result<(), HostError> {
    let problem = match content {
        UserContent::Blocks(blocks) => misspelt_block_type(blocks),
        UserContent::Text(_) => None,
    };
    let type_error = |problem| HostError {
        class: "TypeError",
        message: format!("{method}: {problem}"),
    };
    problem.map(type_error).map_or(Ok(()), Err)
}

/// Parses a thinking level of an extension.
pub(crate) fn parse_thinking_level(name: &str) -> Result<ThinkingLevel, HostError> {
    match name {
        // An alias that some APIs use for "off".
        "none" => Ok(ThinkingLevel::Off),
        name => ThinkingLevel::parse(name).ok_or_else(|| {
            let known = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
            HostError::new(format!(
                "There is no thinking level \"{name}\". The levels are: {known}"
            ))
        }),
    }
}
