//! An answer at one moment of its arrival. What was said before is shared with the
//! moments before and after, so that a moment costs what is new in it, however many of
//! them a slow reader has not looked at yet.

use std::sync::Arc;

use parking_lot::RwLock;

use super::message::{
    AssistantBlock, AssistantMessage, TextContent, ThinkingContent, ToolCall, Usage,
};
use super::partial_json::PartialJson;

#[derive(Clone, Debug)]
pub struct Partial {
    /// The message without its blocks.
    around: Arc<AssistantMessage>,
    blocks: Vec<PartialBlock>,
}

#[derive(Clone, Debug)]
pub enum PartialBlock {
    /// A text or a thought: everything but its text, and that.
    Text {
        hull: Arc<AssistantBlock>,
        text: SharedText,
    },
    /// A call while it is streamed: everything but its arguments, and their text.
    Call {
        hull: Arc<ToolCall>,
        json: SharedText,
    },
    Still(Arc<AssistantBlock>),
}

/// The beginning of a text that may have grown since.
#[derive(Clone, Debug)]
pub struct SharedText {
    whole: Arc<RwLock<String>>,
    length: usize,
}

impl SharedText {
    fn new(text: &str) -> Self {
        Self {
            whole: Arc::new(RwLock::new(text.to_owned())),
            length: text.len(),
        }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn read<T>(&self, reader: impl FnOnce(&str) -> T) -> T {
        reader(&self.whole.read()[..self.length])
    }

    /// What `before`, an earlier moment of the same text, has grown by.
    fn since(&self, before: &Self) -> Option<String> {
        let same = Arc::ptr_eq(&self.whole, &before.whole) && before.length <= self.length;
        same.then(|| self.whole.read()[before.length..self.length].to_owned())
    }

    /// Who holds an earlier beginning does not see it.
    fn push(&mut self, piece: &str) {
        let mut whole = self.whole.write();
        if whole.len() != self.length {
            // It was gone on with in another way.
            let mut own = whole[..self.length].to_owned();
            drop(whole);
            own.push_str(piece);
            *self = Self::new(&own);
            return;
        }
        whole.push_str(piece);
        self.length = whole.len();
    }
}

/// What became of a block between two moments.
pub enum Grown {
    /// Its text has this more at its end, which may be nothing.
    By(String),
    /// It is another one, or a call whose arguments have changed.
    Anew,
}

impl PartialBlock {
    fn of(block: &AssistantBlock) -> Self {
        match block {
            AssistantBlock::Text(text) => Self::Text {
                hull: Arc::new(AssistantBlock::Text(TextContent {
                    text: String::new(),
                    text_signature: text.text_signature.clone(),
                })),
                text: SharedText::new(&text.text),
            },
            AssistantBlock::Thinking(thinking) => Self::Text {
                hull: Arc::new(AssistantBlock::Thinking(ThinkingContent {
                    thinking: String::new(),
                    thinking_signature: thinking.thinking_signature.clone(),
                    redacted: thinking.redacted,
                })),
                text: SharedText::new(&thinking.thinking),
            },
            AssistantBlock::ToolCall(call) => match &call.partial_json {
                // Where the arguments are what their text says, they need not be kept.
                Some(json) if call.arguments == so_far(json) => Self::Call {
                    hull: Arc::new(ToolCall {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        arguments: serde_json::json!({}),
                        arguments_error: None,
                        thought_signature: call.thought_signature.clone(),
                        partial_json: None,
                    }),
                    json: SharedText::new(json),
                },
                _ => Self::Still(Arc::new(block.clone())),
            },
        }
    }

    pub fn whole(&self) -> AssistantBlock {
        match self {
            Self::Text { hull, text } => text.read(|text| with_text(hull, text)),
            Self::Call { hull, json } => json.read(|json| {
                AssistantBlock::ToolCall(ToolCall {
                    arguments: so_far(json),
                    partial_json: Some(json.to_owned()),
                    ..(**hull).clone()
                })
            }),
            Self::Still(block) => (**block).clone(),
        }
    }

    pub fn since(&self, before: &Self) -> Grown {
        let grown = match (self, before) {
            (
                Self::Text { hull, text },
                Self::Text {
                    hull: hull_before,
                    text: before,
                },
            ) if Arc::ptr_eq(hull, hull_before) => text.since(before),
            (
                Self::Call { hull, json },
                Self::Call {
                    hull: hull_before,
                    json: before,
                },
            ) if Arc::ptr_eq(hull, hull_before) => json.since(before).filter(String::is_empty),
            (Self::Still(block), Self::Still(before)) if Arc::ptr_eq(block, before) => {
                Some(String::new())
            }
            _ => None,
        };
        grown.map_or(Grown::Anew, Grown::By)
    }

    /// `false` if this is nothing that can grow.
    fn push(&mut self, piece: &str) -> bool {
        match self {
            Self::Text { text, .. } | Self::Call { json: text, .. } => text.push(piece),
            Self::Still(_) => return false,
        }
        true
    }
}

fn with_text(hull: &AssistantBlock, text: &str) -> AssistantBlock {
    let text = text.to_owned();
    match hull {
        AssistantBlock::Text(hull) => AssistantBlock::Text(TextContent {
            text,
            ..hull.clone()
        }),
        AssistantBlock::Thinking(hull) => AssistantBlock::Thinking(ThinkingContent {
            thinking: text,
            ..hull.clone()
        }),
        AssistantBlock::ToolCall(call) => AssistantBlock::ToolCall(call.clone()),
    }
}

/// The arguments as far as their text goes.
fn so_far(json: &str) -> serde_json::Value {
    let mut arguments = serde_json::json!({});
    PartialJson::default().push(&mut arguments, json);
    arguments
}

impl Partial {
    pub fn new(message: &AssistantMessage) -> Self {
        Self {
            around: Arc::new(without_blocks(message)),
            blocks: message.content.iter().map(PartialBlock::of).collect(),
        }
    }

    pub fn message(&self) -> AssistantMessage {
        let mut message = (*self.around).clone();
        message.content = self.blocks.iter().map(PartialBlock::whole).collect();
        message
    }

    /// The message without its blocks.
    pub fn around(&self) -> &AssistantMessage {
        &self.around
    }

    /// Whether they differ in their blocks at most; `false` where nobody knows.
    pub fn is_within_the_same(&self, before: &Self) -> bool {
        Arc::ptr_eq(&self.around, &before.around)
    }

    pub fn blocks(&self) -> &[PartialBlock] {
        &self.blocks
    }

    pub fn usage(&self) -> &Usage {
        &self.around.usage
    }

    /// Id and name of a call.
    pub fn call(&self, index: usize) -> Option<(&str, &str)> {
        match self.blocks.get(index)? {
            PartialBlock::Call { hull, .. } => Some((&hull.id, &hull.name)),
            PartialBlock::Still(block) => match &**block {
                AssistantBlock::ToolCall(call) => Some((&call.id, &call.name)),
                _ => None,
            },
            PartialBlock::Text { .. } => None,
        }
    }

    /// Takes over everything but the blocks.
    pub(super) fn set_around(&mut self, message: &AssistantMessage) {
        self.around = Arc::new(without_blocks(message));
    }

    /// Also one more than there are.
    pub(super) fn set_block(&mut self, index: usize, block: &AssistantBlock) {
        let block = PartialBlock::of(block);
        match self.blocks.get_mut(index) {
            Some(known) => *known = block,
            None => self.blocks.push(block),
        }
    }

    /// `false` if the block has to be set instead.
    pub(crate) fn push(&mut self, index: usize, piece: &str) -> bool {
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
    fn a_text_that_has_grown_is_still_what_it_was() {
        let mut text = SharedText::new("a");
        let before = text.clone();
        text.push("b");
        assert!(Arc::ptr_eq(&before.whole, &text.whole));
        let read = |text: &SharedText| text.read(str::to_owned);
        assert_eq!((read(&before), read(&text)), ("a".into(), "ab".into()));
        let mut other = before.clone();
        other.push("c");
        assert_eq!((read(&other), read(&text)), ("ac".into(), "ab".into()));
    }
}
