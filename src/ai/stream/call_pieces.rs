//! Finds the tool call to which a piece of a chat stream belongs. By the APIs' documentation each
//! piece has an `index`, and the first piece of a call an `id` and a name. Servers leave out the
//! index, give every call the same one, or make up a new id for each piece.

use serde_json::{Map, Value};

use super::message_builder::MessageBuilder;
use super::tool_arguments::is_empty_object;
use crate::message::{AssistantBlock, ToolCall};

/// The calls of one answer, in the order in which they began.
#[derive(Default)]
pub(crate) struct CallPieces {
    calls: Vec<KnownCall>,
}

struct KnownCall {
    /// The server's `index`, if it sends one.
    number: Option<u64>,
    /// Position of the call's first piece in the list of its event.
    position: usize,
    content_index: usize,
}

/// One element of `tool_calls`.
pub(crate) struct Piece<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    /// Text of the arguments; servers such as Ollama send the object itself.
    pub(crate) arguments: String,
    number: Option<u64>,
    position: usize,
    /// True if the event has only this piece.
    alone: bool,
}

impl<'a> Piece<'a> {
    /// Reads the list of pieces in one event.
    pub(crate) fn parse_list(list: &'a Value) -> Vec<Self> {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        let pieces = list.iter().enumerate().map(|(position, piece)| Piece {
            id: piece["id"].as_str().unwrap_or_default(),
            name: piece["function"]["name"].as_str().unwrap_or_default(),
            arguments: match &piece["function"]["arguments"] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                whole => whole.to_string(),
            },
            number: piece["index"].as_u64(),
            position,
            alone: list.len() == 1,
        });
        pieces.collect()
    }

    fn has_arguments(&self) -> bool {
        !self.arguments.trim().is_empty() && !is_empty_object(&self.arguments)
    }

    /// Returns true if a piece without a number, which names a tool, is a call of its own and no
    /// part of the call before it, whose arguments may have begun.
    fn begins_call(&self, has_begun: bool) -> bool {
        let arguments = self.arguments.trim();
        let is_whole = || serde_json::from_str::<Map<String, Value>>(arguments).is_ok();
        self.number.is_none() && arguments.starts_with('{') && (has_begun || is_whole())
    }
}

impl CallPieces {
    /// Returns the content index of the call that `piece` continues; `None` if it starts a new
    /// call.
    pub(crate) fn find(&self, piece: &Piece<'_>, answer: &MessageBuilder) -> Option<usize> {
        let mut latest_first = self.calls.iter().rev();
        let same_id = latest_first.find(|known| {
            !piece.id.is_empty() && call(known, answer).is_some_and(|call| call.id == piece.id)
        });
        let found = same_id.or_else(|| {
            let candidate = self.candidate(piece)?;
            continues(piece, candidate, answer).then_some(candidate)
        });
        found.map(|known| known.content_index)
    }

    /// Records the call that `piece` has started.
    pub(crate) fn begin(&mut self, piece: &Piece<'_>, content_index: usize) {
        self.calls.push(KnownCall {
            number: piece.number,
            position: piece.position,
            content_index,
        });
    }

    /// Returns the content indices in order.
    pub(crate) fn content_indices(&self) -> impl Iterator<Item = usize> {
        self.calls.iter().map(|known| known.content_index)
    }

    /// Returns the call that the piece continues unless it starts a new one.
    fn candidate(&self, piece: &Piece<'_>) -> Option<&KnownCall> {
        let latest =
            |fits: &dyn Fn(&KnownCall) -> bool| self.calls.iter().rev().find(|it| fits(it));
        if let Some(number) = piece.number {
            let begins = !piece.id.is_empty() || !piece.name.is_empty();
            let numbered = latest(&|known| known.number == Some(number));
            return numbered.or_else(|| latest(&|known| !begins && known.number.is_none()));
        }
        let unnumbered = |known: &KnownCall| {
            known.number.is_none() && (piece.alone || known.position == piece.position)
        };
        // A list of pieces without numbers holds one piece of each call.
        let is_another = !piece.alone && !piece.name.is_empty();
        latest(&unnumbered).or_else(|| self.calls.last().filter(|_| !is_another))
    }
}

/// Returns the events that a whole chat completion stands for, or the API's error. Returns no
/// events for any other body.
pub(crate) fn whole_completion(mut body: Value) -> Vec<Value> {
    if !body["error"].is_null() {
        return vec![body];
    }
    let Some(choice) = body["choices"].get_mut(0) else {
        return Vec::new();
    };
    let message = choice["message"].take();
    if !message.is_object() {
        return Vec::new();
    }
    // The answer is complete even without a finish reason.
    if choice["finish_reason"].as_str().is_none_or(str::is_empty) {
        let calls = message["tool_calls"].as_array();
        let calls = calls.is_some_and(|calls| !calls.is_empty());
        choice["finish_reason"] = if calls { "tool_calls" } else { "stop" }.into();
    }
    choice["delta"] = message;
    vec![body]
}

fn call<'a>(known: &KnownCall, answer: &'a MessageBuilder) -> Option<&'a ToolCall> {
    match answer.message().content.get(known.content_index) {
        Some(AssistantBlock::ToolCall(call)) => Some(call),
        _ => None,
    }
}

/// Returns true if a piece continues `known` although it has another id.
fn continues(piece: &Piece<'_>, known: &KnownCall, answer: &MessageBuilder) -> bool {
    let Some(call) = call(known, answer) else {
        return false;
    };
    if piece.name.is_empty() {
        return true;
    }
    // A call with complete arguments takes no more; a call without arguments may still get them.
    let is_open = !answer.arguments_are_closed(known.content_index);
    let has_begun = answer.arguments_have_begun(known.content_index);
    let fits = is_open && piece.has_arguments() && !piece.begins_call(has_begun);
    match (piece.id.is_empty(), call.id.is_empty()) {
        _ if call.name.is_empty() => true,
        (true, _) => piece.name == call.name && (fits || !piece.has_arguments()),
        (false, true) => piece.name == call.name && piece.number.is_some(),
        (false, false) => piece.name == call.name && fits,
    }
}
