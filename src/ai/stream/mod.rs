//! Streams of answers: a request goes in, a stream of growing messages comes out, for all
//! providers.

pub(crate) mod call_pieces;
pub mod extension_stream;
pub(crate) mod message_builder;
pub mod partial_json;
mod partial_message;
pub mod tool_arguments;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::apis::options::{ApiOptions, Retention};
use super::auth::secret_value::Env;
use super::message::{AssistantBlock, AssistantMessage, Message, ToolCall};
use super::model::{Model, ThinkingBudgets, ThinkingLevel};
pub use partial_json::ValueEdit;
pub use partial_message::{
    ArgumentsDelta, BlockDelta, GrowingArguments, GrowingText, PartialBlock, PartialMessage,
};

/// All data for one call of a model.
#[derive(Clone)]
pub struct Request {
    pub model: Arc<Model>,
    pub system_prompt: Option<String>,
    pub messages: Vec<Message>,
    /// `None` sends no list of tools. Some APIs get an empty list.
    pub tools: Option<Vec<ToolSpec>>,
    pub options: StreamOptions,
    /// Cancelling ends the stream with stop reason `aborted` and drops the connection.
    pub cancel: CancellationToken,
}

impl Request {
    /// Returns the tools, or an empty list.
    pub fn tool_specs(&self) -> &[ToolSpec] {
        self.tools.as_deref().unwrap_or_default()
    }
}

/// A tool as models see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
}

/// Transport of streamed answers, for providers that offer a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    #[default]
    Sse,
    Websocket,
    WebsocketCached,
    Auto,
}

#[derive(Clone, Default)]
pub struct StreamOptions {
    pub api_key: Option<String>,
    /// Headers in addition to the model's own.
    pub headers: IndexMap<String, String>,
    /// `None` means `Off`.
    pub reasoning: Option<ThinkingLevel>,
    pub thinking_budgets: ThinkingBudgets,
    /// Limit of output tokens. Default: the smaller of the model's limit and 32,000.
    pub max_tokens: Option<u64>,
    /// If true, no defaults are added: options that are not set are left to the API (pi-ai's
    /// `stream`, as opposed to `streamSimple`).
    pub without_defaults: bool,
    pub temperature: Option<f64>,
    /// Whether tools are to be called, in the API's own terms.
    pub tool_choice: Option<Value>,
    /// Lets providers keep a prompt cache per session.
    pub session_id: Option<String>,
    /// Takes precedence over `PI_CACHE_RETENTION` in the environment.
    pub cache_retention: Option<Retention>,
    /// Metadata of this request; Anthropic takes a `user_id`.
    pub metadata: Map<String, Value>,
    /// Members of the request to an OpenAI-compatible API; they override those of the model.
    pub sampling_params: Map<String, Value>,
    /// Options that only one API has.
    pub api_options: ApiOptions,
    /// Replaces the environment of the process.
    pub env: Option<Env>,
    /// Number of retries after a failed request. Default: a number that depends on the API.
    pub max_retries: Option<u32>,
    /// Time limit for the start of the answer, in milliseconds. Default: no limit.
    pub timeout_ms: Option<u64>,
    /// Longest wait in milliseconds that a server may ask for before a retry; 0 means no limit.
    /// Default: [`MAX_RETRY_DELAY_MS`].
    pub max_retry_delay_ms: Option<u64>,
    /// Transport for APIs of extensions; built-in APIs use HTTP.
    pub transport: Option<Transport>,
    pub hooks: Option<Arc<dyn StreamHooks>>,
}

/// Default of [`StreamOptions::max_retry_delay_ms`] and of the setting `retry.maxDelayMs`.
pub const MAX_RETRY_DELAY_MS: u64 = 60_000;

impl StreamOptions {
    pub(super) fn env(&self) -> Env {
        self.env.clone().unwrap_or_else(Env::process)
    }

    pub(super) fn retention(&self) -> Retention {
        let from_env = || match self.env().get("PI_CACHE_RETENTION").as_deref() {
            Some("long") => Retention::Long,
            _ => Retention::Short,
        };
        self.cache_retention.unwrap_or_else(from_env)
    }

    /// Returns the session id if the provider may cache data for the session.
    pub(super) fn cached_session(&self) -> Option<&str> {
        let id = self.session_id.as_deref();
        id.filter(|_| self.retention() != Retention::None)
    }

    pub(super) fn is_too_long(&self, delay: Duration) -> bool {
        let limit = self.max_retry_delay_ms.unwrap_or(MAX_RETRY_DELAY_MS);
        limit > 0 && delay > Duration::from_millis(limit)
    }
}

/// Hooks that see and change the HTTP exchange.
#[async_trait]
pub trait StreamHooks: Send + Sync {
    /// Called with the provider's own request body just before it is sent. The result is sent
    /// instead; an error prevents the request.
    async fn payload(&self, model: &Model, payload: Value) -> Result<Value, String>;
    /// Called with status and headers (names in lower case) before the body is read. An error
    /// prevents reading the body.
    async fn response(
        &self,
        model: &Model,
        status: u16,
        headers: &IndexMap<String, String>,
    ) -> Result<(), String>;
    /// Returns true if [`Self::event`] is to be called.
    fn wants_events(&self) -> bool {
        false
    }
    /// Called with each event in the provider's own format, before it is decoded.
    async fn event(&self, _model: &Model, _data: Box<RawValue>) {}
}

/// One step of an answer. Serialised as `assistantMessageEvent` of `message_update`, with
/// `partial` added there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum AssistantEvent {
    Start,
    TextStart {
        content_index: usize,
    },
    TextDelta {
        content_index: usize,
        delta: String,
    },
    TextEnd {
        content_index: usize,
        content: String,
    },
    ThinkingStart {
        content_index: usize,
    },
    ThinkingDelta {
        content_index: usize,
        delta: String,
    },
    ThinkingEnd {
        content_index: usize,
        content: String,
    },
    #[serde(rename = "toolcall_start")]
    ToolCallStart {
        content_index: usize,
    },
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta {
        content_index: usize,
        delta: String,
    },
    #[serde(rename = "toolcall_end")]
    ToolCallEnd {
        content_index: usize,
        #[serde(serialize_with = "as_block")]
        #[cfg_attr(feature = "schema", schemars(with = "AssistantBlock"))]
        tool_call: ToolCall,
    },
}

/// Serialises the call with its `type`, as part of the message.
fn as_block<S: Serializer>(call: &ToolCall, serializer: S) -> Result<S::Ok, S::Error> {
    AssistantBlock::ToolCall(call.clone()).serialize(serializer)
}

/// An item of an [`AssistantStream`].
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all items are events: a box would cost every delta an allocation"
)]
pub enum StreamItem {
    /// The message has grown; `partial` is the message so far.
    Event {
        event: AssistantEvent,
        partial: PartialMessage,
    },
    /// The last item, which always comes. A failure is no error of the stream: the message then
    /// has stop reason `error` or `aborted`, the error text, and the content that had arrived.
    Done(Arc<AssistantMessage>),
}

/// The stream of an answer. It is bounded, so that a provider waits for a slow reader.
pub struct AssistantStream {
    items: mpsc::Receiver<StreamItem>,
}

impl AssistantStream {
    pub const CAPACITY: usize = 64;

    /// Returns the two ends. The writer sends [`StreamItem::Done`] exactly once, last.
    pub fn channel() -> (mpsc::Sender<StreamItem>, Self) {
        let (sender, items) = mpsc::channel(Self::CAPACITY);
        (sender, Self { items })
    }

    /// Waits for the first item and returns all that have arrived, at most `limit`. Returns none
    /// after `Done`.
    pub async fn next_many(&mut self, limit: usize) -> Vec<StreamItem> {
        let mut items = Vec::new();
        self.items.recv_many(&mut items, limit).await;
        items
    }

    /// Returns `None` after `Done`, or if the writer ended without it (a bug).
    pub async fn next(&mut self) -> Option<StreamItem> {
        self.items.recv().await
    }
}

/// One wire API, such as `anthropic-messages`: built in, or registered by an extension
/// (`registerProvider` with `streamSimple`).
pub trait Api: Send + Sync {
    /// Starts an answer. Never fails and never blocks; see [`StreamItem::Done`].
    fn stream(&self, request: Request) -> AssistantStream;
}
