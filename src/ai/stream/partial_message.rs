//! Snapshots of an answer that is still arriving. Snapshots share their texts, so that each costs
//! only the size of its new part, even if a slow reader has many of them waiting.

use std::sync::Arc;

use parking_lot::RwLock;

use super::partial_json::PartialJson;
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
        text: SharedText,
    },
    /// A call that is streamed: the call without its arguments, and their text.
    Call {
        frame: Arc<ToolCall>,
        json: SharedText,
    },
    Whole(Arc<AssistantBlock>),
}

/// A prefix of a text that may have grown since.
#[derive(Clone, Debug)]
pub struct SharedText {
    buffer: Arc<RwLock<String>>,
    length: usize,
}

impl SharedText {
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

/// The change of a block between two snapshots.
pub enum BlockDelta {
    /// This text, which may be empty, was appended to the block's text.
    Appended(String),
    /// The block was replaced, or is a call whose arguments changed.
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
                text: SharedText::new(&text.text),
            },
            AssistantBlock::Thinking(thinking) => Self::Text {
                frame: Arc::new(AssistantBlock::Thinking(ThinkingContent {
                    thinking: String::new(),
                    thinking_signature: thinking.thinking_signature.clone(),
                    redacted: thinking.redacted,
                })),
                text: SharedText::new(&thinking.thinking),
            },
            AssistantBlock::ToolCall(call) => match &call.partial_json {
                // Arguments that follow from their text need not be stored.
                Some(json) if call.arguments == parse_incomplete(json) => Self::Call {
                    frame: Arc::new(ToolCall {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        arguments: serde_json::json!({}),
                        arguments_error: None,
                        thought_signature: call.thought_signature.clone(),
                        partial_json: None,
                    }),
                    json: SharedText::new(json),
                },
                _ => Self::Whole(Arc::new(block.clone())),
            },
        }
    }

    pub fn to_block(&self) -> AssistantBlock {
        match self {
            Self::Text { frame, text } => text.read(|text| with_text(frame, text)),
            Self::Call { frame, json } => json.read(|json| {
                AssistantBlock::ToolCall(ToolCall {
                    arguments: parse_incomplete(json),
                    partial_json: Some(json.to_owned()),
                    ..(**frame).clone()
                })
            }),
            Self::Whole(block) => (**block).clone(),
        }
    }

    pub fn since(&self, before: &Self) -> BlockDelta {
        let grown = match (self, before) {
            (
                Self::Text { frame, text },
                Self::Text {
                    frame: frame_before,
                    text: before,
                },
            ) if Arc::ptr_eq(frame, frame_before) => text.since(before),
            (
                Self::Call { frame, json },
                Self::Call {
                    frame: frame_before,
                    json: before,
                },
            ) if Arc::ptr_eq(frame, frame_before) => json.since(before).filter(String::is_empty),
            (Self::Whole(block), Self::Whole(before)) if Arc::ptr_eq(block, before) => {
                Some(String::new())
            }
            _ => None,
        };
        grown.map_or(BlockDelta::Replaced, BlockDelta::Appended)
    }

    /// Appends to the block's text. Returns `false` if the block cannot grow.
    fn push(&mut self, piece: &str) -> bool {
        match self {
            Self::Text { text, .. } | Self::Call { json: text, .. } => text.push(piece),
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

/// Returns the arguments that an incomplete text stands for.
fn parse_incomplete(json: &str) -> serde_json::Value {
    let mut arguments = serde_json::json!({});
    PartialJson::default().push(&mut arguments, json);
    arguments
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

    /// Sets a block, which may be one more than there are.
    pub(crate) fn set_block(&mut self, index: usize, block: &AssistantBlock) {
        let block = PartialBlock::new(block);
        match self.blocks.get_mut(index) {
            Some(known) => *known = block,
            None => self.blocks.push(block),
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
    use super::*;

    #[test]
    fn earlier_snapshots_of_a_text_do_not_change() {
        let mut text = SharedText::new("a");
        let before = text.clone();
        text.push("b");
        assert!(Arc::ptr_eq(&before.buffer, &text.buffer));
        let read = |text: &SharedText| text.read(str::to_owned);
        assert_eq!((read(&before), read(&text)), ("a".into(), "ab".into()));
        let mut other = before.clone();
        other.push("c");
        assert_eq!((read(&other), read(&text)), ("ac".into(), "ab".into()));
    }
}
