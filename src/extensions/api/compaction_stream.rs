//! Summaries for which an extension calls the model itself (`streamFn`, or a custom API):
//! pi sends the requests to JavaScript and gets the responses back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use js_runtime::HostError;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::bridge::{BridgeResult, parse};
use pi_ai::message::{AssistantBlock, AssistantMessage, StopReason, TextContent, Usage, now};
use pi_ai::model::Model;
use pi_ai::stream::{Api, AssistantStream, Request, StreamItem};

/// Maximum number of simultaneous requests of a summary.
const REQUEST_CAPACITY: usize = 2;

/// Open requests of all summaries, by token.
#[derive(Default)]
pub struct SummaryRequests {
    open: Mutex<HashMap<u64, OpenSummary>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<SummaryResponse>>>,
    last: AtomicU64,
}

struct OpenSummary {
    /// Taken when the summary starts, so that the channel closes when the summary ends.
    requests: Option<mpsc::Sender<SummaryRequest>>,
    received: Arc<tokio::sync::Mutex<mpsc::Receiver<SummaryRequest>>>,
}

#[derive(Deserialize)]
struct OpenArgs {
    token: u64,
}

struct SummaryRequest {
    request: Value,
    response: oneshot::Sender<SummaryResponse>,
}

/// The members of the message that are used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummaryResponse {
    ask: u64,
    #[serde(default)]
    text: String,
    stop_reason: StopReason,
    #[serde(default)]
    error_message: Option<String>,
}

impl SummaryResponse {
    /// The response to an aborted request.
    fn aborted() -> Self {
        Self {
            ask: 0,
            text: String::new(),
            stop_reason: StopReason::Aborted,
            error_message: None,
        }
    }

    fn into_message(self, model: &Model) -> AssistantMessage {
        AssistantMessage {
            content: vec![AssistantBlock::Text(TextContent {
                text: self.text,
                text_signature: None,
            })],
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            response_id: None,
            usage: Usage::default(),
            stop_reason: self.stop_reason,
            error_message: self.error_message,
            timestamp: now(),
        }
    }
}

/// An API that forwards requests to the extension and streams the response as a whole.
struct ExtensionModel(mpsc::Sender<SummaryRequest>);

impl SummaryRequests {
    /// Opens a channel before the summary starts, because [`Self::next`] may be called
    /// first.
    pub fn open(&self, method: &str, args: &str) -> BridgeResult {
        let OpenArgs { token } = parse(method, args)?;
        let (requests, received) = mpsc::channel(REQUEST_CAPACITY);
        let open = OpenSummary {
            requests: Some(requests),
            received: Arc::new(tokio::sync::Mutex::new(received)),
        };
        self.open.lock().insert(token, open);
        Ok(Value::Null)
    }

    pub fn api(&self, token: u64) -> Result<Arc<dyn Api>, HostError> {
        let mut open = self.open.lock();
        let requests = open.get_mut(&token).and_then(|open| open.requests.take());
        let requests = requests.ok_or_else(|| HostError::new("The summary is not open"))?;
        Ok(Arc::new(ExtensionModel(requests)))
    }

    pub fn end(&self, token: u64) {
        self.open.lock().remove(&token);
    }

    pub async fn next_request(&self, token: u64) -> Value {
        let received = self
            .open
            .lock()
            .get(&token)
            .map(|open| open.received.clone());
        let Some(received) = received else {
            return Value::Null;
        };
        let Some(SummaryRequest { request, response }) = received.lock().await.recv().await else {
            return Value::Null;
        };
        let ask = self.last.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().insert(ask, response);
        json!({ "ask": ask, "request": request })
    }

    pub fn respond(&self, method: &str, args: &str) -> BridgeResult {
        let response: SummaryResponse = parse(method, args)?;
        // The summary may have been aborted.
        if let Some(waiting) = self.waiting.lock().remove(&response.ask) {
            let _ = waiting.send(response);
        }
        Ok(Value::Null)
    }
}

impl Api for ExtensionModel {
    fn stream(&self, request: Request) -> AssistantStream {
        let (items, stream) = AssistantStream::channel();
        let (response, received) = oneshot::channel();
        let requests = self.0.clone();
        let request_json = json!({
            "systemPrompt": request.system_prompt,
            "messages": request.messages,
            "maxTokens": request.options.max_tokens,
            "reasoning": request.options.reasoning,
        });
        tokio::spawn(async move {
            let summary_request = SummaryRequest {
                request: request_json,
                response,
            };
            let response = async {
                requests.send(summary_request).await.ok()?;
                received.await.ok()
            };
            let response = tokio::select! {
                response = response => response,
                () = request.cancel.cancelled() => None,
            };
            let response = response.unwrap_or_else(SummaryResponse::aborted);
            let message = response.into_message(&request.model);
            // The receiver may be gone.
            let _ = items.send(StreamItem::Done(Arc::new(message))).await;
        });
        stream
    }
}
