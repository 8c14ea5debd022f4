//! Answers of the scripted model, independent of the wire format.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

/// One answer to one request, and the element of a script file, whose member names are in
/// [`Script`].
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Script")]
pub struct Answer {
    pub(crate) kind: Kind,
    pub(crate) headers: Vec<(String, String)>,
    /// Time between two deltas.
    pub(crate) delay: Duration,
    /// Whether the first delta waits for [`ModelServer::release`](crate::ModelServer::release).
    pub(crate) is_held: bool,
    /// Size of the pieces that the body is sent in; with 0, each event is a piece.
    pub(crate) piece: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Stream(Reply),
    /// An HTTP error. Without a body, one in the shape of the API with the message.
    Status {
        status: u16,
        message: String,
        body: Option<Value>,
    },
    /// Bytes that are declared to be an event stream.
    Raw(Bytes),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub blocks: Vec<Block>,
    pub stop: Option<Stop>,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub ending: Ending,
}

/// One part of an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Block {
    /// One delta per element.
    Text(#[serde(deserialize_with = "deltas")] Vec<String>),
    Thinking(#[serde(deserialize_with = "deltas")] Vec<String>),
    Tool {
        name: String,
        #[serde(default = "no_arguments")]
        arguments: Value,
    },
}

/// Why the model stopped. By default `ToolUse` when there is a tool call, and `EndTurn` otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stop {
    EndTurn,
    ToolUse,
    Length,
}

#[derive(Clone, Debug, Default)]
pub(crate) enum Ending {
    #[default]
    Complete,
    /// After this many deltas the connection is closed without a proper end.
    Cut(usize),
    /// After this many deltas nothing comes any more.
    Stall(usize),
    /// After all blocks, an error event instead of the end.
    Error(String),
}

impl Answer {
    pub fn text(text: &str) -> Self {
        Self::blocks([Block::Text(split(text))])
    }

    /// `count` deltas with the same text.
    pub fn deltas(count: usize, text: &str) -> Self {
        Self::blocks([Block::Text(vec![text.to_owned(); count])])
    }

    pub fn thinking(text: &str) -> Self {
        Self::blocks([Block::Thinking(split(text))])
    }

    pub fn tool(name: &str, arguments: Value) -> Self {
        Self::tools([(name, arguments)])
    }

    /// Several tool calls in one turn.
    pub fn tools<const N: usize>(calls: [(&str, Value); N]) -> Self {
        let block = |(name, arguments): (&str, Value)| Block::Tool {
            name: name.to_owned(),
            arguments,
        };
        Self::blocks(calls.map(block))
    }

    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::from_kind(Kind::Stream(Reply {
            blocks: blocks.into_iter().collect(),
            input_tokens: 10,
            output_tokens: 5,
            ..Reply::default()
        }))
    }

    /// An HTTP error in the shape of the API.
    pub fn error(status: u16, message: &str) -> Self {
        Self::from_kind(Kind::Status {
            status,
            message: message.to_owned(),
            body: None,
        })
    }

    /// An HTTP error with its own body.
    pub fn status(status: u16, body: Value) -> Self {
        Self::from_kind(Kind::Status {
            status,
            message: String::new(),
            body: Some(body),
        })
    }

    /// Bytes that are sent as they are, as if they were an event stream.
    pub fn malformed(body: impl Into<Bytes>) -> Self {
        Self::from_kind(Kind::Raw(body.into()))
    }

    /// Accepts the request, begins an answer and then says nothing.
    pub fn stall() -> Self {
        Self::text("never said").stall_after(0)
    }

    fn from_kind(kind: Kind) -> Self {
        Self {
            kind,
            headers: Vec::new(),
            delay: Duration::ZERO,
            is_held: false,
            piece: 0,
        }
    }

    pub fn then_text(self, text: &str) -> Self {
        self.then(Block::Text(split(text)))
    }

    pub fn then_thinking(self, text: &str) -> Self {
        self.then(Block::Thinking(split(text)))
    }

    pub fn then_tool(self, name: &str, arguments: Value) -> Self {
        self.then(Block::Tool {
            name: name.to_owned(),
            arguments,
        })
    }

    pub fn then(self, block: Block) -> Self {
        self.reply(|reply| reply.blocks.push(block))
    }

    pub fn stop(self, stop: Stop) -> Self {
        self.reply(|reply| reply.stop = Some(stop))
    }

    pub fn usage(self, input_tokens: u64, output_tokens: u64) -> Self {
        self.reply(|reply| {
            reply.input_tokens = input_tokens;
            reply.output_tokens = output_tokens;
        })
    }

    /// Breaks the connection after this many deltas.
    pub fn cut_after(self, deltas: usize) -> Self {
        self.reply(|reply| reply.ending = Ending::Cut(deltas))
    }

    /// Sends nothing after this many deltas, until the client hangs up.
    pub fn stall_after(self, deltas: usize) -> Self {
        self.reply(|reply| reply.ending = Ending::Stall(deltas))
    }

    /// Sends an error event in the place of the end.
    pub fn then_error(self, message: &str) -> Self {
        self.reply(|reply| reply.ending = Ending::Error(message.to_owned()))
    }

    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits this many milliseconds before every delta.
    pub fn delay(mut self, milliseconds: u64) -> Self {
        self.delay = Duration::from_millis(milliseconds);
        self
    }

    /// Sends no delta before [`ModelServer::release`](crate::ModelServer::release).
    pub fn held(mut self) -> Self {
        self.is_held = true;
        self
    }

    /// Sends the body in pieces of this many bytes, wherever they end.
    pub fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    fn reply(mut self, change: impl FnOnce(&mut Reply)) -> Self {
        match &mut self.kind {
            Kind::Stream(reply) => change(reply),
            other => panic!("only a streamed answer has blocks and an end, this is {other:?}"),
        }
        self
    }
}

impl Reply {
    pub fn stop(&self) -> Stop {
        let calls_tools = |block: &Block| matches!(block, Block::Tool { .. });
        self.stop.unwrap_or(if self.blocks.iter().any(calls_tools) {
            Stop::ToolUse
        } else {
            Stop::EndTurn
        })
    }
}

/// Cuts a text into deltas as a model would send them: a few characters each, never in the middle
/// of a character.
pub(crate) fn split(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(12).map(String::from_iter).collect()
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}

fn deltas<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        Whole(String),
        Deltas(Vec<String>),
    }
    Ok(match Text::deserialize(deserializer)? {
        Text::Whole(text) => split(&text),
        Text::Deltas(deltas) => deltas,
    })
}

/// The form of an answer in a script file: `{"blocks": [{"thinking": "…"}, {"text": "…"}, {"tool":
/// {"name": "bash", "arguments": {}}}]}`, `{"status": 429, "message": "…"}` or `{"raw": "…"}`, each
/// with options.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Script {
    blocks: Option<Vec<Block>>,
    status: Option<u16>,
    message: Option<String>,
    body: Option<Value>,
    raw: Option<String>,
    stop: Option<Stop>,
    /// `[input, output]`
    usage: Option<(u64, u64)>,
    cut_after: Option<usize>,
    stall_after: Option<usize>,
    error: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    delay: u64,
}

impl TryFrom<Script> for Answer {
    type Error = String;

    fn try_from(script: Script) -> Result<Self, String> {
        let mut answer = match (script.blocks, script.status, script.raw) {
            (Some(blocks), None, None) => Self::blocks(blocks),
            (None, Some(status), None) => match script.body {
                Some(body) => Self::status(status, body),
                None => Self::error(status, &script.message.unwrap_or_default()),
            },
            (None, None, Some(raw)) => Self::malformed(raw),
            _ => return Err("an answer has one of `blocks`, `status` and `raw`".into()),
        };
        if let Kind::Stream(reply) = &mut answer.kind {
            reply.stop = script.stop;
            if let Some((input, output)) = script.usage {
                (reply.input_tokens, reply.output_tokens) = (input, output);
            }
            reply.ending = match (script.cut_after, script.stall_after, script.error) {
                (None, None, None) => Ending::Complete,
                (Some(deltas), None, None) => Ending::Cut(deltas),
                (None, Some(deltas), None) => Ending::Stall(deltas),
                (None, None, Some(message)) => Ending::Error(message),
                _ => return Err("an answer ends in one way only".into()),
            };
        }
        for (name, value) in script.headers {
            let value = value.as_str().ok_or("a header's value is a string")?;
            answer = answer.with_header(&name, value);
        }
        Ok(answer.delay(script.delay))
    }
}
