//! How an answer arrives: a request goes in, a stream of growing messages comes
//! out, whatever the provider.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::api_options::{ApiOptions, Retention};
use super::message::{AssistantBlock, AssistantMessage, Message, ToolCall};
use super::model::{Model, ThinkingBudgets, ThinkingLevel};
pub(crate) use super::partial::SharedText;
pub use super::partial::{Grown, Partial, PartialBlock};
use super::secret_value::Env;

/// Everything one call of a model needs.
#[derive(Clone)]
pub struct Request {
    pub model: Arc<Model>,
    pub system_prompt: Option<String>,
    pub messages: Vec<Message>,
    /// `None`: nothing is said of tools. Some APIs are told of an empty list.
    pub tools: Option<Vec<ToolSpec>>,
    pub options: StreamOptions,
    /// Cancelling it ends the stream with stop reason `aborted`, and drops the
    /// connection.
    pub cancel: CancellationToken,
}

impl Request {
    /// Those that there are.
    pub fn tool_specs(&self) -> &[ToolSpec] {
        self.tools.as_deref().unwrap_or_default()
    }
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
}

/// How streamed answers travel where a provider offers a choice.
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
    /// In addition to the model's own.
    pub headers: IndexMap<String, String>,
    /// `None` is `Off`.
    pub reasoning: Option<ThinkingLevel>,
    pub thinking_budgets: ThinkingBudgets,
    /// Default: the lesser of the model's limit and 32,000.
    pub max_tokens: Option<u64>,
    /// Nothing is chosen for the caller: what these options do not say is left to
    /// the API (pi-ai's `stream`, as opposed to `streamSimple`).
    pub as_told: bool,
    pub temperature: Option<f64>,
    /// Whether tools are to be called, in the words of the API.
    pub tool_choice: Option<Value>,
    /// Lets providers keep a prompt cache per session.
    pub session_id: Option<String>,
    /// Before the environment's `PI_CACHE_RETENTION`.
    pub cache_retention: Option<Retention>,
    /// Of this request; Anthropic takes a `user_id`.
    pub metadata: Map<String, Value>,
    /// Members of the request to an OpenAI-compatible API, over those of the model.
    pub sampling_params: Map<String, Value>,
    /// What one API knows and the others do not.
    pub of_api: ApiOptions,
    /// Instead of the process's.
    pub env: Option<Env>,
    /// How often a request that failed is sent again. Default: what the API is known to
    /// do well with.
    pub max_retries: Option<u32>,
    /// For the beginning of the answer, in milliseconds. Default: no limit.
    pub timeout_ms: Option<u64>,
    /// A server that asks for a longer wait is not asked again, in milliseconds; 0 is no
    /// limit. Default: [`MAX_RETRY_DELAY_MS`].
    pub max_retry_delay_ms: Option<u64>,
    /// For the APIs of extensions: those of the program use HTTP.
    pub transport: Option<Transport>,
    pub hooks: Option<Arc<dyn StreamHooks>>,
}

/// [`StreamOptions::max_retry_delay_ms`], and the setting `retry.maxDelayMs`.
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

    /// The session, where the provider may keep something for it.
    pub(super) fn cached_session(&self) -> Option<&str> {
        let id = self.session_id.as_deref();
        id.filter(|_| self.retention() != Retention::None)
    }

    pub(super) fn is_too_long(&self, delay: Duration) -> bool {
        let limit = self.max_retry_delay_ms.unwrap_or(MAX_RETRY_DELAY_MS);
        limit > 0 && delay > Duration::from_millis(limit)
    }
}

/// What the outside may see and change of the HTTP exchange.
#[async_trait]
pub trait StreamHooks: Send + Sync {
    /// The provider's own request body, just before it is sent; the answer is
    /// sent in its place. An error is why nothing is sent.
    async fn payload(&self, model: &Model, payload: Value) -> Result<Value, String>;
    /// Status and headers (names in lower case), before the body is read. An error is
    /// why it is not read.
    async fn response(
        &self,
        model: &Model,
        status: u16,
        headers: &IndexMap<String, String>,
    ) -> Result<(), String>;
    /// Whether [`Self::event`] is to be called.
    fn wants_events(&self) -> bool {
        false
    }
    /// An event of the answer in the provider's own words, before it is read.
    async fn event(&self, _model: &Model, _data: Box<RawValue>) {}
}

/// One step of an answer. Serialised as `assistantMessageEvent` of
/// `message_update`, there with `partial` added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
        #[cfg_attr(test, schemars(with = "AssistantBlock"))]
        tool_call: ToolCall,
    },
}

/// With its `type`, as it stands in the message.
fn as_block<S: Serializer>(call: &ToolCall, serializer: S) -> Result<S::Ok, S::Error> {
    AssistantBlock::ToolCall(call.clone()).serialize(serializer)
}

/// What an [`AssistantStream`] yields.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all items are events: a box would cost every delta an allocation"
)]
pub enum StreamItem {
    /// Something was added; `partial` is the message so far.
    Event {
        event: AssistantEvent,
        partial: Partial,
    },
    /// The last item, always there. Failures are not an error of the stream:
    /// the message then has stop reason `error` or `aborted`, the text that
    /// says why, and whatever had arrived.
    Done(Arc<AssistantMessage>),
}

/// Bounded: a provider waits for a slow reader.
pub struct AssistantStream {
    items: mpsc::Receiver<StreamItem>,
}

impl AssistantStream {
    pub const CAPACITY: usize = 64;

    /// The two ends. The writer sends [`StreamItem::Done`] exactly once, last.
    pub fn channel() -> (mpsc::Sender<StreamItem>, Self) {
        let (sender, items) = mpsc::channel(Self::CAPACITY);
        (sender, Self { items })
    }

    /// What has arrived, at most `limit` items; waits for the first. Empty after
    /// `Done`.
    pub async fn next_many(&mut self, limit: usize) -> Vec<StreamItem> {
        let mut items = Vec::new();
        self.items.recv_many(&mut items, limit).await;
        items
    }

    /// `None` after `Done`, or if the writer died without it (a bug).
    pub async fn next(&mut self) -> Option<StreamItem> {
        self.items.recv().await
    }
}

/// One wire API, such as `anthropic-messages`: one of ours, or one that an extension
/// brings (`registerProvider` with `streamSimple`).
pub trait Api: Send + Sync {
    /// Never fails and never blocks; see [`StreamItem::Done`].
    fn stream(&self, request: Request) -> AssistantStream;
}
