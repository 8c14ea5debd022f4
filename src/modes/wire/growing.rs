//! `message_update` repeats the message so far, twice. What was said before is not
//! written into JSON again for that: only the new piece of text is escaped, and the
//! bytes of what came before are copied.

use std::io::{self, Write};

use serde::Serialize;

use crate::agent::event::MessageUpdate;
use crate::ai::message::{AssistantBlock, AssistantMessage, TextContent, ThinkingContent};
use crate::ai::stream::AssistantEvent;

/// Where an answer's blocks stand in its JSON.
const CONTENT: &str = r#"{"role":"assistant","content":["#;

/// The message of the last update, if the next one can only go on with it.
#[derive(Default)]
pub struct Growing {
    /// The JSON up to the end of the text that grows, its closing quote left out.
    head: Vec<u8>,
    /// What it must still be for `head` to be its beginning.
    open: Option<Open>,
    /// Everything after that text.
    tail: Vec<u8>,
}

#[derive(PartialEq)]
struct Open {
    timestamp: i64,
    /// Of each block before, and of the one that grows.
    blocks: Vec<Mark>,
}

/// What changes when a block does.
#[derive(Clone, Copy, PartialEq)]
struct Mark {
    kind: u8,
    /// Bytes of text.
    length: usize,
    /// Bytes of what belongs to it.
    rest: usize,
}

#[derive(Serialize)]
struct WithRole<'a> {
    role: &'static str,
    #[serde(flatten)]
    message: &'a AssistantMessage,
}

impl Growing {
    pub fn write(
        &mut self,
        update: &MessageUpdate,
        seq: Option<u64>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.grow(update)?;
        out.write_all(br#"{"type":"message_update","message":"#)?;
        self.message(out)?;
        out.write_all(br#","assistantMessageEvent":"#)?;
        let mut step = serde_json::to_vec(&update.event)?;
        // An object that has a `type`.
        step.pop();
        out.write_all(&step)?;
        out.write_all(br#","partial":"#)?;
        self.message(out)?;
        match seq {
            Some(seq) => writeln!(out, "}},\"seq\":{seq}}}"),
            None => out.write_all(b"}}\n"),
        }
    }

    fn message(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        out.write_all(&self.tail)
    }

    fn grow(&mut self, update: &MessageUpdate) -> io::Result<()> {
        let message = &*update.message;
        let whole = WithRole {
            role: "assistant",
            message,
        };
        let Some((index, delta)) = piece(&update.event, message) else {
            self.open = None;
            self.tail.clear();
            self.head.clear();
            serde_json::to_writer(&mut self.head, &whole)?;
            return Ok(());
        };
        let (before, block) = (&message.content[..index], &message.content[index]);
        let now = Open {
            timestamp: message.timestamp,
            blocks: message.content.iter().map(mark).collect(),
        };
        match self.open.take().filter(|then| then.goes_on(&now, delta)) {
            Some(_) => escape(delta, &mut self.head)?,
            None => self.begin(before, block)?,
        }
        self.finish(message, block)?;
        self.open = Some(now);
        Ok(())
    }

    /// Everything up to where the text ends that grows.
    fn begin(&mut self, before: &[AssistantBlock], block: &AssistantBlock) -> io::Result<()> {
        self.head.clear();
        self.head.extend_from_slice(CONTENT.as_bytes());
        for block in before {
            serde_json::to_writer(&mut self.head, block)?;
            self.head.push(b',');
        }
        let (opening, text) = opening(block);
        self.head.extend_from_slice(opening.as_bytes());
        escape(text, &mut self.head)
    }

    /// The text's closing quote and everything after it, which is short: written anew,
    /// since it may change at any time.
    fn finish(&mut self, message: &AssistantMessage, block: &AssistantBlock) -> io::Result<()> {
        self.tail.clear();
        let rest = serde_json::to_vec(&emptied(block))?;
        self.tail.extend_from_slice(&rest[opening(block).0.len()..]);
        let around = AssistantMessage {
            content: Vec::new(),
            api: message.api.clone(),
            provider: message.provider.clone(),
            model: message.model.clone(),
            response_id: message.response_id.clone(),
            usage: message.usage,
            stop_reason: message.stop_reason,
            error_message: message.error_message.clone(),
            timestamp: message.timestamp,
        };
        let rest = serde_json::to_vec(&WithRole {
            role: "assistant",
            message: &around,
        })?;
        self.tail.extend_from_slice(&rest[CONTENT.len()..]);
        Ok(())
    }
}

impl Open {
    /// Whether nothing has changed but that `delta` was added to the last block.
    fn goes_on(&self, now: &Self, delta: &str) -> bool {
        let (Some((last, before)), Some((last_now, before_now))) =
            (self.blocks.split_last(), now.blocks.split_last())
        else {
            return false;
        };
        self.timestamp == now.timestamp
            && before == before_now
            && last.kind == last_now.kind
            && last.length + delta.len() == last_now.length
    }
}

/// The index of the block that has grown, and by what; `None` where the message is not
/// the one before with more at its end.
fn piece<'a>(event: &'a AssistantEvent, message: &AssistantMessage) -> Option<(usize, &'a str)> {
    let (index, delta) = match event {
        AssistantEvent::TextDelta {
            content_index,
            delta,
        }
        | AssistantEvent::ThinkingDelta {
            content_index,
            delta,
        } => (*content_index, delta.as_str()),
        _ => return None,
    };
    let text = match (message.content.last()?, event) {
        (AssistantBlock::Text(text), AssistantEvent::TextDelta { .. }) => &text.text,
        (AssistantBlock::Thinking(thinking), AssistantEvent::ThinkingDelta { .. }) => {
            &thinking.thinking
        }
        _ => return None,
    };
    let last = index + 1 == message.content.len();
    (last && text.ends_with(delta)).then_some((index, delta))
}

fn mark(block: &AssistantBlock) -> Mark {
    let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() + 1);
    match block {
        AssistantBlock::Text(text) => Mark {
            kind: 0,
            length: text.text.len(),
            rest: length(&text.text_signature),
        },
        AssistantBlock::Thinking(thinking) => Mark {
            kind: 1,
            length: thinking.thinking.len(),
            rest: length(&thinking.thinking_signature) * 2
                + usize::from(thinking.redacted.is_some()),
        },
        AssistantBlock::ToolCall(call) => Mark {
            kind: 2,
            length: length(&call.partial_json),
            rest: call.id.len() + length(&call.thought_signature),
        },
    }
}

/// How the block's JSON begins, and the text that comes next.
fn opening(block: &AssistantBlock) -> (&'static str, &str) {
    match block {
        AssistantBlock::Text(text) => (r#"{"type":"text","text":""#, &text.text),
        AssistantBlock::Thinking(thinking) => {
            (r#"{"type":"thinking","thinking":""#, &thinking.thinking)
        }
        AssistantBlock::ToolCall(_) => ("", ""),
    }
}

/// The block without its text.
fn emptied(block: &AssistantBlock) -> AssistantBlock {
    match block {
        AssistantBlock::Text(text) => AssistantBlock::Text(TextContent {
            text: String::new(),
            text_signature: text.text_signature.clone(),
        }),
        AssistantBlock::Thinking(thinking) => AssistantBlock::Thinking(ThinkingContent {
            thinking: String::new(),
            thinking_signature: thinking.thinking_signature.clone(),
            redacted: thinking.redacted,
        }),
        AssistantBlock::ToolCall(call) => AssistantBlock::ToolCall(call.clone()),
    }
}

/// The inside of a JSON string.
fn escape(text: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let start = out.len();
    serde_json::to_writer(&mut *out, text)?;
    out.pop();
    out.remove(start);
    Ok(())
}

#[cfg(test)]
impl Growing {
    /// Writes over the first byte of the text, and gives the text.
    pub(super) fn mark_first(&mut self, byte: u8) -> String {
        let start = CONTENT.len() + r#"{"type":"text","text":""#.len();
        self.head[start] = byte;
        String::from_utf8(self.head[start..].to_vec()).expect("the text is plain")
    }
}
