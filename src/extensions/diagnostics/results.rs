//! Whether what a handler leaves in an event can be used. It is looked at before the
//! next handler sees it: an answer that makes no sense costs nobody else's.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::{Map, Value};

use crate::agent::AgentMessage;
use crate::ai::message::{ContentBlock, ImageContent};
use crate::ai::words::words;
use crate::tools::shell_command::UserCommandResult;

use super::type_errors::misspelt_block;

/// What is taken of a value.
pub enum Fit {
    All(Value),
    /// And what is wrong with the rest.
    Part(Value, String),
    Nothing(String),
}

/// Looks at a member and its value.
pub type Fits = fn(&str, Value) -> Fit;

pub const ANYTHING: Fits = |_, value| Fit::All(value);

/// Looks at an answer as a whole; the error says why it is not taken.
pub type Makes = fn(&Map<String, Value>) -> Result<(), String>;

pub const SENSE: Makes = |_| Ok(());

/// What a `session_before_compact` handler gives instead of a summary of ours.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GivenCompaction {
    pub summary: String,
    pub first_kept_entry_id: Option<String>,
    pub tokens_before: Option<f64>,
    pub details: Option<Value>,
}

pub fn a_compaction(answer: &Map<String, Value>) -> Result<(), String> {
    if answer.get("cancel") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    given::<GivenCompaction>(answer, "compaction")
}

pub fn a_command_result(answer: &Map<String, Value>) -> Result<(), String> {
    given::<UserCommandResult>(answer, "result")
}

fn given<T: DeserializeOwned>(answer: &Map<String, Value>, member: &str) -> Result<(), String> {
    match answer.get(member).filter(|value| !value.is_null()) {
        Some(value) => is::<T>(member, value),
        None => Ok(()),
    }
}

pub fn an_input(answer: &Map<String, Value>) -> Result<(), String> {
    let action = match answer.get("action") {
        Some(Value::String(action)) => action.as_str(),
        Some(other) if !other.is_null() => return Err(unknown_action(&other.to_string())),
        _ if answer.contains_key("text") => {
            return Err("`action` is missing: \"transform\" takes the text".to_owned());
        }
        _ => return Ok(()),
    };
    match action {
        "transform" if answer.get("text").is_none_or(Value::is_null) => {
            Err("`text` is missing, which \"transform\" takes".to_owned())
        }
        "transform" | "continue" | "handled" => Ok(()),
        other => Err(unknown_action(&format!("\"{other}\""))),
    }
}

fn unknown_action(name: &str) -> String {
    format!("there is no `action` {name}: it is \"continue\", \"transform\" or \"handled\"")
}

pub fn of_tool_result(member: &str, value: Value) -> Fit {
    match (member, value) {
        ("content", Value::Array(blocks)) => known_blocks(blocks),
        ("content", value) => Fit::of(value, |_| Err("`content` must be a list".to_owned())),
        ("isError", value) => Fit::of(value, |value| is::<bool>(member, value)),
        ("usage", value) => Fit::of(value, |value| is::<Map<String, Value>>(member, value)),
        (_, value) => Fit::All(value),
    }
}

/// A block that is none cannot be sent; what a handler made of the others holds.
fn known_blocks(blocks: Vec<Value>) -> Fit {
    part_of(blocks, |index, block| {
        let block = read::<ContentBlock>(&format!("content[{index}]"), block)?;
        misspelt_block(index, &block).map_or(Ok(()), Err)
    })
}

/// Those that fit, and what is wrong with the first that does not.
fn part_of(list: Vec<Value>, check: impl Fn(usize, &Value) -> Result<(), String>) -> Fit {
    let mut problem = None;
    let mut fitting = Vec::with_capacity(list.len());
    for (index, one) in list.into_iter().enumerate() {
        match check(index, &one) {
            Ok(()) => fitting.push(one),
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    let fitting = Value::Array(fitting);
    match problem {
        None => Fit::All(fitting),
        Some(problem) => Fit::Part(fitting, problem),
    }
}

pub fn of_input(member: &str, value: Value) -> Fit {
    Fit::of(value, |value| match member {
        "text" => is::<String>(member, value),
        _ => each::<ImageContent>(member, value),
    })
}

/// Of members that are objects.
pub fn object(member: &str, value: Value) -> Fit {
    Fit::of(value, |value| {
        is::<serde_json::Map<String, Value>>(member, value)
    })
}

pub fn of_before_agent_start(member: &str, value: Value) -> Fit {
    Fit::of(value, |value| match member {
        "systemPrompt" => is::<String>(member, value),
        _ => Ok(()),
    })
}

/// Messages of roles that packages have for themselves stay, for the handlers that know
/// them.
pub fn of_context(member: &str, value: Value) -> Fit {
    match value {
        Value::Array(list) => part_of(list, |index, one| {
            one_message(&format!("{member}[{index}]"), one).map(drop)
        }),
        _ => Fit::Nothing(format!("`{member}` must be a list")),
    }
}

impl Fit {
    fn of(value: Value, check: impl FnOnce(&Value) -> Result<(), String>) -> Self {
        match check(&value) {
            Ok(()) => Self::All(value),
            Err(problem) => Self::Nothing(problem),
        }
    }
}

/// What handlers have left of a list of messages; `None` if it is no list.
pub fn messages(value: &Value) -> Option<Vec<AgentMessage>> {
    let read = value.as_array()?.iter();
    // What does not fit was not taken.
    Some(read.filter_map(|one| one_message("", one).ok()?).collect())
}

/// The messages of the role `system` in such a list, which belong to the system prompt.
pub fn system_messages(value: &Value) -> Vec<Value> {
    let list = value.as_array().into_iter().flatten();
    list.filter(|message| message["role"] == "system")
        .cloned()
        .collect()
}

/// `None` of a role that nobody here knows: models are not told of it.
fn one_message(place: &str, value: &Value) -> Result<Option<AgentMessage>, String> {
    let role = value["role"].as_str();
    if role.is_some_and(|role| !AgentMessage::ROLES.contains(&role)) {
        return Ok(None);
    }
    let read = AgentMessage::read(value);
    read.map(Some)
        .map_err(|error| format!("`{place}` cannot be used: {}", words(error)))
}

/// A message in the place of one of `role`.
pub fn message(role: &str, value: &Value) -> Result<AgentMessage, String> {
    let message = AgentMessage::read(value)
        .map_err(|error| format!("`message` cannot be used: {}", words(error)))?;
    match message.role() == role {
        true => Ok(message),
        false => Err(format!(
            "a message of the role \"{role}\" cannot become one of \"{}\"",
            message.role()
        )),
    }
}

fn is<T: DeserializeOwned>(member: &str, value: &Value) -> Result<(), String> {
    read::<T>(member, value).map(drop)
}

/// The value of a member; the error says why it is none.
pub(in crate::extensions) fn read<T: DeserializeOwned>(
    member: &str,
    value: &Value,
) -> Result<T, String> {
    T::deserialize(value.into_deserializer())
        .map_err(|error| format!("`{member}` cannot be used: {}", words(error)))
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
