//! Wire APIs of extensions: pi calls the extension's function and receives the message
//! event by event.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use indexmap::IndexMap;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::bridge::{BridgeHost, BridgeResult, parse, parse_stored};
use crate::lifecycle::generation::Generation;
use crate::registry::{ExtensionId, FunctionId};
use pi_ai::message::Message;
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::stream::extension_stream::{StreamEvent, StreamReplay};
use pi_ai::stream::{Api, AssistantStream, Request, StreamHooks, StreamItem};
use pi_tools::tool::ABORT_GRACE;

/// Capacity of a stream's channel, in batches of events.
const BATCH_CAPACITY: usize = 4;
/// A stream without events for this long counts as failed, like a silent connection.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(600);

/// The open streams.
#[derive(Default)]
pub(super) struct OpenStreams {
    open: Mutex<HashMap<u64, Arc<OpenStream>>>,
    tokens: AtomicU64,
}

struct OpenStream {
    events: mpsc::Sender<Vec<StreamEvent>>,
    model: Arc<Model>,
    hooks: Option<Arc<dyn StreamHooks>>,
}

#[derive(Deserialize)]
struct EventsArgs {
    token: u64,
    events: Vec<StreamEvent>,
}

#[derive(Deserialize)]
struct PayloadArgs {
    token: u64,
    #[serde(default)]
    payload: Value,
}

#[derive(Deserialize)]
struct ResponseArgs {
    token: u64,
    status: u16,
    #[serde(default)]
    headers: IndexMap<String, String>,
}

impl OpenStreams {
    fn get(&self, token: u64) -> Result<Arc<OpenStream>, HostError> {
        let stream = self.open.lock().get(&token).cloned();
        stream.ok_or_else(|| HostError::new("The request of this stream has ended"))
    }

    /// Serves the calls that JavaScript makes about a stream.
    pub(super) async fn serve(&self, method: &str, args: &str) -> BridgeResult {
        match method {
            "events" => {
                let args: EventsArgs = parse_stored(method, args)?;
                let sent = self.get(args.token)?.events.send(args.events).await;
                sent.map_err(|_| HostError::new("The request of this stream has ended"))?;
                Ok(Value::Null)
            }
            "payload" => {
                let args: PayloadArgs = parse(method, args)?;
                let stream = self.get(args.token)?;
                let Some(hooks) = &stream.hooks else {
                    return Ok(Value::Null);
                };
                let changed = hooks.payload(&stream.model, args.payload.clone()).await;
                let payload = changed.map_err(HostError::new)?;
                // JSON loses details of the payload, so an unchanged one is not sent back.
                Ok(match payload == args.payload {
                    true => Value::Null,
                    false => json!({ "payload": payload }),
                })
            }
            "response" => {
                let args: ResponseArgs = parse(method, args)?;
                let stream = self.get(args.token)?;
                if let Some(hooks) = &stream.hooks {
                    hooks
                        .response(&stream.model, args.status, &args.headers)
                        .await
                        .map_err(HostError::new)?;
                }
                Ok(Value::Null)
            }
            other => Err(HostError::new(format!("There is no provider.{other}"))),
        }
    }
}

/// A wire API that is a function of an extension.
#[derive(Clone)]
pub(super) struct ExtensionApi {
    host: Weak<BridgeHost>,
    extension: ExtensionId,
    function: FunctionId,
}

impl ExtensionApi {
    pub(super) fn new(
        host: Weak<BridgeHost>,
        extension: ExtensionId,
        function: FunctionId,
    ) -> Self {
        Self {
            host,
            extension,
            function,
        }
    }

    async fn run(self, request: Request, items: mpsc::Sender<StreamItem>) {
        let mut stream_replay =
            StreamReplay::new(&request.model, items.clone(), request.cancel.clone());
        let generation_and_host = self.host.upgrade();
        let generation_and_host = generation_and_host
            .and_then(|host| Some((host.provider_registrations.generation()?, host)));
        let Some((generation, host)) = generation_and_host else {
            let gone = format!(
                "The extension that provides \"{}\" is not loaded any more",
                request.model.provider
            );
            stream_replay.finish(Some(gone)).await;
            return;
        };
        let problem = self
            .forward_events(&generation, &host, &request, &items, &mut stream_replay)
            .await;
        stream_replay.finish(problem).await;
    }

    /// Forwards events until the message ends or is no longer wanted. Returns the error, if
    /// any.
    async fn forward_events(
        &self,
        generation: &Arc<Generation>,
        host: &BridgeHost,
        request: &Request,
        items: &mpsc::Sender<StreamItem>,
        stream_replay: &mut StreamReplay,
    ) -> Option<String> {
        let streams = &host.provider_registrations.streams;
        let token = streams.tokens.fetch_add(1, Ordering::Relaxed);
        let (events, mut batches) = mpsc::channel(BATCH_CAPACITY);
        let stream = OpenStream {
            events,
            model: Arc::clone(&request.model),
            hooks: request.options.hooks.clone(),
        };
        streams.open.lock().insert(token, Arc::new(stream));
        let mut closing = CloseGuard {
            streams,
            generation,
            token,
            over: false,
        };
        let args = call_args(self.extension, self.function, token, request);
        let call = generation.call("streamProvider", &args);
        tokio::pin!(call);
        let mut unwanted = false;
        let mut limit = Instant::now() + SILENCE_TIMEOUT;
        loop {
            tokio::select! {
                biased;
                Some(batch) = batches.recv() => {
                    if !unwanted {
                        limit = Instant::now() + SILENCE_TIMEOUT;
                    }
                    if !replay(stream_replay, batch).await {
                        return None;
                    }
                }
                result = &mut call => {
                    while let Ok(batch) = batches.try_recv() {
                        replay(stream_replay, batch).await;
                    }
                    closing.over = true;
                    return result.err().map(|failure| failure.plain());
                }
                () = wait_unwanted(request, items), if !unwanted => {
                    unwanted = true;
                    limit = Instant::now() + ABORT_GRACE;
                    abort_stream(generation, token);
                }
                () = tokio::time::sleep_until(limit) => {
                    return Some(format!(
                        "{}: no event for {} s",
                        host.registry.lock().path(self.extension),
                        SILENCE_TIMEOUT.as_secs()
                    ));
                }
            }
        }
    }
}

impl Api for ExtensionApi {
    fn stream(&self, request: Request) -> AssistantStream {
        let (items, stream) = AssistantStream::channel();
        tokio::spawn(self.clone().run(request, items));
        stream
    }
}

/// Replays a batch. Returns `false` when the stream has ended.
async fn replay(stream_replay: &mut StreamReplay, batch: Vec<StreamEvent>) -> bool {
    for event in batch {
        if !stream_replay.handle(event).await || stream_replay.has_ended() {
            return false;
        }
    }
    true
}

async fn wait_unwanted(request: &Request, items: &mpsc::Sender<StreamItem>) {
    tokio::select! {
        () = request.cancel.cancelled() => {}
        () = items.closed() => {}
    }
}

/// Makes the function's arguments, without functions and signals.
fn call_args(extension: ExtensionId, function: FunctionId, token: u64, request: &Request) -> Value {
    let options = &request.options;
    let level = options.reasoning.unwrap_or(ThinkingLevel::Off);
    let mut options_json = json!({});
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            options_json[name] = value;
        }
    };
    set("apiKey", json!(options.api_key));
    if !options.headers.is_empty() {
        set("headers", json!(options.headers));
    }
    match request.model.clamp_thinking(level) {
        ThinkingLevel::Off => {}
        level => set("reasoning", json!(level)),
    }
    if !options.thinking_budgets.is_empty() {
        set("thinkingBudgets", json!(options.thinking_budgets));
    }
    set("maxTokens", json!(options.max_tokens));
    set("temperature", json!(options.temperature));
    set("sessionId", json!(options.session_id));
    set("maxRetryDelayMs", json!(options.max_retry_delay_ms));
    set("transport", json!(options.transport));
    let messages: &[Message] = &request.messages;
    let mut context = json!({ "messages": messages, "tools": request.tool_specs() });
    if let Some(prompt) = &request.system_prompt {
        context["systemPrompt"] = json!(prompt);
    }
    json!({
        "extension": extension,
        "function": function,
        "token": token,
        "model": request.model,
        "context": context,
        "options": options_json,
        "hooked": options.hooks.is_some(),
    })
}

/// Closes the stream on drop: later events are refused, and the extension's signal fires.
struct CloseGuard<'a> {
    streams: &'a OpenStreams,
    generation: &'a Arc<Generation>,
    token: u64,
    over: bool,
}

impl Drop for CloseGuard<'_> {
    fn drop(&mut self) {
        self.streams.open.lock().remove(&self.token);
        if self.over {
            return;
        }
        abort_stream(self.generation, self.token);
    }
}

/// Tells the extension to abort, in a task because its thread may be busy.
fn abort_stream(generation: &Arc<Generation>, token: u64) {
    let generation = Arc::downgrade(generation);
    tokio::spawn(async move {
        if let Some(generation) = generation.upgrade() {
            // Fails only if the extension is gone.
            let _ = generation.call("abortStream", &token).await;
        }
    });
}
