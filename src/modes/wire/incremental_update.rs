//! Writes `message_update` incrementally. The event repeats the message so far twice; only the
//! new text is escaped as JSON, and the bytes of the earlier text are copied.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::arguments::ArgumentsWriter;
use pi_agent::event::MessageUpdate;
use pi_ai::message::{AssistantBlock, ToolCall, WithRole};
use pi_ai::stream::{AssistantEvent, GrowingArguments, PartialBlock, PartialMessage};

/// JSON of a message up to its blocks.
const MESSAGE_START: &str = r#"{"role":"assistant","content":["#;

/// Parts of a tool call's JSON around the text that grows.
const EMPTY_ARGUMENTS_MEMBER: &[u8] = br#","arguments":{}"#;
const EMPTY_ARGUMENTS: &[u8] = b"{}";
const CALL_END: &[u8] = br#""}"#;

const TEXT_KIND: u8 = 0;
const THINKING_KIND: u8 = 1;
const CALL_KIND: u8 = 2;
const OTHER_KIND: u8 = 3;

/// The JSON of the last update, which the next one extends if it only appends text.
#[derive(Default)]
pub struct IncrementalUpdate {
    /// The JSON up to the end of the growing text, without its closing quote; for a tool call up
    /// to its arguments.
    head: Vec<u8>,
    /// The growing tool call.
    call: Option<GrowingCall>,
    /// The shape of the message that `head` was written for.
    shape: Option<MessageShape>,
    /// The JSON after the growing text.
    tail: Vec<u8>,
}

struct GrowingCall {
    /// The arguments that were written.
    written: GrowingArguments,
    arguments: ArgumentsWriter,
    /// The JSON after the arguments, up to the end of their text.
    text: Vec<u8>,
}

#[derive(PartialEq)]
struct MessageShape {
    timestamp: i64,
    /// Shape of each block; the last one grows.
    blocks: Vec<BlockShape>,
}

/// Lengths that change when a block changes.
#[derive(Clone, Copy, PartialEq)]
struct BlockShape {
    kind: u8,
    /// Bytes of text.
    length: usize,
    /// Bytes of the block's other members.
    rest: usize,
}

impl IncrementalUpdate {
    pub fn write(
        &mut self,
        update: &MessageUpdate,
        seq: Option<u64>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        self.apply(update)?;
        out.write_all(br#"{"type":"message_update","message":"#)?;
        self.write_message(out)?;
        out.write_all(br#","usage":"#)?;
        serde_json::to_writer(&mut *out, update.message.usage())?;
        out.write_all(br#","assistantMessageEvent":"#)?;
        let mut step = serde_json::to_vec(&update.step())?;
        // Remove the closing brace of the object.
        step.pop();
        out.write_all(&step)?;
        out.write_all(br#","partial":"#)?;
        self.write_message(out)?;
        match seq {
            Some(seq) => writeln!(out, "}},\"seq\":{seq}}}"),
            None => out.write_all(b"}}\n"),
        }
    }

    fn write_message(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.head)?;
        if let Some(call) = &self.call {
            call.arguments.write(out)?;
            out.write_all(&call.text)?;
        }
        out.write_all(&self.tail)
    }

    fn apply(&mut self, update: &MessageUpdate) -> io::Result<()> {
        let message = &update.message;
        let Some(delta) = appended_text(&update.event, message.blocks()) else {
            self.shape = None;
            return self.rewrite(message);
        };
        let now = MessageShape {
            timestamp: message.head().timestamp,
            blocks: message.blocks().iter().map(block_shape).collect(),
        };
        let fits = match self
            .shape
            .take()
            .filter(|then| then.is_extended_by(&now, delta))
        {
            Some(_) => self.append(message.blocks(), delta)?,
            None => self.write_head(message.blocks())?,
        };
        if !fits {
            return self.rewrite(message);
        }
        self.write_tail(message)?;
        self.shape = Some(now);
        Ok(())
    }

    /// Serializes the whole message, which the next update cannot extend.
    fn rewrite(&mut self, message: &PartialMessage) -> io::Result<()> {
        self.tail.clear();
        self.head.clear();
        self.call = None;
        let message = message.message();
        Ok(serde_json::to_writer(
            &mut self.head,
            &WithRole::new(&message),
        )?)
    }

    /// Appends text. Returns `false` if the message has to be serialized again.
    fn append(&mut self, blocks: &[PartialBlock], delta: &str) -> io::Result<bool> {
        let Some(call) = &mut self.call else {
            escape(delta, &mut self.head)?;
            return Ok(true);
        };
        match blocks.last() {
            Some(PartialBlock::Call { arguments, .. }) => match arguments.since(&call.written) {
                Some(more) => {
                    call.written = arguments.clone();
                    escape(&more.text, &mut call.text)?;
                    call.arguments.apply(&more.edits)
                }
                // The call has begun anew.
                None => self.write_head(blocks),
            },
            _ => Ok(false),
        }
    }

    /// Serializes the message up to the end of the last block's text. Returns `false` if the
    /// message cannot be written incrementally.
    fn write_head(&mut self, blocks: &[PartialBlock]) -> io::Result<bool> {
        self.head.clear();
        self.call = None;
        self.head.extend_from_slice(MESSAGE_START.as_bytes());
        let Some((last, before)) = blocks.split_last() else {
            return Ok(true);
        };
        for block in before {
            serde_json::to_writer(&mut self.head, &block.to_block())?;
            self.head.push(b',');
        }
        match last {
            PartialBlock::Text { frame, text } => {
                self.head.extend_from_slice(opening(frame).as_bytes());
                text.read(|text| escape(text, &mut self.head))?;
                Ok(true)
            }
            PartialBlock::Call { frame, arguments } => self.write_call_head(frame, arguments),
            PartialBlock::Whole(_) => Ok(true),
        }
    }

    fn write_call_head(&mut self, frame: &ToolCall, shared: &GrowingArguments) -> io::Result<bool> {
        // Serialize the call with empty arguments, and find the positions of `{}` and `""`.
        let empty = AssistantBlock::ToolCall(ToolCall {
            arguments: Value::Object(Map::new()),
            partial_json: Some(String::new()),
            ..frame.clone()
        });
        let shell = serde_json::to_vec(&empty)?;
        // A tool's name cannot contain this text: its quotes would be escaped.
        let Some(at) = memchr::memmem::find(&shell, EMPTY_ARGUMENTS_MEMBER) else {
            return Ok(false);
        };
        let at = at + EMPTY_ARGUMENTS_MEMBER.len();
        self.head
            .extend_from_slice(&shell[..at - EMPTY_ARGUMENTS.len()]);
        let mut text = shell[at..shell.len() - CALL_END.len()].to_vec();
        let mut arguments = ArgumentsWriter::default();
        let fits = shared.read(|json, edits| {
            escape(json, &mut text)?;
            arguments.apply(edits)
        });
        self.call = Some(GrowingCall {
            written: shared.clone(),
            arguments,
            text,
        });
        fits
    }

    /// Serializes the closing quote of the text and everything after it. This part is short, and
    /// may change with each update.
    fn write_tail(&mut self, message: &PartialMessage) -> io::Result<()> {
        self.tail.clear();
        match message.blocks().last() {
            Some(PartialBlock::Text { frame, .. }) => {
                let rest = serde_json::to_vec(&**frame)?;
                self.tail.extend_from_slice(&rest[opening(frame).len()..]);
            }
            Some(PartialBlock::Call { .. }) => self.tail.extend_from_slice(CALL_END),
            Some(PartialBlock::Whole(_)) | None => {}
        }
        let rest = serde_json::to_vec(&WithRole::new(message.head()))?;
        self.tail.extend_from_slice(&rest[MESSAGE_START.len()..]);
        Ok(())
    }
}

impl MessageShape {
    /// Whether the only change is that `delta` was appended to the last block.
    fn is_extended_by(&self, now: &Self, delta: &str) -> bool {
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

/// Returns the text that the event appends to the last block; `None` if the message changed in
/// another way.
fn appended_text<'a>(event: &'a AssistantEvent, blocks: &[PartialBlock]) -> Option<&'a str> {
    let (index, delta, kind) = match event {
        AssistantEvent::TextDelta {
            content_index,
            delta,
        } => (*content_index, delta.as_str(), TEXT_KIND),
        AssistantEvent::ThinkingDelta {
            content_index,
            delta,
        } => (*content_index, delta.as_str(), THINKING_KIND),
        AssistantEvent::ToolCallDelta {
            content_index,
            delta,
        } => (*content_index, delta.as_str(), CALL_KIND),
        _ => return None,
    };
    let last = blocks.last()?;
    let ends_with_delta = match last {
        PartialBlock::Text { text, .. } => text.read(|text| text.ends_with(delta)),
        PartialBlock::Call { arguments, .. } => arguments.read(|text, _| text.ends_with(delta)),
        PartialBlock::Whole(_) => false,
    };
    let fits = index + 1 == blocks.len() && block_shape(last).kind == kind && ends_with_delta;
    fits.then_some(delta)
}

fn block_shape(block: &PartialBlock) -> BlockShape {
    let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() + 1);
    match block {
        PartialBlock::Text { frame, text } => match &**frame {
            AssistantBlock::Thinking(thinking) => BlockShape {
                kind: THINKING_KIND,
                length: text.len(),
                rest: length(&thinking.thinking_signature) * 2
                    + usize::from(thinking.redacted.is_some()),
            },
            AssistantBlock::Text(frame) => BlockShape {
                kind: TEXT_KIND,
                length: text.len(),
                rest: length(&frame.text_signature),
            },
            AssistantBlock::ToolCall(call) => call_shape(call, text.len()),
        },
        PartialBlock::Call { frame, arguments } => call_shape(frame, arguments.len()),
        PartialBlock::Whole(block) => match &**block {
            AssistantBlock::ToolCall(call) => call_shape(call, length(&call.partial_json)),
            // Text and thinking are `PartialBlock::Text`.
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) => BlockShape {
                kind: OTHER_KIND,
                length: 0,
                rest: 0,
            },
        },
    }
}

fn call_shape(call: &ToolCall, length: usize) -> BlockShape {
    let signature = call.thought_signature.as_ref();
    BlockShape {
        kind: CALL_KIND,
        length,
        rest: call.id.len() + signature.map_or(0, |text| text.len() + 1),
    }
}

/// The beginning of the block's JSON, up to its text.
fn opening(frame: &AssistantBlock) -> &'static str {
    match frame {
        AssistantBlock::Text(_) => r#"{"type":"text","text":""#,
        AssistantBlock::Thinking(_) => r#"{"type":"thinking","thinking":""#,
        AssistantBlock::ToolCall(_) => "",
    }
}

/// Appends text as the inside of a JSON string.
fn escape(text: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let start = out.len();
    serde_json::to_writer(&mut *out, text)?;
    out.pop();
    out.remove(start);
    Ok(())
}

#[cfg(test)]
impl IncrementalUpdate {
    /// Overwrites the first byte of the text, and returns the text.
    pub(super) fn overwrite_first(&mut self, byte: u8) -> String {
        let start = MESSAGE_START.len() + r#"{"type":"text","text":""#.len();
        self.head[start] = byte;
        String::from_utf8(self.head[start..].to_vec()).expect("the text is plain")
    }
}
