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

use crate::ai::message::{AssistantBlock, AssistantMessage, StopReason, TextContent, Usage, now};
use crate::ai::model::Model;
use crate::ai::stream::{Api, AssistantStream, Request, StreamItem};
use crate::extensions::bridge::{BridgeResult, parse};

/// Maximum number of simultaneous requests of a summary.
const REQUESTS: usize = 2;

/// Open requests of all summaries, by token.
#[derive(Default)]
pub struct Asking {
    open: Mutex<HashMap<u64, Open>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Answered>>>,
    last: AtomicU64,
}

struct Open {
    /// Taken when the summary starts, so that the channel closes when the summary ends.
    questions: Option<mpsc::Sender<Question>>,
    received: Arc<tokio::sync::Mutex<mpsc::Receiver<Question>>>,
}

#[derive(Deserialize)]
struct Opened {
    token: u64,
}

struct Question {
    request: Value,
    answer: oneshot::Sender<Answered>,
}

/// The members of the message that are used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    ask: u64,
    #[serde(default)]
    text: String,
    stop_reason: StopReason,
    #[serde(default)]
    error_message: Option<String>,
}

impl Answered {
    /// The response to an aborted request.
    fn aborted() -> Self {
        Self {
            ask: 0,
            text: String::new(),
            stop_reason: StopReason::Aborted,
            error_message: None,
        }
    }

    fn of(self, model: &Model) -> AssistantMessage {
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
struct ByExtension(mpsc::Sender<Question>);

impl Asking {
    /// Opens a channel before the summary starts, because [`Self::next`] may be called
    /// first.
    pub fn open(&self, method: &str, args: &str) -> BridgeResult {
        let Opened { token } = parse(method, args)?;
        let (questions, received) = mpsc::channel(REQUESTS);
        let open = Open {
            questions: Some(questions),
            received: Arc::new(tokio::sync::Mutex::new(received)),
        };
        self.open.lock().insert(token, open);
        Ok(Value::Null)
    }

    pub fn api(&self, token: u64) -> Result<Arc<dyn Api>, HostError> {
        let mut open = self.open.lock();
        let questions = open.get_mut(&token).and_then(|open| open.questions.take());
        let questions = questions.ok_or_else(|| HostError::new("The summary is not open"))?;
        Ok(Arc::new(ByExtension(questions)))
    }

    pub fn end(&self, token: u64) {
        self.open.lock().remove(&token);
    }

    pub async fn next(&self, token: u64) -> Value {
        let received = self
            .open
            .lock()
            .get(&token)
            .map(|open| open.received.clone());
        let Some(received) = received else {
            return Value::Null;
        };
        let Some(Question { request, answer }) = received.lock().await.recv().await else {
            return Value::Null;
        };
        let ask = self.last.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().insert(ask, answer);
        json!({ "ask": ask, "request": request })
    }

    pub fn answer(&self, method: &str, args: &str) -> BridgeResult {
        let answered: Answered = parse(method, args)?;
        // The summary may have been aborted.
        if let Some(waiting) = self.waiting.lock().remove(&answered.ask) {
            let _ = waiting.send(answered);
        }
        Ok(Value::Null)
    }
}

impl Api for ByExtension {
    fn stream(&self, request: Request) -> AssistantStream {
        let (items, stream) = AssistantStream::channel();
        let (answer, answered) = oneshot::channel();
        let questions = self.0.clone();
        let asked = json!({
            "systemPrompt": request.system_prompt,
            "messages": request.messages,
            "maxTokens": request.options.max_tokens,
            "reasoning": request.options.reasoning,
        });
        tokio::spawn(async move {
            let question = Question {
                request: asked,
                answer,
            };
            let answered = async {
                questions.send(question).await.ok()?;
                answered.await.ok()
            };
            let answered = tokio::select! {
                answered = answered => answered,
                () = request.cancel.cancelled() => None,
            };
            let answered = answered.unwrap_or_else(Answered::aborted);
            let message = answered.of(&request.model);
            // The receiver may be gone.
            let _ = items.send(StreamItem::Done(Arc::new(message))).await;
        });
        stream
    }
}
