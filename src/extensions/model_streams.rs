//! `stream` and `complete` of pi-ai: an extension asks a model itself, through the
//! program's wire APIs and with the key it gives, or the environment's.

use std::collections::HashMap;
use std::sync::Arc;

use indexmap::IndexMap;
use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::host::{Answer, parse};
use super::services::env_api_key;
use crate::agent::event::MessageUpdate;
use crate::ai::api::api;
use crate::ai::demo;
use crate::ai::message::{AssistantMessage, Message, StopReason};
use crate::ai::model::{Model, ThinkingBudgets, ThinkingLevel};
use crate::ai::stream::{AssistantStream, Request, StreamItem, StreamOptions, ToolSpec};

/// Events that cross at once.
const BATCH: usize = 64;

pub struct ModelStreams {
    /// The program's threads: connections outlive the isolate that asked for them.
    handle: Handle,
    open: Mutex<HashMap<u64, Arc<Open>>>,
}

struct Open {
    stream: tokio::sync::Mutex<AssistantStream>,
    cancel: CancellationToken,
}

/// An extension that is dropped leaves no request behind.
impl Drop for Open {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[derive(Deserialize)]
struct Asked {
    model: Model,
    context: Context,
    #[serde(default)]
    options: Options,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Context {
    #[serde(default)]
    system_prompt: Option<String>,
    messages: Vec<Message>,
    #[serde(default)]
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    api_key: Option<String>,
    headers: IndexMap<String, String>,
    reasoning: Option<ThinkingLevel>,
    thinking_budgets: ThinkingBudgets,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct Id {
    id: u64,
}

impl ModelStreams {
    pub fn new(handle: Handle) -> Self {
        Self {
            handle,
            open: Mutex::default(),
        }
    }

    pub fn open(&self, method: &str, args: &str, id: u64) -> Answer {
        let asked: Asked = parse(method, args)?;
        let Asked {
            model,
            context,
            options,
        } = asked;
        let api = api(&model.api).ok_or_else(|| {
            HostError::new(format!("No API provider registered for api: {}", model.api))
        })?;
        let api_key = options.api_key.or_else(|| env_api_key(&model.provider));
        if api_key.is_none() && !demo::is_demo(&model) {
            let error = format!("No API key for provider: {}", model.provider);
            return Err(HostError::new(error));
        }
        let cancel = CancellationToken::new();
        let tools = context.tools.into_iter().map(|tool| ToolSpec {
            name: tool.name,
            description: tool.description,
            parameters: tool.parameters,
        });
        let request = Request {
            model: Arc::new(model),
            system_prompt: context.system_prompt,
            messages: context.messages,
            tools: tools.collect(),
            options: StreamOptions {
                api_key,
                headers: options.headers,
                reasoning: options.reasoning,
                thinking_budgets: options.thinking_budgets,
                max_tokens: options.max_tokens,
                temperature: options.temperature,
                session_id: options.session_id,
                hooks: None,
            },
            cancel: cancel.clone(),
        };
        let stream = {
            let _here = self.handle.enter();
            api.stream(request)
        };
        let open = Open {
            stream: tokio::sync::Mutex::new(stream),
            cancel,
        };
        self.open.lock().insert(id, Arc::new(open));
        Ok(json!({ "id": id }))
    }

    /// The events that are there, at least one; none when the stream is over.
    pub async fn next(&self, method: &str, args: &str) -> Answer {
        let Id { id } = parse(method, args)?;
        let open = self.open.lock().get(&id).cloned();
        let Some(open) = open else {
            return Ok(json!([]));
        };
        let items = open.stream.lock().await.next_many(BATCH).await;
        let over = items
            .last()
            .is_none_or(|item| matches!(item, StreamItem::Done(_)));
        if over {
            self.open.lock().remove(&id);
        }
        items.iter().map(event).collect()
    }

    /// The stream ends with an `error` event.
    pub fn abort(&self, method: &str, args: &str) -> Answer {
        let Id { id } = parse(method, args)?;
        if let Some(open) = self.open.lock().get(&id) {
            open.cancel.cancel();
        }
        Ok(Value::Null)
    }
}

/// As pi-ai has it.
fn event(item: &StreamItem) -> Answer {
    let value = match item {
        StreamItem::Event { event, partial } => {
            let update = MessageUpdate {
                message: partial.clone(),
                event: event.clone(),
            };
            serde_json::to_value(update).map(|mut update| update["assistantMessageEvent"].take())
        }
        StreamItem::Done(message) => whole(message).map(|whole| match message.stop_reason {
            reason @ (StopReason::Error | StopReason::Aborted) => {
                json!({ "type": "error", "reason": reason, "error": whole })
            }
            reason => json!({ "type": "done", "reason": reason, "message": whole }),
        }),
    };
    value.map_err(|error| HostError::new(error.to_string()))
}

fn whole(message: &AssistantMessage) -> serde_json::Result<Value> {
    serde_json::to_value(Message::Assistant(message.clone()))
}
