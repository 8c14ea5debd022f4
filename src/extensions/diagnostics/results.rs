//! Checks what handlers leave in an event, before the next handler sees it. An unusable
//! result does not affect the results of other handlers.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::{Map, Value};

use pi_agent::AgentMessage;
use pi_ai::json::errors::describe;
use pi_ai::message::{ContentBlock, ImageContent};
use pi_tools::command::run::UserCommandResult;

use super::type_errors::misspelt_type_at;

/// The accepted part of a value.
pub enum Accepted {
    All(Value),
    /// The accepted part, and the problem with the rest.
    Part(Value, String),
    Nothing(String),
}

/// Checks a member, by its name and value.
pub type MemberCheck = fn(&str, Value) -> Accepted;

pub const ANY_MEMBER: MemberCheck = |_, value| Accepted::All(value);

/// Checks a result as a whole; the error says why it is rejected.
pub type ResultCheck = fn(&Map<String, Value>) -> Result<(), String>;

pub const ANY_RESULT: ResultCheck = |_| Ok(());

/// A compaction that a `session_before_compact` handler provides.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    pub summary: String,
    pub first_kept_entry_id: Option<String>,
    pub tokens_before: Option<f64>,
    pub details: Option<Value>,
}

pub fn check_compaction(result: &Map<String, Value>) -> Result<(), String> {
    if result.get("cancel") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    check_optional_member::<CompactionResult>(result, "compaction")
}

pub fn check_project_trust(result: &Map<String, Value>) -> Result<(), String> {
    let trusted = result.get("trusted");
    match trusted.and_then(Value::as_str) {
        Some("yes" | "no" | "undecided") => Ok(()),
        _ => Err(format!(
            "trusted must be \"yes\", \"no\" or \"undecided\", not {}",
            trusted.unwrap_or(&Value::Null)
        )),
    }
}

pub fn check_command_result(result: &Map<String, Value>) -> Result<(), String> {
    check_optional_member::<UserCommandResult>(result, "result")
}

fn check_optional_member<T: DeserializeOwned>(
    result: &Map<String, Value>,
    member: &str,
) -> Result<(), String> {
    match result.get(member).filter(|value| !value.is_null()) {
        Some(value) => check_type::<T>(member, value),
        None => Ok(()),
    }
}

pub fn check_input(result: &Map<String, Value>) -> Result<(), String> {
    let action = match result.get("action") {
        Some(Value::String(action)) => action.as_str(),
        Some(other) if !other.is_null() => return Err(unknown_action(&other.to_string())),
        _ if result.contains_key("text") => {
            return Err("`action` is missing: \"transform\" takes the text".to_owned());
        }
        _ => return Ok(()),
    };
    match action {
        "transform" if result.get("text").is_none_or(Value::is_null) => {
            Err("`text` is missing, which \"transform\" takes".to_owned())
        }
        "transform" | "continue" | "handled" => Ok(()),
        other => Err(unknown_action(&format!("\"{other}\""))),
    }
}

fn unknown_action(name: &str) -> String {
    format!("there is no `action` {name}: it is \"continue\", \"transform\" or \"handled\"")
}

pub fn check_tool_result_member(member: &str, value: Value) -> Accepted {
    match (member, value) {
        ("content", Value::Array(blocks)) => check_blocks(blocks),
        ("content", value) => {
            Accepted::check(value, |_| Err("`content` must be a list".to_owned()))
        }
        ("isError", value) => Accepted::check(value, |value| check_type::<bool>(member, value)),
        ("usage", value) => Accepted::check(value, |value| {
            check_type::<Map<String, Value>>(member, value)
        }),
        (_, value) => Accepted::All(value),
    }
}

/// Drops unknown blocks, which cannot be sent, and keeps the others.
fn check_blocks(blocks: Vec<Value>) -> Accepted {
    filter_valid(blocks, |index, block| {
        let block = read_member::<ContentBlock>(&format!("content[{index}]"), block)?;
        misspelt_type_at(index, &block).map_or(Ok(()), Err)
    })
}

/// Keeps the valid elements and returns the first problem.
fn filter_valid(list: Vec<Value>, check: impl Fn(usize, &Value) -> Result<(), String>) -> Accepted {
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
        None => Accepted::All(fitting),
        Some(problem) => Accepted::Part(fitting, problem),
    }
}

pub fn check_input_member(member: &str, value: Value) -> Accepted {
    Accepted::check(value, |value| match member {
        "text" => check_type::<String>(member, value),
        _ => check_each::<ImageContent>(member, value),
    })
}

/// Accepts objects only.
pub fn check_object(member: &str, value: Value) -> Accepted {
    Accepted::check(value, |value| {
        check_type::<serde_json::Map<String, Value>>(member, value)
    })
}

pub fn check_agent_start_member(member: &str, value: Value) -> Accepted {
    Accepted::check(value, |value| match member {
        "systemPrompt" => check_type::<String>(member, value),
        _ => Ok(()),
    })
}

/// Accepts messages. Those of unknown roles stay, for handlers of packages that know them.
pub fn check_messages(member: &str, value: Value) -> Accepted {
    match value {
        Value::Array(list) => filter_valid(list, |index, one| {
            read_message(&format!("{member}[{index}]"), one).map(drop)
        }),
        _ => Accepted::Nothing(format!("`{member}` must be a list")),
    }
}

impl Accepted {
    fn check(value: Value, check: impl FnOnce(&Value) -> Result<(), String>) -> Self {
        match check(&value) {
            Ok(()) => Self::All(value),
            Err(problem) => Self::Nothing(problem),
        }
    }
}

/// Reads the messages that handlers have left; `None` if the value is not a list.
pub fn read_messages(value: &Value) -> Option<Vec<AgentMessage>> {
    let read = value.as_array()?.iter();
    // Invalid messages were rejected before.
    Some(read.filter_map(|one| read_message("", one).ok()?).collect())
}

/// Returns the messages of the role `system` in a list; they belong to the system prompt.
pub fn system_messages(value: &Value) -> Vec<Value> {
    let list = value.as_array().into_iter().flatten();
    list.filter(|message| message["role"] == "system")
        .cloned()
        .collect()
}

/// Reads a message. `None` for an unknown role, which models do not see.
fn read_message(place: &str, value: &Value) -> Result<Option<AgentMessage>, String> {
    let role = value["role"].as_str();
    if role.is_some_and(|role| !AgentMessage::ROLES.contains(&role)) {
        return Ok(None);
    }
    let read = AgentMessage::read(value);
    read.map(Some)
        .map_err(|error| format!("`{place}` cannot be used: {}", describe(error)))
}

/// Reads a message that replaces one of `role`.
pub fn read_replacement(role: &str, value: &Value) -> Result<AgentMessage, String> {
    let message = AgentMessage::read(value)
        .map_err(|error| format!("`message` cannot be used: {}", describe(error)))?;
    match message.role() == role {
        true => Ok(message),
        false => Err(format!(
            "a message of the role \"{role}\" cannot become one of \"{}\"",
            message.role()
        )),
    }
}

fn check_type<T: DeserializeOwned>(member: &str, value: &Value) -> Result<(), String> {
    read_member::<T>(member, value).map(drop)
}

/// Reads the value of a member; the error says why it is invalid.
pub(crate) fn read_member<T: DeserializeOwned>(member: &str, value: &Value) -> Result<T, String> {
    T::deserialize(value.into_deserializer())
        .map_err(|error| format!("`{member}` cannot be used: {}", describe(error)))
}

fn check_each<T: DeserializeOwned>(member: &str, value: &Value) -> Result<(), String> {
    let list = value
        .as_array()
        .ok_or_else(|| format!("`{member}` must be a list"))?;
    for (index, one) in list.iter().enumerate() {
        check_type::<T>(&format!("{member}[{index}]"), one)?;
    }
    Ok(())
}
