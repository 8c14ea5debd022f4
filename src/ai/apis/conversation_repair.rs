//! Puts a damaged history into an order that every provider accepts. Sessions are
//! damaged by crashes, by other programs that write them, by hand and by extensions that
//! remove messages; the session file itself is not changed.
//!
//! | found | sent |
//! |---|---|
//! | an answer that failed or was aborted | nothing |
//! | a result that follows its call, whatever stands between them | the result, directly after the answer with the call |
//! | a call without a result | a result that says so |
//! | a result without a call | a user message that names the call |
//! | a second result of a call | nothing if it repeats the first, or else as a result without a call |
//! | an answer as the first message | a user message before it |
//!
//! Names, arguments and blank texts that providers refuse are replaced as `accepted_content.rs` says.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::accepted_content::{accepted, accepted_name, is_blank_text};
use crate::message::{
    AssistantMessage, ContentBlock, Message, StopReason, ToolResultMessage, UserContent,
    UserMessage,
};
use crate::stream::ToolSpec;

const MISSING_START: &str = "(The beginning of this conversation is missing.)";
const NO_RESULT: &str = "No result provided";

/// Messages that need no repair are borrowed and keep their order, so that a valid
/// conversation is sent as it is and providers find its beginning in their caches.
pub(crate) fn repair<'a>(messages: &'a [Message], tools: &[ToolSpec]) -> Vec<Cow<'a, Message>> {
    let sent: Vec<&Message> = messages
        .iter()
        .filter(|message| !is_failed_answer(message))
        .collect();
    let pairs = Pairs::find(&sent);
    let mut repaired = Vec::with_capacity(sent.len());
    for (index, message) in sent.iter().enumerate() {
        match message {
            Message::User(_) => repaired.extend(accepted(message, tools)),
            Message::Assistant(answer) => {
                repaired.extend(accepted(message, tools));
                let results = pairs.results.get(&index).into_iter().flatten();
                repaired.extend(results.filter_map(|result| accepted(sent[*result], tools)));
                for (position, call) in answer.tool_calls().enumerate() {
                    if !pairs.answered.contains(&(index, position)) {
                        let name = accepted_name(&call.name, tools);
                        let note = no_result(&call.id, &name, answer.timestamp);
                        repaired.push(Cow::Owned(note));
                    }
                }
            }
            Message::ToolResult(result) => match pairs.fates[index] {
                Fate::Paired | Fate::Repeated => {}
                Fate::Orphaned => repaired.push(Cow::Owned(as_user_message(result))),
            },
        }
    }
    // Answers without content are not sent.
    let first = repaired.iter().find(
        |message| !matches!(message.as_ref(), Message::Assistant(answer) if answer.content.is_empty()),
    );
    if first.is_some_and(|first| matches!(first.as_ref(), Message::Assistant(_))) {
        let note = UserMessage {
            content: UserContent::Text(MISSING_START.into()),
            timestamp: 0,
        };
        repaired.insert(0, Cow::Owned(Message::User(note)));
    }
    repaired
}

/// Returns true for an answer that failed or was aborted. Parts of it may be missing, and none of
/// its calls were run.
fn is_failed_answer(message: &Message) -> bool {
    matches!(
        message,
        Message::Assistant(AssistantMessage {
            stop_reason: StopReason::Error | StopReason::Aborted,
            ..
        })
    )
}

/// The form in which a result is sent.
#[derive(Clone, Copy)]
enum Fate {
    /// The result follows the answer with its call.
    Paired,
    /// The result is left out: another result of its call has the same content.
    Repeated,
    /// The result becomes a user message: its call is missing, or has another result.
    Orphaned,
}

/// Assigns results to calls. Messages are identified by their positions.
struct Pairs {
    /// Positions of the results of each answer, in the order of the history.
    results: HashMap<usize, Vec<usize>>,
    /// Calls with a result: the position of the answer, and of the call among its calls.
    answered: HashSet<(usize, usize)>,
    /// The fate of each message; only entries of results are used.
    fates: Vec<Fate>,
}

impl Pairs {
    /// Pairs results with calls. A result belongs to the last call before it with its id, if that
    /// call has no result yet: some servers count ids anew in every turn.
    fn find(messages: &[&Message]) -> Self {
        let mut open: HashMap<&str, VecDeque<(usize, usize)>> = HashMap::new();
        let mut last_result: HashMap<&str, usize> = HashMap::new();
        let mut pairs = Self {
            results: HashMap::new(),
            answered: HashSet::new(),
            fates: vec![Fate::Paired; messages.len()],
        };
        for (index, message) in messages.iter().enumerate() {
            match message {
                Message::User(_) => {}
                Message::Assistant(answer) => {
                    for call in answer.tool_calls() {
                        open.remove(call.id.as_str());
                        last_result.remove(call.id.as_str());
                    }
                    for (position, call) in answer.tool_calls().enumerate() {
                        open.entry(&call.id)
                            .or_default()
                            .push_back((index, position));
                    }
                }
                Message::ToolResult(result) => {
                    let id = result.tool_call_id.as_str();
                    let call = open.get_mut(id).and_then(VecDeque::pop_front);
                    if let Some(call) = call {
                        pairs.results.entry(call.0).or_default().push(index);
                        pairs.answered.insert(call);
                        last_result.insert(id, index);
                        continue;
                    }
                    let repeats = last_result.get(id).is_some_and(|first| {
                        matches!(messages[*first],
                            Message::ToolResult(first) if first.content == result.content)
                    });
                    pairs.fates[index] = match repeats {
                        true => Fate::Repeated,
                        false => Fate::Orphaned,
                    };
                }
            }
        }
        pairs
    }
}

fn no_result(tool_call_id: &str, tool_name: &str, timestamp: i64) -> Message {
    Message::ToolResult(ToolResultMessage {
        tool_call_id: tool_call_id.to_owned(),
        tool_name: tool_name.to_owned(),
        content: vec![ContentBlock::text(NO_RESULT)],
        details: None,
        usage: None,
        is_error: true,
        timestamp,
    })
}

fn as_user_message(result: &ToolResultMessage) -> Message {
    let kind = if result.is_error { "error" } else { "result" };
    let tool = match result.tool_name.as_str() {
        "" => String::new(),
        name => format!(" of the tool {name}"),
    };
    let introduction = format!(
        "(A {kind}{tool} whose call, {}, is not at its place in this conversation:)",
        result.tool_call_id
    );
    let mut content = vec![ContentBlock::text(introduction)];
    content.extend(
        result
            .content
            .iter()
            .filter(|block| !is_blank_text(block))
            .cloned(),
    );
    Message::User(UserMessage {
        content: UserContent::Blocks(content),
        timestamp: result.timestamp,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{answer, answer_of, call, model, result, text, user};

    fn calls(ids: &[&str]) -> Message {
        let calls = ids.iter().map(|id| call(id, "read", json!({})));
        answer(&model("a"), calls.collect())
    }

    fn result_text(id: &str, text: &str) -> Message {
        result(id, vec![ContentBlock::text(text)])
    }

    fn failed(stop_reason: StopReason) -> Message {
        Message::Assistant(AssistantMessage {
            stop_reason,
            ..answer_of(&model("a"), vec![call("1", "read", json!({}))])
        })
    }

    /// Describes each message in one line.
    fn outline(messages: &[Message]) -> Vec<String> {
        repair(messages, &[])
            .iter()
            .map(|message| match message.as_ref() {
                Message::User(user) => format!("user {}", user.content.text()),
                Message::Assistant(answer) => {
                    let ids: Vec<&str> = answer.tool_calls().map(|c| c.id.as_str()).collect();
                    format!("assistant {}", ids.join(","))
                }
                Message::ToolResult(result) => format!(
                    "result {} {}",
                    result.tool_call_id,
                    crate::message::join_text(&result.content)
                ),
            })
            .collect()
    }

    #[test]
    fn a_valid_conversation_is_borrowed_unchanged() {
        let messages = [
            user("a"),
            calls(&["1", "2"]),
            result_text("2", "two"),
            result_text("1", "one"),
            user("steered"),
            calls(&["1"]),
            result_text("1", "one again"),
            answer(&model("a"), vec![text("done")]),
        ];
        let repaired = repair(&messages, &[]);
        assert!(repaired.iter().all(|m| matches!(m, Cow::Borrowed(_))));
        let repaired: Vec<Message> = repaired.into_iter().map(Cow::into_owned).collect();
        assert_eq!(repaired, messages);
    }

    #[test]
    fn a_call_without_result_gets_a_note() {
        let messages = [
            user("a"),
            calls(&["1", "2"]),
            result_text("2", "two"),
            calls(&["3"]),
            user("stop"),
            calls(&["4"]),
        ];
        let expected = [
            "user a",
            "assistant 1,2",
            "result 2 two",
            "result 1 No result provided",
            "assistant 3",
            "result 3 No result provided",
            "user stop",
            "assistant 4",
            "result 4 No result provided",
        ];
        assert_eq!(outline(&messages), expected);
    }

    #[test]
    fn a_result_moves_to_its_call() {
        let messages = [
            user("a"),
            calls(&["1"]),
            user("between"),
            calls(&["2"]),
            result_text("2", "two"),
            result_text("1", "one"),
        ];
        let expected = [
            "user a",
            "assistant 1",
            "result 1 one",
            "user between",
            "assistant 2",
            "result 2 two",
        ];
        assert_eq!(outline(&messages), expected);
    }

    #[test]
    fn a_result_without_call_becomes_text() {
        let messages = [result_text("1", "early"), user("a"), calls(&["1"])];
        let expected = [
            "user (A result of the tool read whose call, 1, is not at its place in this conversation:)\nearly",
            "user a",
            "assistant 1",
            "result 1 No result provided",
        ];
        assert_eq!(outline(&messages), expected);
    }

    #[test]
    fn the_first_result_of_a_call_counts() {
        let messages = [
            user("a"),
            calls(&["1"]),
            result_text("1", "one"),
            result_text("1", "one"),
            result_text("1", "other"),
        ];
        let expected = [
            "user a",
            "assistant 1",
            "result 1 one",
            "user (A result of the tool read whose call, 1, is not at its place in this conversation:)\nother",
        ];
        assert_eq!(outline(&messages), expected);
    }

    #[test]
    fn an_answer_is_never_first() {
        let messages = [user(" "), answer(&model("a"), vec![text("hello")])];
        let expected = [
            "user (The beginning of this conversation is missing.)",
            "assistant ",
        ];
        assert_eq!(outline(&messages), expected);
    }

    #[test]
    fn failed_answers_are_left_out() {
        let messages = [
            user("a"),
            failed(StopReason::Error),
            failed(StopReason::Aborted),
            user("b"),
        ];
        assert_eq!(outline(&messages), ["user a", "user b"]);
    }
}
