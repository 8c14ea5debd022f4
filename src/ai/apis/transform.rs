//! Adapts a conversation to the model that continues it: data that only its own model may see
//! again is dropped or becomes text, ids get the form that the API accepts, and a damaged history
//! is repaired.

use std::borrow::Cow;
use std::collections::HashSet;

use super::conversation_repair::repair;
use crate::message::{
    AssistantBlock, AssistantMessage, Message, TextContent, ThinkingContent, ToolResultMessage,
};
use crate::model::Model;
use crate::stream::ToolSpec;

/// The scope in which an API requires unique tool call ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UniqueIds {
    InAnAnswer,
    InTheConversation,
}

/// `tools` are those that the request declares. `normalize_id` converts tool call ids of other models to the form of this API.
pub(crate) fn transform_messages<'a>(
    messages: &'a [Message],
    tools: &[ToolSpec],
    model: &Model,
    unique: UniqueIds,
    normalize_id: impl Fn(&str, &AssistantMessage) -> String,
) -> Vec<Cow<'a, Message>> {
    let mut used = HashSet::new();
    // Ids of the last answer's calls, in the history and in the request. The results of an answer
    // follow it.
    let mut ids: Vec<(String, String)> = Vec::new();
    let mut transformed = Vec::new();
    for message in repair(messages, tools) {
        transformed.push(match message.as_ref() {
            Message::User(_) => message,
            Message::Assistant(answer) => {
                if unique == UniqueIds::InAnAnswer {
                    used.clear();
                }
                let is_own = is_from(answer, model);
                let normalized = answer.tool_calls().map(|call| {
                    let id = match is_own {
                        true => call.id.clone(),
                        false => normalize_id(&call.id, answer),
                    };
                    let id = make_unique(id, &mut used, |attempt| {
                        normalize_id(&format!("{attempt}_{}", call.id), answer)
                    });
                    (call.id.clone(), id)
                });
                ids = normalized.collect();
                match is_own {
                    true => keep_own(message, &ids),
                    false => Cow::Owned(Message::Assistant(adapt_foreign(answer, &ids))),
                }
            }
            Message::ToolResult(result) => {
                let pair = ids.iter().position(|(id, _)| *id == result.tool_call_id);
                match pair.map(|pair| ids.remove(pair)) {
                    Some((known, id)) if known != id => {
                        Cow::Owned(Message::ToolResult(ToolResultMessage {
                            tool_call_id: id,
                            ..result.clone()
                        }))
                    }
                    _ => message,
                }
            }
        });
    }
    transformed
}

/// Returns `id`, or the first of the `other` attempts that is free.
fn make_unique(id: String, used: &mut HashSet<String>, other: impl Fn(u32) -> String) -> String {
    let mut id = id;
    let mut attempt = 1;
    // The part after a bar names an item of the Responses API, not the call.
    while id.is_empty() || !used.insert(call_part(&id).to_owned()) {
        attempt += 1;
        id = other(attempt);
    }
    id
}

fn call_part(id: &str) -> &str {
    id.split_once('|').map_or(id, |(call, _)| call)
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

/// Keeps a message of the same model, but drops thoughts without content and repeated ids.
fn keep_own<'a>(message: Cow<'a, Message>, ids: &[(String, String)]) -> Cow<'a, Message> {
    let has_content = |block: &AssistantBlock| match block {
        AssistantBlock::Thinking(thinking) => {
            thinking.redacted == Some(true)
                || is_signed(thinking)
                || !thinking.thinking.trim().is_empty()
        }
        AssistantBlock::Text(_) | AssistantBlock::ToolCall(_) => true,
    };
    let Message::Assistant(answer) = message.as_ref() else {
        return message;
    };
    let is_complete = answer.content.iter().all(has_content);
    if is_complete && ids.iter().all(|(known, id)| known == id) {
        return message;
    }
    let mut answer = answer.clone();
    answer.content.retain(has_content);
    set_ids(&mut answer.content, ids);
    Cow::Owned(Message::Assistant(answer))
}

/// Gives the calls in `content`, in their order, the ids of the request.
fn set_ids(content: &mut [AssistantBlock], ids: &[(String, String)]) {
    let calls = content.iter_mut().filter_map(|block| match block {
        AssistantBlock::ToolCall(call) => Some(call),
        AssistantBlock::Text(_) | AssistantBlock::Thinking(_) => None,
    });
    for (call, (_, id)) in calls.zip(ids) {
        call.id.clone_from(id);
    }
}

fn adapt_foreign(answer: &AssistantMessage, ids: &[(String, String)]) -> AssistantMessage {
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
            call.thought_signature = None;
            Some(AssistantBlock::ToolCall(call))
        }
    });
    let mut content: Vec<AssistantBlock> = content.collect();
    set_ids(&mut content, ids);
    AssistantMessage {
        content,
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

/// Replaces characters that APIs refuse in an id by `_`.
pub(crate) fn sanitize_id(id: &str, longest: usize) -> String {
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
    use crate::testing::{answer, call, model, result, text, thinking, user};

    fn owned(messages: &[Message], model: &Model) -> Vec<Message> {
        transform_messages(messages, &[], model, UniqueIds::InAnAnswer, |id, _| {
            format!("n-{id}")
        })
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
            AssistantBlock::ToolCall(call) => AssistantBlock::ToolCall(crate::message::ToolCall {
                thought_signature: Some("sig".into()),
                ..call
            }),
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
    fn the_same_model_gets_its_answers_unchanged() {
        let model = model("a");
        let kept: Vec<_> = [0, 1, 2, 3, 5, 6].map(|i| every_block()[i].clone()).into();
        let prompt = user("a");
        let messages = [
            prompt.clone(),
            answer(&model, every_block()),
            result("t1", vec![]),
        ];
        let expected = [prompt, answer(&model, kept), result("t1", vec![])];
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
            let prompt = user("a");
            let messages = [
                prompt.clone(),
                answer(&other, every_block()),
                result("t1", vec![]),
            ];
            let content = vec![
                text("signed"),
                text("unsigned"),
                text("said"),
                call("n-t1", "read", json!({})),
            ];
            let expected = [prompt, answer(&other, content), result("n-t1", vec![])];
            assert_eq!(owned(&messages, &target), expected);
        }
    }

    #[test]
    fn nothing_is_copied_without_need() {
        let model = model("a");
        let messages = [user("a"), answer(&model, vec![redacted(), signed_text()])];
        let unique = UniqueIds::InTheConversation;
        let transformed = transform_messages(&messages, &[], &model, unique, |id, _| id.to_owned());
        assert!(transformed.iter().all(|m| matches!(m, Cow::Borrowed(_))));
    }

    #[test]
    fn ids_that_an_api_would_refuse_twice_are_changed() {
        let model = model("a");
        let turn = |ids: [&str; 2]| {
            let calls = ids.map(|id| call(id, "read", json!({}))).to_vec();
            let results = ids.map(|id| result(id, vec![])).to_vec();
            [vec![answer(&model, calls)], results].concat()
        };
        let messages = [vec![user("a")], turn(["1", "1"]), turn(["1", "2"])].concat();
        let ids = |unique| -> Vec<String> {
            transform_messages(&messages, &[], &model, unique, |id, _| format!("n-{id}"))
                .iter()
                .filter_map(|message| match message.as_ref() {
                    Message::ToolResult(result) => Some(result.tool_call_id.clone()),
                    _ => None,
                })
                .collect()
        };
        assert_eq!(ids(UniqueIds::InAnAnswer), ["1", "n-2_1", "1", "2"]);
        assert_eq!(
            ids(UniqueIds::InTheConversation),
            ["1", "n-2_1", "n-3_1", "2"]
        );
    }

    #[test]
    fn ids_are_cut_and_cleaned() {
        assert_eq!(sanitize_id("a.b|c_d-Eé", 64), "a_b_c_d-E_");
        assert_eq!(sanitize_id("abcdef", 3), "abc");
    }
}
