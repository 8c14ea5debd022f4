//! Makes a conversation fit for the model that is to continue it: what only the
//! model that said it may hear again is dropped or told as text, ids take the
//! form that the API accepts, and every tool call has a result.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::message::{
    AssistantBlock, AssistantMessage, ContentBlock, Message, StopReason, TextContent,
    ThinkingContent, ToolResultMessage, now,
};
use super::model::Model;

/// `normalize_id` gives the tool call ids of other models the form of this API.
pub(super) fn transform_messages<'a>(
    messages: &'a [Message],
    model: &Model,
    normalize_id: impl Fn(&str, &AssistantMessage) -> String,
) -> Vec<Cow<'a, Message>> {
    let mut ids = HashMap::new();
    let adapted = messages.iter().map(|message| match message {
        Message::User(_) => Cow::Borrowed(message),
        Message::Assistant(answer) if is_from(answer, model) => keep_own(message, answer),
        Message::Assistant(answer) => Cow::Owned(Message::Assistant(adapt_foreign(answer, |id| {
            let normalized = normalize_id(id, answer);
            ids.insert(id.to_owned(), normalized.clone());
            normalized
        }))),
        Message::ToolResult(result) => match ids.get(&result.tool_call_id) {
            Some(id) if *id != result.tool_call_id => {
                Cow::Owned(Message::ToolResult(ToolResultMessage {
                    tool_call_id: id.clone(),
                    ..result.clone()
                }))
            }
            _ => Cow::Borrowed(message),
        },
    });
    let adapted: Vec<_> = adapted.collect();
    complete_tool_calls(adapted)
}

fn is_from(answer: &AssistantMessage, model: &Model) -> bool {
    answer.provider == model.provider && answer.api == model.api && answer.model == model.id
}

fn is_signed(thinking: &ThinkingContent) -> bool {
    thinking
        .thinking_signature
        .as_deref()
        .is_some_and(|signature| !signature.is_empty())
}

/// As it is, but for thoughts without content.
fn keep_own<'a>(message: &'a Message, answer: &AssistantMessage) -> Cow<'a, Message> {
    let has_content = |block: &AssistantBlock| match block {
        AssistantBlock::Thinking(thinking) => {
            thinking.redacted == Some(true)
                || is_signed(thinking)
                || !thinking.thinking.trim().is_empty()
        }
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => true,
    };
    if answer.content.iter().all(has_content) {
        return Cow::Borrowed(message);
    }
    let mut answer = answer.clone();
    answer.content.retain(has_content);
    Cow::Owned(Message::Assistant(answer))
}

fn adapt_foreign(
    answer: &AssistantMessage,
    mut normalize_id: impl FnMut(&str) -> String,
) -> AssistantMessage {
    let plain = |text: &str| {
        AssistantBlock::Text(TextContent {
            text: text.to_owned(),
            text_signature: None,
        })
    };
    let content = answer.content.iter().filter_map(|block| match block {
        AssistantBlock::Thinking(thinking) => {
            let hidden = thinking.redacted == Some(true) || thinking.thinking.trim().is_empty();
            (!hidden).then(|| plain(&thinking.thinking))
        }
        AssistantBlock::Text(text) => Some(plain(&text.text)),
        AssistantBlock::ToolCall(call) => {
            let mut call = call.clone();
            call.id = normalize_id(&call.id);
            call.thought_signature = None;
            Some(AssistantBlock::ToolCall(call))
        }
    });
    AssistantMessage {
        content: content.collect(),
        api: answer.api.clone(),
        provider: answer.provider.clone(),
        model: answer.model.clone(),
        response_id: None,
        usage: answer.usage,
        stop_reason: answer.stop_reason,
        error_message: None,
        timestamp: answer.timestamp,
    }
}

/// Leaves out answers that failed, whose parts may be cut, and adds a result for
/// each call that has none before the conversation goes on.
fn complete_tool_calls(messages: Vec<Cow<'_, Message>>) -> Vec<Cow<'_, Message>> {
    let mut complete = Vec::with_capacity(messages.len());
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut answered = HashSet::new();
    for message in messages {
        match message.as_ref() {
            Message::ToolResult(result) => {
                answered.insert(result.tool_call_id.clone());
            }
            Message::User(_) | Message::Assistant(_) => {
                let missing = calls.drain(..).filter(|(id, _)| !answered.contains(id));
                complete.extend(missing.map(|(id, name)| Cow::Owned(no_result(id, name))));
                answered.clear();
            }
        }
        if let Message::Assistant(answer) = message.as_ref() {
            if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
                continue;
            }
            calls.extend(
                answer
                    .tool_calls()
                    .map(|call| (call.id.clone(), call.name.clone())),
            );
        }
        complete.push(message);
    }
    complete
}

fn no_result(tool_call_id: String, tool_name: String) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id,
        tool_name,
        content: vec![ContentBlock::text("No result provided")],
        details: None,
        usage: None,
        is_error: true,
        timestamp: now(),
    })
}

/// What APIs accept in an id: other characters become `_`.
pub(super) fn sanitize_id(id: &str, longest: usize) -> String {
    id.chars()
        .take(longest)
        .map(|c| match c.is_ascii_alphanumeric() || c == '-' {
            true => c,
            false => '_',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ai::testing::{answer, answer_of, call, model, result, text, thinking, user};

    fn owned(messages: &[Message], model: &Model) -> Vec<Message> {
        transform_messages(messages, model, |id, _| format!("n-{id}"))
            .into_iter()
            .map(Cow::into_owned)
            .collect()
    }

    fn signed_text() -> AssistantBlock {
        AssistantBlock::Text(TextContent {
            text: "said".into(),
            text_signature: Some("sig".into()),
        })
    }

    fn signed_call() -> AssistantBlock {
        match call("t1", "read", json!({})) {
            AssistantBlock::ToolCall(call) => {
                AssistantBlock::ToolCall(crate::ai::message::ToolCall {
                    thought_signature: Some("sig".into()),
                    ..call
                })
            }
            other => other,
        }
    }

    fn redacted() -> AssistantBlock {
        AssistantBlock::Thinking(ThinkingContent {
            thinking: "[Reasoning redacted]".into(),
            thinking_signature: Some("data".into()),
            redacted: Some(true),
        })
    }

    fn every_block() -> Vec<AssistantBlock> {
        vec![
            redacted(),
            thinking("", Some("sig")),
            thinking("signed", Some("sig")),
            thinking("unsigned", None),
            thinking(" ", None),
            signed_text(),
            signed_call(),
        ]
    }

    #[test]
    fn the_same_model_gets_back_what_it_said() {
        let model = model("a");
        let kept: Vec<_> = [0, 1, 2, 3, 5, 6].map(|i| every_block()[i].clone()).into();
        let messages = [answer(&model, every_block()), result("t1", vec![])];
        let expected = [answer(&model, kept), result("t1", vec![])];
        assert_eq!(owned(&messages, &model), expected);
    }

    #[test]
    fn another_model_gets_text() {
        let target = model("a");
        for other in [
            model("b"),
            Model {
                provider: "other".into(),
                ..model("a")
            },
            Model {
                id: "other".into(),
                ..model("a")
            },
        ] {
            let messages = [answer(&other, every_block()), result("t1", vec![])];
            let content = vec![
                text("signed"),
                text("unsigned"),
                text("said"),
                call("n-t1", "read", json!({})),
            ];
            let expected = [answer(&other, content), result("n-t1", vec![])];
            assert_eq!(owned(&messages, &target), expected);
        }
    }

    #[test]
    fn nothing_is_copied_without_need() {
        let model = model("a");
        let messages = [user("a"), answer(&model, vec![redacted(), signed_text()])];
        let transformed = transform_messages(&messages, &model, |id, _| id.to_owned());
        assert!(transformed.iter().all(|m| matches!(m, Cow::Borrowed(_))));
    }

    #[test]
    fn calls_without_result_get_one_before_the_conversation_goes_on() {
        let model = model("a");
        let calls = |a: &str, b: &str| {
            let calls = vec![call(a, "read", json!({})), call(b, "read", json!({}))];
            answer(&model, calls)
        };
        let messages = [
            calls("1", "2"),
            result("2", vec![]),
            calls("3", "4"),
            user("stop"),
            calls("5", "6"),
            result("5", vec![]),
        ];
        let order: Vec<(String, bool)> = owned(&messages, &model)
            .into_iter()
            .map(|message| match message {
                Message::User(_) => ("user".into(), false),
                Message::Assistant(_) => ("assistant".into(), false),
                Message::ToolResult(result) => (result.tool_call_id, result.is_error),
            })
            .collect();
        let expected = [
            ("assistant", false),
            ("2", false),
            ("1", true),
            ("assistant", false),
            ("3", true),
            ("4", true),
            ("user", false),
            ("assistant", false),
            ("5", false),
        ];
        assert_eq!(
            order,
            expected.map(|(name, error)| (name.to_owned(), error))
        );
    }

    #[test]
    fn failed_answers_are_left_out() {
        let model = model("a");
        let failed = |stop_reason| {
            Message::Assistant(AssistantMessage {
                stop_reason,
                ..answer_of(&model, vec![call("1", "read", json!({}))])
            })
        };
        let messages = [
            user("a"),
            failed(StopReason::Error),
            failed(StopReason::Aborted),
            user("b"),
        ];
        let kept = [messages[0].clone(), messages[3].clone()];
        assert_eq!(owned(&messages, &model), kept);
    }

    #[test]
    fn ids_are_cut_and_cleaned() {
        assert_eq!(sanitize_id("a.b|c_d-Eé", 64), "a_b_c_d-E_");
        assert_eq!(sanitize_id("abcdef", 3), "abc");
    }
}
