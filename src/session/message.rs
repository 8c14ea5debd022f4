//! The messages of a session: those that go to a model, and those that only the
//! agent knows and that become user messages on their way there.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use pi_ai::json::lenient::{bool_from_truthy, known, or_default};
use pi_ai::message::{
    AssistantMessage, ContentBlock, Message, ToolResultMessage, UserContent, UserMessage,
    milliseconds, present,
};
use pi_ai::normalize::normalize;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum AgentMessage {
    User(UserMessage),
    Assistant(AssistantMessage),
    ToolResult(ToolResultMessage),
    BashExecution(BashExecutionMessage),
    Custom(CustomMessage),
    BranchSummary(BranchSummaryMessage),
    CompactionSummary(CompactionSummaryMessage),
}

impl AgentMessage {
    pub const ROLES: [&str; 7] = [
        "user",
        "assistant",
        "toolResult",
        "bashExecution",
        "custom",
        "branchSummary",
        "compactionSummary",
    ];

    /// Reads a message of an extension, whose author may have written it by hand.
    pub fn read(value: &Value) -> Result<Self, serde_json::Error> {
        Self::deserialize(value).or_else(|error| normalized(value.clone()).ok_or(error))
    }
}

/// A message that another program wrote in another form; `None` if it cannot be understood.
pub(crate) fn normalized(mut message: Value) -> Option<AgentMessage> {
    normalize(&mut message);
    let members = message.as_object_mut()?;
    match members.get("role").and_then(Value::as_str) {
        Some("bashExecution") => {
            make_strings(members, &["command", "output"]);
            for member in ["cancelled", "truncated"] {
                let is_true = members.get(member) == Some(&Value::Bool(true));
                members.insert(member.into(), is_true.into());
            }
            keep_if(members, "exitCode", |code| {
                known::<i32>(code.clone()).is_some()
            });
            keep_if(members, "fullOutputPath", Value::is_string);
            keep_if(members, "excludeFromContext", Value::is_boolean);
        }
        Some("custom") => return normalized_custom(message).map(AgentMessage::Custom),
        Some("branchSummary") => make_strings(members, &["summary", "fromId"]),
        Some("compactionSummary") => {
            make_strings(members, &["summary"]);
            let tokens = members.get("tokensBefore").and_then(Value::as_f64);
            members.insert("tokensBefore".into(), (tokens.unwrap_or(0.0) as u64).into());
        }
        _ => {}
    }
    serde_json::from_value(message).ok()
}

/// Like [`normalized`], for a message or an entry of an extension.
pub(crate) fn normalized_custom(mut message: Value) -> Option<CustomMessage> {
    let members = message.as_object_mut()?;
    make_strings(members, &["customType"]);
    // Content of a user message has the same form.
    let role = members.insert("role".into(), "user".into());
    normalize(&mut message);
    let members = message.as_object_mut()?;
    if let Some(role) = role {
        members.insert("role".into(), role);
    }
    serde_json::from_value(message).ok()
}

/// Makes a string of each member: a number as JavaScript writes it, any other value becomes
/// empty.
fn make_strings(members: &mut Map<String, Value>, names: &[&str]) {
    for &name in names {
        let text = match members.get(name) {
            Some(Value::String(_)) => continue,
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        members.insert(name.into(), text.into());
    }
}

fn keep_if(members: &mut Map<String, Value>, name: &str, is_good: impl Fn(&Value) -> bool) {
    if members.get(name).is_some_and(|value| !is_good(value)) {
        members.remove(name);
    }
}

/// A shell command that the user ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    pub command: String,
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub cancelled: bool,
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    #[serde(default, deserialize_with = "milliseconds")]
    pub timestamp: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
}

/// A message that an extension added to the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    // Empty for a message without a type, as in the file and on the wire.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub custom_type: String,
    #[serde(default, deserialize_with = "or_default")]
    pub content: UserContent,
    /// Whether the message is shown to the user.
    #[serde(default, deserialize_with = "bool_from_truthy")]
    pub display: bool,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub details: Option<Value>,
    #[serde(default, deserialize_with = "milliseconds")]
    pub timestamp: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryMessage {
    pub summary: String,
    pub from_id: String,
    #[serde(default, deserialize_with = "milliseconds")]
    pub timestamp: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummaryMessage {
    pub summary: String,
    pub tokens_before: u64,
    #[serde(default, deserialize_with = "milliseconds")]
    pub timestamp: i64,
}

impl AgentMessage {
    pub fn role(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::BranchSummary(_) => "branchSummary",
            Self::CompactionSummary(_) => "compactionSummary",
        }
    }

    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the message that a model receives; `None` if the context leaves it out.
    pub fn to_llm(&self) -> Option<Message> {
        let user = |text: String, timestamp| {
            Some(Message::User(UserMessage {
                content: UserContent::Blocks(vec![ContentBlock::text(text)]),
                timestamp,
            }))
        };
        match self {
            Self::User(message) => Some(Message::User(message.clone())),
            Self::Assistant(message) => Some(Message::Assistant(message.clone())),
            Self::ToolResult(message) => Some(Message::ToolResult(message.clone())),
            Self::Custom(custom) => Some(Message::User(UserMessage {
                content: match &custom.content {
                    UserContent::Text(text) => {
                        UserContent::Blocks(vec![ContentBlock::text(text.clone())])
                    }
                    blocks => blocks.clone(),
                },
                timestamp: custom.timestamp,
            })),
            Self::BashExecution(bash) if bash.exclude_from_context == Some(true) => None,
            Self::BashExecution(bash) => user(bash.to_text(), bash.timestamp),
            Self::BranchSummary(branch) => user(
                format!(
                    "The following is a summary of a branch that this conversation came back \
                     from:\n\n<summary>\n{}</summary>",
                    branch.summary
                ),
                branch.timestamp,
            ),
            Self::CompactionSummary(compaction) => user(
                format!(
                    "The conversation history before this point was compacted into the following \
                     summary:\n\n<summary>\n{}\n</summary>",
                    compaction.summary
                ),
                compaction.timestamp,
            ),
        }
    }
}

impl BashExecutionMessage {
    fn to_text(&self) -> String {
        let mut text = format!("Ran `{}`\n", self.command);
        if self.output.is_empty() {
            text.push_str("(no output)");
        } else {
            text.push_str(&format!("```\n{}\n```", self.output));
        }
        if self.cancelled {
            text.push_str("\n\n(command cancelled)");
        } else if let Some(code) = self.exit_code.filter(|code| *code != 0) {
            text.push_str(&format!("\n\nCommand exited with code {code}"));
        }
        if self.truncated
            && let Some(path) = &self.full_output_path
        {
            text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
        }
        text
    }
}
