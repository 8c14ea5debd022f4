//! Decides on the next answer from the conversation so far: tool calls for a request, or a text
//! about their results.

use super::calls::{Call, call_for};
use super::intent::{Intent, parse_intents};
use super::texts;
use crate::message::{Message, StopReason, ToolCall, ToolResultMessage, UserMessage};
use crate::stream::Request;

/// One answer of the model.
#[derive(Debug, PartialEq)]
pub(super) struct Turn {
    pub text: String,
    pub calls: Vec<Call>,
}

pub(super) fn next(request: &Request) -> Turn {
    let open = since_last_answer(&request.messages);
    let results = results(open);
    let new: Vec<&UserMessage> = open.iter().rev().map_while(as_user).collect();
    let tools: Vec<&str> = request
        .tool_specs()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();

    let prompt: Vec<String> = new.iter().rev().map(|user| user.content.text()).collect();
    if prompt.is_empty() && !results.is_empty() {
        return Turn::text_only(texts::from_results(&results));
    }
    let prompt = prompt.join("\n");
    if let Some(summary) = texts::summary(&prompt) {
        return Turn::text_only(summary);
    }
    let intents = parse_intents(&prompt, &tools);
    match (intents.as_slice(), results.as_slice()) {
        ([], []) => Turn::text_only(texts::introduction(&tools)),
        ([], results) => Turn::text_only(texts::from_results(results)),
        (intents, _) => turn_for(intents, &tools),
    }
}

impl Turn {
    fn text_only(text: String) -> Self {
        Self {
            text,
            calls: Vec::new(),
        }
    }
}

fn turn_for(intents: &[Intent], tools: &[&str]) -> Turn {
    let mut calls = Vec::new();
    let mut plan = Vec::new();
    let mut missing = Vec::new();
    for intent in intents {
        match call_for(intent, tools) {
            Ok(call) => {
                calls.push(call);
                plan.push(texts::describe_intent(intent));
            }
            Err(tool) => missing.push(texts::missing(intent, &tool)),
        }
    }
    let mut text = Vec::new();
    if !plan.is_empty() {
        text.push(format!("I'll {}.", texts::join_list(&plan)));
    }
    text.extend(missing);
    Turn {
        text: text.join("\n\n"),
        calls,
    }
}

/// Returns the messages after the last final or broken-off answer: a request with its tool calls,
/// and any requests that were queued meanwhile.
fn since_last_answer(messages: &[Message]) -> &[Message] {
    let is_answer = |message: &Message| match message {
        Message::Assistant(message) => {
            message.tool_calls().next().is_none() || message.stop_reason != StopReason::ToolUse
        }
        _ => false,
    };
    let last = messages.iter().rposition(is_answer);
    &messages[last.map_or(0, |index| index + 1)..]
}

fn as_user(message: &Message) -> Option<&UserMessage> {
    match message {
        Message::User(user) => Some(user),
        _ => None,
    }
}

/// Returns the calls that have results, in the order of the calls.
fn results(messages: &[Message]) -> Vec<(&ToolCall, &ToolResultMessage)> {
    let result_of = |call: &ToolCall| {
        messages.iter().find_map(|message| match message {
            Message::ToolResult(result) if result.tool_call_id == call.id => Some(result),
            _ => None,
        })
    };
    let calls = messages.iter().filter_map(|message| match message {
        Message::Assistant(message) => Some(message.tool_calls()),
        _ => None,
    });
    calls
        .flatten()
        .filter_map(|call| Some((call, result_of(call)?)))
        .collect()
}
