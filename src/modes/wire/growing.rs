//! `message_update` repeats the message so far, twice. What was said before is not
//! written into JSON again for that: only the new piece of text is escaped, and the
//! bytes of what came before are copied.

use std::io::{self, Write};

use serde_json::{Map, Value};

use super::arguments::Arguments;
use crate::agent::event::MessageUpdate;
use crate::ai::message::{AssistantBlock, ToolCall, WithRole};
use crate::ai::stream::{AssistantEvent, Partial, PartialBlock, SharedText};

/// Where an answer's blocks stand in its JSON.
const CONTENT: &str = r#"{"role":"assistant","content":["#;

/// What stands around what grows of a call.
const ARGUMENTS: &[u8] = br#","arguments":{}"#;
const EMPTY: &[u8] = b"{}";
const CALL_END: &[u8] = br#""}"#;

const TEXT: u8 = 0;
const THINKING: u8 = 1;
const CALL: u8 = 2;
const OTHER: u8 = 3;

/// The message of the last update, if the next one can only go on with it.
#[derive(Default)]
pub struct Growing {
    /// The JSON up to the end of the text that grows, its closing quote left out; of a
    /// call up to its arguments.
    head: Vec<u8>,
    /// The arguments of a call that grows, and then all up to the end of their text.
    call: Option<(Arguments, Vec<u8>)>,
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
        out.write_all(br#","usage":"#)?;
        serde_json::to_writer(&mut *out, update.message.usage())?;
        out.write_all(br#","assistantMessageEvent":"#)?;
        let mut step = serde_json::to_vec(&update.step())?;
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
        if let Some((arguments, text)) = &self.call {
            arguments.write(out)?;
            out.write_all(text)?;
        }
        out.write_all(&self.tail)
    }

    fn grow(&mut self, update: &MessageUpdate) -> io::Result<()> {
        let message = &update.message;
        let Some(delta) = piece(&update.event, message.blocks()) else {
            self.open = None;
            return self.anew(message);
        };
        let now = Open {
            timestamp: message.around().timestamp,
            blocks: message.blocks().iter().map(mark).collect(),
        };
        let fits = match self.open.take().filter(|then| then.goes_on(&now, delta)) {
            Some(_) => self.add(delta)?,
            None => self.begin(message.blocks())?,
        };
        if !fits {
            return self.anew(message);
        }
        self.finish(message)?;
        self.open = Some(now);
        Ok(())
    }

    /// All of it, and nothing to go on with.
    fn anew(&mut self, message: &Partial) -> io::Result<()> {
        self.tail.clear();
        self.head.clear();
        self.call = None;
        let message = message.message();
        Ok(serde_json::to_writer(
            &mut self.head,
            &WithRole::of(&message),
        )?)
    }

    /// `false` if it does not fit to what is there.
    fn add(&mut self, delta: &str) -> io::Result<bool> {
        match &mut self.call {
            None => escape(delta, &mut self.head)?,
            Some((arguments, text)) => {
                escape(delta, text)?;
                return arguments.push(delta);
            }
        }
        Ok(true)
    }

    /// Everything up to where the text ends that grows, which is that of the last block.
    fn begin(&mut self, blocks: &[PartialBlock]) -> io::Result<bool> {
        self.head.clear();
        self.call = None;
        self.head.extend_from_slice(CONTENT.as_bytes());
        let Some((last, before)) = blocks.split_last() else {
            return Ok(true);
        };
        for block in before {
            serde_json::to_writer(&mut self.head, &block.whole())?;
            self.head.push(b',');
        }
        match last {
            PartialBlock::Text { hull, text } => {
                self.head.extend_from_slice(opening(hull).as_bytes());
                text.read(|text| escape(text, &mut self.head))?;
                Ok(true)
            }
            PartialBlock::Call { hull, json } => self.begin_call(hull, json),
            PartialBlock::Still(_) => Ok(true),
        }
    }

    fn begin_call(&mut self, hull: &ToolCall, json: &SharedText) -> io::Result<bool> {
        // As the type writes it, with nothing in it; `{}` and `""` are where they are.
        let empty = AssistantBlock::ToolCall(ToolCall {
            arguments: Value::Object(Map::new()),
            partial_json: Some(String::new()),
            ..hull.clone()
        });
        let shell = serde_json::to_vec(&empty)?;
        // It has quotes that a name could only have escaped.
        let Some(at) = memchr::memmem::find(&shell, ARGUMENTS) else {
            return Ok(false);
        };
        let at = at + ARGUMENTS.len();
        self.head.extend_from_slice(&shell[..at - EMPTY.len()]);
        let mut text = shell[at..shell.len() - CALL_END.len()].to_vec();
        let mut arguments = Arguments::default();
        let fits = json.read(|json| {
            escape(json, &mut text)?;
            arguments.push(json)
        });
        self.call = Some((arguments, text));
        fits
    }

    /// The text's closing quote and everything after it, which is short: written anew,
    /// since it may change at any time.
    fn finish(&mut self, message: &Partial) -> io::Result<()> {
        self.tail.clear();
        match message.blocks().last() {
            Some(PartialBlock::Text { hull, .. }) => {
                let rest = serde_json::to_vec(&**hull)?;
                self.tail.extend_from_slice(&rest[opening(hull).len()..]);
            }
            Some(PartialBlock::Call { .. }) => self.tail.extend_from_slice(CALL_END),
            Some(PartialBlock::Still(_)) | None => {}
        }
        let rest = serde_json::to_vec(&WithRole::of(message.around()))?;
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

/// What the last block has grown by; `None` where the message is not the one before with
/// more at its end.
fn piece<'a>(event: &'a AssistantEvent, blocks: &[PartialBlock]) -> Option<&'a str> {
    let (index, delta, kind) = match event {
        AssistantEvent::TextDelta {
            content_index,
            delta,
        } => (*content_index, delta.as_str(), TEXT),
        AssistantEvent::ThinkingDelta {
            content_index,
            delta,
        } => (*content_index, delta.as_str(), THINKING),
        AssistantEvent::ToolCallDelta {
            content_index,
            delta,
        } => (*content_index, delta.as_str(), CALL),
        _ => return None,
    };
    let last = blocks.last()?;
    let (PartialBlock::Text { text, .. } | PartialBlock::Call { json: text, .. }) = last else {
        return None;
    };
    let fits = index + 1 == blocks.len()
        && mark(last).kind == kind
        && text.read(|text| text.ends_with(delta));
    fits.then_some(delta)
}

fn mark(block: &PartialBlock) -> Mark {
    let length = |text: &Option<String>| text.as_ref().map_or(0, |text| text.len() + 1);
    match block {
        PartialBlock::Text { hull, text } => match &**hull {
            AssistantBlock::Thinking(thinking) => Mark {
                kind: THINKING,
                length: text.len(),
                rest: length(&thinking.thinking_signature) * 2
                    + usize::from(thinking.redacted.is_some()),
            },
            AssistantBlock::Text(hull) => Mark {
                kind: TEXT,
                length: text.len(),
                rest: length(&hull.text_signature),
            },
            AssistantBlock::ToolCall(call) => mark_call(call, text.len()),
        },
        PartialBlock::Call { hull, json } => mark_call(hull, json.len()),
        PartialBlock::Still(block) => match &**block {
            AssistantBlock::ToolCall(call) => mark_call(call, length(&call.partial_json)),
            // Such blocks are texts.
            AssistantBlock::Text(_) | AssistantBlock::Thinking(_) => Mark {
                kind: OTHER,
                length: 0,
                rest: 0,
            },
        },
    }
}

fn mark_call(call: &ToolCall, length: usize) -> Mark {
    let signature = call.thought_signature.as_ref();
    Mark {
        kind: CALL,
        length,
        rest: call.id.len() + signature.map_or(0, |text| text.len() + 1),
    }
}

/// How the block's JSON begins, up to its text.
fn opening(hull: &AssistantBlock) -> &'static str {
    match hull {
        AssistantBlock::Text(_) => r#"{"type":"text","text":""#,
        AssistantBlock::Thinking(_) => r#"{"type":"thinking","thinking":""#,
        AssistantBlock::ToolCall(_) => "",
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
