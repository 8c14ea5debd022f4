//! `stream` and `complete` of pi-ai: an extension calls a model through pi's wire APIs,
//! with its own key or the one of the environment.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use indexmap::IndexMap;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::model_catalogue::env_api_key;
use super::session_args::parse_thinking_level;
use crate::bridge::{BridgeResult, parse};
use pi_agent::event::MessageUpdate;
use pi_ai::apis::options::{ApiOptions, Retention};
use pi_ai::apis::wire_api;
use pi_ai::auth::secret_value::Env;
use pi_ai::demo;
use pi_ai::extension_providers::ModelArgument;
use pi_ai::json::lenient::{headers, number, or_default};
use pi_ai::message::{AssistantMessage, Message, StopReason};
use pi_ai::model::{Model, ThinkingBudgets, ThinkingLevel};
use pi_ai::normalize::normalize;
use pi_ai::stream::{AssistantStream, Request, StreamHooks, StreamItem, StreamOptions, ToolSpec};

/// Maximum number of events sent to the bridge at once.
const EVENT_BATCH: usize = 64;

pub struct ModelStreams {
    /// Runs connections on the threads of pi.
    handle: Handle,
    open: Mutex<HashMap<u64, Arc<OpenStream>>>,
}

/// Reply of an extension's hook.
type HookReply = Result<Option<Value>, String>;

struct OpenStream {
    stream: tokio::sync::Mutex<AssistantStream>,
    requests: tokio::sync::Mutex<mpsc::Receiver<HookRequest>>,
    /// Requests to hooks without a reply yet.
    open_requests: Mutex<HashMap<u64, oneshot::Sender<HookReply>>>,
    cancel: CancellationToken,
}

/// Aborts the request when the extension's isolate ends.
impl Drop for OpenStream {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[derive(Deserialize)]
struct StreamArgs {
    /// Whether the extension called pi-ai's `streamSimple`, which chooses unspecified options.
    simple: bool,
    model: ModelArgument,
    /// API to use instead of the model's.
    #[serde(default)]
    api: Option<String>,
    context: Context,
    /// Parsed as [`StreamOptionArgs`] and [`ApiOptions`].
    #[serde(default, deserialize_with = "or_default")]
    options: Map<String, Value>,
    /// The functions that are among the options.
    #[serde(default)]
    hooks: Hooks,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Hooks {
    #[serde(default)]
    payload: bool,
    #[serde(default)]
    response: bool,
}

/// A call of the extension's `onPayload` or `onResponse`.
struct HookRequest {
    args: Value,
    reply: oneshot::Sender<HookReply>,
}

/// Calls the functions among the options.
struct ExtensionHooks {
    hooks: Hooks,
    requests: mpsc::Sender<HookRequest>,
}

impl ExtensionHooks {
    /// Calls a hook. An error is what the extension threw; the request must not continue.
    async fn call(&self, args: Value) -> HookReply {
        let (reply, replied) = oneshot::channel();
        let request = HookRequest { args, reply };
        let gone = || "The extension does not answer any more".to_owned();
        self.requests.send(request).await.map_err(|_| gone())?;
        replied.await.map_err(|_| gone())?
    }
}

#[async_trait]
impl StreamHooks for ExtensionHooks {
    async fn payload(&self, _model: &Model, payload: Value) -> Result<Value, String> {
        if !self.hooks.payload {
            return Ok(payload);
        }
        let changed = self.call(json!({ "payload": payload })).await?;
        Ok(changed.unwrap_or(payload))
    }

    async fn response(
        &self,
        _model: &Model,
        status: u16,
        headers: &IndexMap<String, String>,
    ) -> Result<(), String> {
        if self.hooks.response {
            let response = json!({ "status": status, "headers": headers });
            self.call(json!({ "response": response })).await?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    #[serde(default)]
    system_prompt: Option<String>,
    /// Messages of a session, or written by hand.
    messages: Vec<Value>,
    #[serde(default)]
    tools: Option<Vec<Tool>>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    description: String,
    #[serde(default)]
    parameters: Option<Value>,
}

/// Options with the same names for all APIs.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StreamOptionArgs {
    api_key: Option<String>,
    #[serde(deserialize_with = "headers")]
    headers: Option<IndexMap<String, String>>,
    /// Thinking level of the `Simple` functions and of Bedrock.
    reasoning: Option<String>,
    /// Thinking level of the other OpenAI functions.
    reasoning_effort: Option<String>,
    tool_choice: Option<Value>,
    #[serde(deserialize_with = "or_default")]
    thinking_budgets: ThinkingBudgets,
    #[serde(deserialize_with = "number")]
    max_tokens: Option<f64>,
    temperature: Option<f64>,
    session_id: Option<String>,
    cache_retention: Option<Retention>,
    #[serde(deserialize_with = "or_default")]
    metadata: Map<String, Value>,
    #[serde(deserialize_with = "or_default")]
    sampling_params: Map<String, Value>,
    /// Variables that override those of the environment.
    #[serde(deserialize_with = "headers")]
    env: Option<IndexMap<String, String>>,
    max_retry_delay_ms: Option<u64>,
    max_retries: Option<u32>,
    timeout_ms: Option<u64>,
}

impl StreamOptionArgs {
    /// Returns the thinking level. The `Simple` functions have one option for all APIs; of
    /// the other functions each API reads its own option.
    fn thinking_level(&self, api: &str, simple: bool) -> Result<Option<ThinkingLevel>, HostError> {
        let name = match api {
            _ if simple => self.reasoning.as_deref(),
            "bedrock-converse-stream" => self.reasoning.as_deref(),
            api if api.starts_with("openai-") || api.starts_with("azure-") => {
                self.reasoning_effort.as_deref()
            }
            // Other APIs read their options from [`ApiOptions`].
            _ => None,
        };
        name.map(parse_thinking_level).transpose()
    }
}

/// APIs that find credentials themselves if no key is given.
const KEYLESS_APIS: [&str; 2] = ["bedrock-converse-stream", "google-vertex"];

fn parse_options(options: &Value) -> Result<StreamOptionArgs, HostError> {
    serde_path_to_error::deserialize(options).map_err(|error| {
        let (name, reason) = (error.path(), error.inner());
        HostError::new(format!("The option \"{name}\": {reason}"))
    })
}

#[derive(Deserialize)]
struct HookReplyArgs {
    id: u64,
    ask: u64,
    #[serde(default)]
    payload: Option<Value>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
struct StreamId {
    id: u64,
}

impl ModelStreams {
    pub fn new(handle: Handle) -> Self {
        Self {
            handle,
            open: Mutex::default(),
        }
    }

    pub fn open(&self, method: &str, args: &str, id: u64) -> BridgeResult {
        let stream_args: StreamArgs = parse(method, args)?;
        let StreamArgs {
            model,
            api: name,
            context,
            options: option_map,
            hooks,
            simple,
        } = stream_args;
        let model = model.into_model();
        let name = name.as_ref().unwrap_or(&model.api);
        let api = wire_api(name)
            .ok_or_else(|| HostError::new(format!("No API provider registered for api: {name}")))?;
        let (requests, waiting) = mpsc::channel(1);
        let hooked = hooks.payload || hooks.response;
        let extension_hooks = hooked.then(|| Arc::new(ExtensionHooks { hooks, requests }) as _);
        let option_map = Value::Object(option_map);
        let options = parse_options(&option_map)?;
        let api_options = match simple {
            true => ApiOptions::default(),
            false => ApiOptions::read(name, &option_map).map_err(HostError::new)?,
        };
        let reasoning = options.thinking_level(name, simple)?;
        let api_key = options.api_key.or_else(|| env_api_key(&model.provider));
        let does_without = KEYLESS_APIS.contains(&name.as_str()) || demo::is_demo(&model);
        if api_key.is_none() && !does_without {
            let error = format!("No API key for provider: {}", model.provider);
            return Err(HostError::new(error));
        }
        let cancel = CancellationToken::new();
        let spec = |tool: Tool| ToolSpec {
            name: tool.name,
            description: tool.description,
            parameters: (tool.parameters)
                .unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
        };
        let request = Request {
            model: Arc::new(model),
            system_prompt: context.system_prompt,
            messages: model_messages(context.messages)?,
            tools: context
                .tools
                .map(|tools| tools.into_iter().map(spec).collect()),
            options: StreamOptions {
                api_key,
                headers: options.headers.unwrap_or_default(),
                reasoning,
                thinking_budgets: options.thinking_budgets,
                // A float becomes the nearest integer that fits.
                max_tokens: options.max_tokens.map(|tokens| tokens as u64),
                without_defaults: !simple,
                temperature: options.temperature,
                tool_choice: options.tool_choice,
                session_id: options.session_id,
                cache_retention: options.cache_retention,
                metadata: options.metadata,
                sampling_params: options.sampling_params,
                api_options,
                env: (options.env)
                    .map(|first| Env::process().with_overrides(first.into_iter().collect())),
                max_retry_delay_ms: options.max_retry_delay_ms,
                max_retries: options.max_retries,
                timeout_ms: options.timeout_ms,
                transport: None,
                hooks: extension_hooks,
            },
            cancel: cancel.clone(),
        };
        let stream = {
            let _here = self.handle.enter();
            api.stream(request)
        };
        let open = OpenStream {
            stream: tokio::sync::Mutex::new(stream),
            requests: tokio::sync::Mutex::new(waiting),
            open_requests: Mutex::default(),
            cancel,
        };
        self.open.lock().insert(id, Arc::new(open));
        Ok(json!({ "id": id }))
    }

    /// Returns at least one event; none when the stream is over.
    pub async fn next_events(&self, method: &str, args: &str) -> BridgeResult {
        let StreamId { id } = parse(method, args)?;
        let open = self.open.lock().get(&id).cloned();
        let Some(open) = open else {
            return Ok(json!([]));
        };
        let mut stream = open.stream.lock().await;
        let mut requests = open.requests.lock().await;
        let items = tokio::select! {
            biased;
            Some(request) = requests.recv() => return Ok(json!([open.to_event(request)])),
            items = stream.next_many(EVENT_BATCH) => items,
        };
        let over = items
            .last()
            .is_none_or(|item| matches!(item, StreamItem::Done(_)));
        if over {
            self.open.lock().remove(&id);
        }
        items.iter().map(to_json).collect()
    }

    /// Passes on the reply of `onPayload` or `onResponse`.
    pub fn respond(&self, method: &str, args: &str) -> BridgeResult {
        let args: HookReplyArgs = parse(method, args)?;
        let open = self.open.lock().get(&args.id).cloned();
        let reply = open.and_then(|open| open.open_requests.lock().remove(&args.ask));
        if let Some(reply) = reply {
            let outcome = match args.error {
                Some(error) => Err(error),
                None => Ok(args.payload),
            };
            // The request may have been aborted.
            let _ = reply.send(outcome);
        }
        Ok(Value::Null)
    }

    /// Aborts a stream, which then ends with an `error` event.
    pub fn abort(&self, method: &str, args: &str) -> BridgeResult {
        let StreamId { id } = parse(method, args)?;
        if let Some(open) = self.open.lock().get(&id) {
            open.cancel.cancel();
        }
        Ok(Value::Null)
    }
}

impl OpenStream {
    /// Makes the event that carries a hook request to the extension.
    fn to_event(&self, request: HookRequest) -> Value {
        let mut open = self.open_requests.lock();
        let number = open.keys().max().map_or(0, |last| last + 1);
        open.insert(number, request.reply);
        let mut args = request.args;
        args["ask"] = json!(number);
        json!({ "type": "question", "question": args })
    }
}

/// Parses the messages that a model can get. Extensions pass on all messages of a session.
fn model_messages(messages: Vec<Value>) -> Result<Vec<Message>, HostError> {
    let is_visible = |message: &Value| {
        let role = message["role"].as_str().unwrap_or_default();
        matches!(role, "user" | "assistant" | "toolResult")
    };
    let numbered = messages.into_iter().enumerate();
    let visible = numbered.filter(|(_, message)| is_visible(message));
    let read = visible.map(|(index, mut message)| {
        normalize(&mut message);
        serde_json::from_value(message)
            .map_err(|error| HostError::new(format!("context.messages[{index}]: {error}")))
    });
    read.collect()
}

/// Converts an item to an event of pi-ai.
fn to_json(item: &StreamItem) -> BridgeResult {
    let value = match item {
        StreamItem::Event { event, partial } => {
            let update = MessageUpdate {
                message: partial.clone(),
                event: event.clone(),
            };
            serde_json::to_value(update).map(|mut update| update["assistantMessageEvent"].take())
        }
        StreamItem::Done(message) => message_json(message).map(|whole| match message.stop_reason {
            reason @ (StopReason::Error | StopReason::Aborted) => {
                json!({ "type": "error", "reason": reason, "error": whole })
            }
            reason => json!({ "type": "done", "reason": reason, "message": whole }),
        }),
    };
    value.map_err(|error| HostError::new(error.to_string()))
}

fn message_json(message: &AssistantMessage) -> serde_json::Result<Value> {
    serde_json::to_value(Message::Assistant(message.clone()))
}
