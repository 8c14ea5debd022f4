//! Whether what a handler leaves in an event can be used. It is looked at before the
//! next handler sees it: an answer that makes no sense costs nobody else's.

use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::Value;

use crate::agent::AgentMessage;
use crate::ai::message::{ContentBlock, ImageContent};

/// Member and value; the error says what is wrong with it.
pub type Fits = fn(&str, &Value) -> Result<(), String>;

pub const fn anything(_member: &str, _value: &Value) -> Result<(), String> {
    Ok(())
}

pub fn of_tool_result(member: &str, value: &Value) -> Result<(), String> {
    match member {
        "content" => each::<ContentBlock>(member, value),
        "isError" => is::<bool>(member, value),
        _ => Ok(()),
    }
}

pub fn of_input(member: &str, value: &Value) -> Result<(), String> {
    match member {
        "text" => is::<String>(member, value),
        _ => each::<ImageContent>(member, value),
    }
}

pub fn of_tool_call(member: &str, value: &Value) -> Result<(), String> {
    is::<serde_json::Map<String, Value>>(member, value)
}

pub fn of_before_agent_start(member: &str, value: &Value) -> Result<(), String> {
    match member {
        "systemPrompt" => is::<String>(member, value),
        _ => Ok(()),
    }
}

pub fn of_context(member: &str, value: &Value) -> Result<(), String> {
    messages(member, value).map(drop)
}

/// What handlers have made of a list of messages.
pub fn messages(member: &str, value: &Value) -> Result<Vec<AgentMessage>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("`{member}` must be a list"))?;
    let read = list.iter().enumerate().map(|(index, message)| {
        AgentMessage::read(message)
            .map_err(|error| format!("`{member}[{index}]` cannot be used: {error}"))
    });
    read.collect()
}

/// A message in the place of one of `role`.
pub fn message(role: &str, value: &Value) -> Result<AgentMessage, String> {
    let message =
        AgentMessage::read(value).map_err(|error| format!("`message` cannot be used: {error}"))?;
    match message.role() == role {
        true => Ok(message),
        false => Err(format!(
            "a message of the role \"{role}\" cannot become one of \"{}\"",
            message.role()
        )),
    }
}

fn is<T: DeserializeOwned>(member: &str, value: &Value) -> Result<(), String> {
    let read = T::deserialize(value.into_deserializer());
    read.map(drop)
        .map_err(|error| format!("`{member}` cannot be used: {error}"))
}

fn each<T: DeserializeOwned>(member: &str, value: &Value) -> Result<(), String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("`{member}` must be a list"))?;
    for (index, one) in list.iter().enumerate() {
        is::<T>(&format!("{member}[{index}]"), one)?;
    }
    Ok(())
}
