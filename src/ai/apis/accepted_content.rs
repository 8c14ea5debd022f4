//! Parts of messages that providers refuse whatever their place: names of tools that a model made
//! up, arguments that are no object, and blank texts of the user. The session file keeps them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::request_parts::is_blank;
use crate::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, ToolCall, ToolResultMessage,
    UserContent, UserMessage,
};
use crate::stream::ToolSpec;

/// Longest name that all APIs accept, in characters.
const MAX_NAME_LENGTH: usize = 64;
/// Name of a call without one.
const UNNAMED: &str = "unnamed";

/// Returns the message as providers accept it, or `None` if none of its content is left. The names
/// of `tools` are sent as they are, because the request declares them.
pub(super) fn accepted<'a>(message: &'a Message, tools: &[ToolSpec]) -> Option<Cow<'a, Message>> {
    match message {
        Message::User(user) => accepted_user(message, user),
        Message::Assistant(answer) => Some(accepted_answer(message, answer, tools)),
        Message::ToolResult(result) => Some(match accepted_name(&result.tool_name, tools) {
            Cow::Borrowed(_) => Cow::Borrowed(message),
            Cow::Owned(tool_name) => Cow::Owned(Message::ToolResult(ToolResultMessage {
                tool_name,
                ..result.clone()
            })),
        }),
    }
}

fn accepted_user<'a>(message: &'a Message, user: &UserMessage) -> Option<Cow<'a, Message>> {
    let blocks = match &user.content {
        UserContent::Text(text) => return (!is_blank(text)).then_some(Cow::Borrowed(message)),
        UserContent::Blocks(blocks) => blocks,
    };
    let is_sent =
        |block: &ContentBlock| !is_blank_text(block) && !matches!(block, ContentBlock::Other(_));
    if !blocks.iter().any(is_sent) {
        return None;
    }
    if !blocks.iter().any(is_blank_text) {
        return Some(Cow::Borrowed(message));
    }
    let mut blocks = blocks.clone();
    blocks.retain(|block| !is_blank_text(block));
    Some(Cow::Owned(Message::User(UserMessage {
        content: UserContent::Blocks(blocks),
        timestamp: user.timestamp,
    })))
}

pub(super) fn is_blank_text(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Text(text) if is_blank(&text.text))
}

fn accepted_answer<'a>(
    message: &'a Message,
    answer: &AssistantMessage,
    tools: &[ToolSpec],
) -> Cow<'a, Message> {
    let is_accepted = |call: &ToolCall| {
        call.arguments.is_object() && matches!(accepted_name(&call.name, tools), Cow::Borrowed(_))
    };
    if answer.tool_calls().all(is_accepted) {
        return Cow::Borrowed(message);
    }
    let mut answer = answer.clone();
    for block in &mut answer.content {
        if let AssistantBlock::ToolCall(call) = block {
            call.name = accepted_name(&call.name, tools).into_owned();
            call.arguments = accepted_arguments(std::mem::take(&mut call.arguments));
        }
    }
    Cow::Owned(Message::Assistant(answer))
}

/// Returns the name of a call: letters, digits, `_` and `-`, or that of one of `tools`.
pub(super) fn accepted_name<'n>(name: &'n str, tools: &[ToolSpec]) -> Cow<'n, str> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let fits = !name.is_empty() && name.len() <= MAX_NAME_LENGTH && name.chars().all(is_known);
    if fits || tools.iter().any(|tool| tool.name == name) {
        return Cow::Borrowed(name);
    }
    let replaced = name.chars().take(MAX_NAME_LENGTH);
    let replaced: String = replaced
        .map(|c| if is_known(c) { c } else { '_' })
        .collect();
    match replaced.is_empty() {
        true => Cow::Owned(UNNAMED.to_owned()),
        false => Cow::Owned(replaced),
    }
}

/// Returns an object: the value itself, the object that a text contains, or an empty one.
fn accepted_arguments(arguments: Value) -> Value {
    let arguments = match arguments {
        Value::String(text) => serde_json::from_str(&text).unwrap_or_default(),
        other => other,
    };
    match arguments {
        Value::Object(_) => arguments,
        _ => Value::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{answer, call, model, picture, result, user};

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            description: String::new(),
            parameters: json!({}),
        }
    }

    #[test]
    fn names_get_the_form_that_all_apis_accept() {
        for (name, expected) in [
            ("", "unnamed"),
            ("functions.bash", "functions_bash"),
            ("bash<|channel|>commentary", "bash__channel__commentary"),
            ("a b", "a_b"),
            ("\u{fc}n\u{fc}", "_n_"),
            ("read-it_1", "read-it_1"),
            ("fs.read", "fs.read"),
        ] {
            assert_eq!(accepted_name(name, &[tool("fs.read")]), expected);
        }
        let long = "n".repeat(200);
        assert_eq!(accepted_name(&long, &[]).len(), MAX_NAME_LENGTH);
    }

    #[test]
    fn a_call_and_its_result_keep_one_name() {
        let model = model("a");
        let message = answer(&model, vec![call("1", "functions.bash", json!([1]))]);
        let sent = accepted(&message, &[]).unwrap().into_owned();
        let expected = answer(&model, vec![call("1", "functions_bash", json!({}))]);
        assert_eq!(sent, expected);
        let Message::ToolResult(result) = result("1", vec![]) else {
            unreachable!("it is a result");
        };
        let message = Message::ToolResult(ToolResultMessage {
            tool_name: "functions.bash".into(),
            ..result
        });
        let sent = accepted(&message, &[]).unwrap();
        assert!(
            matches!(sent.as_ref(), Message::ToolResult(it) if it.tool_name == "functions_bash")
        );
    }

    #[test]
    fn arguments_are_always_an_object() {
        for (arguments, expected) in [
            (json!("{\"path\":\"a\"}"), json!({"path": "a"})),
            (json!("text"), json!({})),
            (json!(null), json!({})),
            (json!([1]), json!({})),
            (json!({"a": 1}), json!({"a": 1})),
        ] {
            assert_eq!(accepted_arguments(arguments), expected);
        }
    }

    #[test]
    fn blank_texts_of_the_user_are_left_out() {
        assert!(accepted(&user(""), &[]).is_none());
        assert!(accepted(&user(" \n"), &[]).is_none());
        let blocks = |blocks: Vec<ContentBlock>| {
            Message::User(UserMessage {
                content: UserContent::Blocks(blocks),
                timestamp: 0,
            })
        };
        assert!(accepted(&blocks(vec![]), &[]).is_none());
        let message = blocks(vec![ContentBlock::text(""), ContentBlock::image(picture())]);
        let sent = accepted(&message, &[]).unwrap().into_owned();
        assert_eq!(sent, blocks(vec![ContentBlock::image(picture())]));
    }
}
