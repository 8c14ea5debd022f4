//! Snapshots of an answer that is still arriving. Snapshots share their texts, so that each costs
//! only the size of its new part, even if a slow reader has many of them waiting.

use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

use super::partial_json::{PartialJson, ValueEdit, apply};
use crate::message::{
    AssistantBlock, AssistantMessage, TextContent, ThinkingContent, ToolCall, Usage,
};

#[derive(Clone, Debug)]
pub struct PartialMessage {
    /// The message without its blocks.
    head: Arc<AssistantMessage>,
    blocks: Vec<PartialBlock>,
}

#[derive(Clone, Debug)]
pub enum PartialBlock {
    /// A text or a thought: the block without its text, and the text.
    Text {
        frame: Arc<AssistantBlock>,
        text: GrowingText,
    },
    /// A call that is streamed: the call without its arguments, and these.
    Call {
        frame: Arc<ToolCall>,
        arguments: GrowingArguments,
    },
    Whole(Arc<AssistantBlock>),
}

/// A prefix of a text that may have grown since.
#[derive(Clone, Debug)]
pub struct GrowingText {
    buffer: Arc<RwLock<String>>,
    length: usize,
}

impl GrowingText {
    fn new(text: &str) -> Self {
        Self {
            buffer: Arc::new(RwLock::new(text.to_owned())),
            length: text.len(),
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub fn read<T>(&self, reader: impl FnOnce(&str) -> T) -> T {
        reader(&self.buffer.read()[..self.length])
    }

    /// Returns the text that was added since `before`, an earlier snapshot of the same text.
    fn since(&self, before: &Self) -> Option<String> {
        let same = Arc::ptr_eq(&self.buffer, &before.buffer) && before.length <= self.length;
        same.then(|| self.buffer.read()[before.length..self.length].to_owned())
    }

    /// Appends `piece`. Earlier snapshots of the text do not change.
    fn push(&mut self, piece: &str) {
        let mut buffer = self.buffer.write();
        if buffer.len() != self.length {
            // Another snapshot was continued differently.
            let mut own = buffer[..self.length].to_owned();
            drop(buffer);
            own.push_str(piece);
            *self = Self::new(&own);
            return;
        }
        buffer.push_str(piece);
        self.length = buffer.len();
    }
}

/// A prefix of the arguments of a call, whose text may have grown since. The text is parsed once,
/// when it is added; every reader gets the changes that the parser found.
#[derive(Clone, Debug, Default)]
pub struct GrowingArguments {
    buffer: Arc<RwLock<ParsedText>>,
    /// Length of the text in bytes.
    length: usize,
    edits: usize,
}

#[derive(Debug, Default)]
struct ParsedText {
    text: String,
    parser: PartialJson,
    /// The changes that lead from an empty object to the value of the text.
    edits: Vec<ValueEdit>,
}

/// The growth of a call's arguments between two snapshots.
#[derive(Debug, Default, PartialEq)]
pub struct ArgumentsDelta {
    pub text: String,
    pub edits: Vec<ValueEdit>,
}

impl GrowingArguments {
    pub fn new(text: &str) -> Self {
        let mut arguments = Self::default();
        arguments.push(text);
        arguments
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Passes the text and its changes of an empty object.
    pub fn read<T>(&self, reader: impl FnOnce(&str, &[ValueEdit]) -> T) -> T {
        let buffer = self.buffer.read();
        reader(&buffer.text[..self.length], &buffer.edits[..self.edits])
    }

    pub fn value(&self) -> Value {
        self.read(|_, edits| apply(edits))
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.read(|text, _| text.trim().is_empty())
    }

    /// Returns what was added since `before`; `None` if that is no earlier snapshot of the same
    /// arguments.
    pub fn since(&self, before: &Self) -> Option<ArgumentsDelta> {
        let same = Arc::ptr_eq(&self.buffer, &before.buffer) && before.length <= self.length;
        same.then(|| {
            let buffer = self.buffer.read();
            ArgumentsDelta {
                text: buffer.text[before.length..self.length].to_owned(),
                edits: buffer.edits[before.edits..self.edits].to_owned(),
            }
        })
    }

    /// Returns true if the text is a complete value or no JSON. Only the newest snapshot knows.
    pub(crate) fn is_closed(&self) -> bool {
        let buffer = self.buffer.read();
        buffer.text.len() == self.length && buffer.parser.is_done()
    }

    /// Appends `piece`. Earlier snapshots do not change.
    pub fn push(&mut self, piece: &str) {
        let mut buffer = self.buffer.write();
        if buffer.text.len() != self.length {
            // Another snapshot was continued differently.
            let own = format!("{}{piece}", &buffer.text[..self.length]);
            drop(buffer);
            *self = Self::new(&own);
            return;
        }
        let ParsedText {
            text,
            parser,
            edits,
        } = &mut *buffer;
        text.push_str(piece);
        parser.push(piece, edits);
        (self.length, self.edits) = (text.len(), edits.len());
    }
}

/// The change of a block between two snapshots.
#[derive(Debug, PartialEq)]
pub enum BlockDelta {
    Unchanged,
    /// The text that was added to a text or a thought.
    Text(String),
    Arguments(ArgumentsDelta),
    Replaced,
}

impl PartialBlock {
    fn new(block: &AssistantBlock) -> Self {
        match block {
            AssistantBlock::Text(text) => Self::Text {
                frame: Arc::new(AssistantBlock::Text(TextContent {
                    text: String::new(),
                    text_signature: text.text_signature.clone(),
                })),
                text: GrowingText::new(&text.text),
            },
            AssistantBlock::Thinking(thinking) => Self::Text {
                frame: Arc::new(AssistantBlock::Thinking(ThinkingContent {
                    thinking: String::new(),
                    thinking_signature: thinking.thinking_signature.clone(),
                    redacted: thinking.redacted,
                })),
                text: GrowingText::new(&thinking.thinking),
            },
            AssistantBlock::ToolCall(call) => {
                let text = call.partial_json.as_deref();
                let arguments = text.map(GrowingArguments::new);
                // Arguments that follow from their text need not be stored.
                match arguments.filter(|it| it.value() == call.arguments) {
                    Some(arguments) => Self::call(call, arguments),
                    None => Self::Whole(Arc::new(block.clone())),
                }
            }
        }
    }

    /// Makes a call whose arguments follow from their text.
    fn call(call: &ToolCall, arguments: GrowingArguments) -> Self {
        Self::Call {
            frame: Arc::new(ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: serde_json::json!({}),
                arguments_error: None,
                thought_signature: call.thought_signature.clone(),
                partial_json: None,
            }),
            arguments,
        }
    }

    pub fn to_block(&self) -> AssistantBlock {
        match self {
            Self::Text { frame, text } => text.read(|text| with_text(frame, text)),
            Self::Call { frame, arguments } => arguments.read(|text, edits| {
                AssistantBlock::ToolCall(ToolCall {
                    arguments: apply(edits),
                    partial_json: Some(text.to_owned()),
                    ..(**frame).clone()
                })
            }),
            Self::Whole(block) => (**block).clone(),
        }
    }

    pub fn since(&self, before: &Self) -> BlockDelta {
        let delta = match (self, before) {
            (
                Self::Text { frame, text },
                Self::Text {
                    frame: frame_before,
                    text: before,
                },
            ) if Arc::ptr_eq(frame, frame_before) => text.since(before).map(BlockDelta::Text),
            (
                Self::Call { frame, arguments },
                Self::Call {
                    frame: frame_before,
                    arguments: before,
                },
            ) if Arc::ptr_eq(frame, frame_before) => {
                arguments.since(before).map(BlockDelta::Arguments)
            }
            (Self::Whole(block), Self::Whole(before)) if Arc::ptr_eq(block, before) => {
                Some(BlockDelta::Unchanged)
            }
            _ => None,
        };
        match delta {
            Some(BlockDelta::Text(text) | BlockDelta::Arguments(ArgumentsDelta { text, .. }))
                if text.is_empty() =>
            {
                BlockDelta::Unchanged
            }
            Some(delta) => delta,
            None => BlockDelta::Replaced,
        }
    }

    /// Appends to the block's text. Returns `false` if the block cannot grow.
    fn push(&mut self, piece: &str) -> bool {
        match self {
            Self::Text { text, .. } => text.push(piece),
            Self::Call { arguments, .. } => arguments.push(piece),
            Self::Whole(_) => return false,
        }
        true
    }
}

fn with_text(frame: &AssistantBlock, text: &str) -> AssistantBlock {
    let text = text.to_owned();
    match frame {
        AssistantBlock::Text(frame) => AssistantBlock::Text(TextContent {
            text,
            ..frame.clone()
        }),
        AssistantBlock::Thinking(frame) => AssistantBlock::Thinking(ThinkingContent {
            thinking: text,
            ..frame.clone()
        }),
        AssistantBlock::ToolCall(call) => AssistantBlock::ToolCall(call.clone()),
    }
}

impl PartialMessage {
    pub fn new(message: &AssistantMessage) -> Self {
        Self {
            head: Arc::new(without_blocks(message)),
            blocks: message.content.iter().map(PartialBlock::new).collect(),
        }
    }

    pub fn message(&self) -> AssistantMessage {
        let mut message = (*self.head).clone();
        message.content = self.blocks.iter().map(PartialBlock::to_block).collect();
        message
    }

    /// Returns the message without its blocks.
    pub fn head(&self) -> &AssistantMessage {
        &self.head
    }

    /// Returns true if the messages differ at most in their blocks; `false` if that is unknown.
    pub fn has_same_head(&self, before: &Self) -> bool {
        Arc::ptr_eq(&self.head, &before.head)
    }

    pub fn blocks(&self) -> &[PartialBlock] {
        &self.blocks
    }

    pub fn usage(&self) -> &Usage {
        &self.head.usage
    }

    /// Returns id and name of a call.
    pub fn call(&self, index: usize) -> Option<(&str, &str)> {
        match self.blocks.get(index)? {
            PartialBlock::Call { frame, .. } => Some((&frame.id, &frame.name)),
            PartialBlock::Whole(block) => match &**block {
                AssistantBlock::ToolCall(call) => Some((&call.id, &call.name)),
                _ => None,
            },
            PartialBlock::Text { .. } => None,
        }
    }

    /// Replaces everything but the blocks.
    pub(crate) fn set_head(&mut self, message: &AssistantMessage) {
        self.head = Arc::new(without_blocks(message));
    }

    /// Sets a block, which may be one more than there are. `arguments` are those of a call, if
    /// they were parsed already.
    pub(crate) fn set_block(
        &mut self,
        index: usize,
        block: &AssistantBlock,
        arguments: Option<&GrowingArguments>,
    ) {
        let block = match (block, arguments) {
            (AssistantBlock::ToolCall(call), Some(arguments))
                if call.partial_json.is_some() && !arguments.is_blank() =>
            {
                PartialBlock::call(call, arguments.clone())
            }
            _ => PartialBlock::new(block),
        };
        match self.blocks.get_mut(index) {
            Some(known) => *known = block,
            None => self.blocks.push(block),
        }
    }

    /// Sets the arguments of a call. Returns `false` if the block must be set instead.
    pub(crate) fn set_arguments(&mut self, index: usize, now: GrowingArguments) -> bool {
        match self.blocks.get_mut(index) {
            Some(PartialBlock::Call { arguments, .. }) => {
                *arguments = now;
                true
            }
            _ => false,
        }
    }

    /// Appends to a block's text. Returns `false` if the block must be set instead.
    pub fn push(&mut self, index: usize, piece: &str) -> bool {
        self.blocks
            .get_mut(index)
            .is_some_and(|block| block.push(piece))
    }
}

fn without_blocks(message: &AssistantMessage) -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: message.api.clone(),
        provider: message.provider.clone(),
        model: message.model.clone(),
        response_id: message.response_id.clone(),
        usage: message.usage,
        stop_reason: message.stop_reason,
        error_message: message.error_message.clone(),
        timestamp: message.timestamp,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn earlier_snapshots_of_arguments_do_not_change() {
        let value = GrowingArguments::value;
        let mut arguments = GrowingArguments::new("{\"a\":1");
        let before = arguments.clone();
        arguments.push("2,\"b\":\"x");
        assert_eq!(value(&before), json!({"a": 1}));
        assert_eq!(value(&arguments), json!({"a": 12, "b": "x"}));
        let delta = arguments.since(&before).unwrap();
        assert_eq!(delta.text, "2,\"b\":\"x");
        assert_eq!(delta.edits.len(), 2);
        let mut other = before.clone();
        other.push("}");
        assert_eq!(value(&other), json!({"a": 1}));
        assert!(other.is_closed());
        assert!(!arguments.is_closed());
        assert_eq!(other.since(&before), None);
        assert_eq!(value(&arguments), json!({"a": 12, "b": "x"}));
    }

    #[test]
    fn earlier_snapshots_of_a_text_do_not_change() {
        let mut text = GrowingText::new("a");
        let before = text.clone();
        text.push("b");
        assert!(Arc::ptr_eq(&before.buffer, &text.buffer));
        let read = |text: &GrowingText| text.read(str::to_owned);
        assert_eq!((read(&before), read(&text)), ("a".into(), "ab".into()));
        let mut other = before.clone();
        other.push("c");
        assert_eq!((read(&other), read(&text)), ("ac".into(), "ab".into()));
    }
}
