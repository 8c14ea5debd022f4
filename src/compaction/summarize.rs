//! Requests the summary of a compaction from a model.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::prepare::Preparation;
use super::{prompts, serialize};
use pi_ai::message::{AssistantMessage, Message, StopReason, UserMessage};
use pi_ai::model::{Model, ThinkingLevel};
use pi_ai::stream::{Api, AssistantStream, Request, StreamItem, StreamOptions};
use pi_session::message::AgentMessage;

/// The model that summarizes, and the options of its requests.
#[derive(Clone)]
pub struct Summarizer {
    pub model: Arc<Model>,
    pub api: Arc<dyn Api>,
    pub api_key: Option<String>,
    pub headers: IndexMap<String, String>,
    /// See [`StreamOptions::max_retry_delay_ms`].
    pub max_retry_delay_ms: Option<u64>,
    /// Overrides the thinking level that each kind of summary has.
    pub thinking: Option<ThinkingLevel>,
    pub session_id: Option<String>,
}

/// The result of a compaction: also the response to `compact`, and what an extension may return
/// instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Compacted {
    pub summary: String,
    pub first_kept_entry_id: String,
    pub tokens_before: u64,
    /// Estimated tokens of the new context; known once the summary is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_tokens_after: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    #[error("cancelled")]
    Cancelled,
    /// The model or the connection to it failed.
    #[error("{what}: {why}")]
    Model { what: String, why: String },
    #[error("{0}")]
    Failed(String),
}

/// Returns the summary of the messages that are not kept, with the files that they mention.
pub async fn summarize(
    preparation: &Preparation,
    focus: Option<&str>,
    summarizer: &Summarizer,
    cancel: &CancellationToken,
) -> Result<Compacted, SummaryError> {
    let mut summary = match preparation.turn_prefix_messages.is_empty() {
        true => {
            let history = history(preparation, focus, summarizer, cancel);
            history.text("Summarization failed").await?
        }
        false => summarize_split(preparation, focus, summarizer, cancel).await?,
    };
    let files = preparation.file_ops.lists();
    summary.push_str(&files.to_text());
    let details = serde_json::to_value(files).expect("lists of strings are JSON");
    Ok(Compacted {
        summary,
        first_kept_entry_id: preparation.first_kept_entry_id.clone(),
        tokens_before: preparation.tokens_before,
        estimated_tokens_after: None,
        details: Some(details),
    })
}

/// Requests two summaries: of the messages before the split turn, and of the beginning of the
/// turn.
async fn summarize_split(
    preparation: &Preparation,
    focus: Option<&str>,
    summarizer: &Summarizer,
    cancel: &CancellationToken,
) -> Result<String, SummaryError> {
    let ask_prefix = || {
        let request = prompt(
            &preparation.turn_prefix_messages,
            None,
            prompts::turn_prefix(),
        );
        let limit = preparation.settings.reserve_tokens / 2;
        summarizer.request(request, limit, None, cancel)
    };
    const FAILED: &str = "Turn prefix summarization failed";
    let (history, prefix) = match preparation.messages_to_summarize.is_empty() {
        true => {
            let prefix = ask_prefix().text(FAILED).await?;
            ("No prior history.".to_owned(), prefix)
        }
        false => {
            let mut history = history(preparation, focus, summarizer, cancel);
            // The requests are made in this order and answered concurrently.
            history.wait_started().await;
            let prefix = ask_prefix();
            tokio::try_join!(history.text("Summarization failed"), prefix.text(FAILED))?
        }
    };
    Ok(format!(
        "{history}\n\n---\n\n**Turn Context (split turn):**\n\n{prefix}"
    ))
}

fn history(
    preparation: &Preparation,
    focus: Option<&str>,
    summarizer: &Summarizer,
    cancel: &CancellationToken,
) -> SummaryReply {
    let previous = preparation.previous_summary.as_deref();
    let previous = previous.filter(|summary| !summary.is_empty());
    let instructions = match previous {
        Some(_) => prompts::update(),
        None => prompts::history(),
    };
    let instructions = prompts::with_focus(instructions, focus);
    let request = prompt(&preparation.messages_to_summarize, previous, instructions);
    let limit = preparation.settings.reserve_tokens.saturating_mul(4) / 5;
    summarizer.request(request, limit, Some(ThinkingLevel::High), cancel)
}

/// Returns the prompt: the conversation, the previous summary if there is one, and the
/// instructions.
pub(super) fn prompt(
    messages: &[Arc<AgentMessage>],
    previous: Option<&str>,
    instructions: String,
) -> String {
    let mut prompt = format!(
        "<conversation>\n{}\n</conversation>\n\n",
        serialize::conversation(messages)
    );
    if let Some(previous) = previous {
        prompt += &format!("<previous-summary>\n{previous}\n</previous-summary>\n\n");
    }
    prompt + instructions.as_str()
}

impl Summarizer {
    /// Requests a summary. `limit` is the maximum length of the answer in tokens.
    pub(super) fn request(
        &self,
        prompt: String,
        limit: u64,
        thinking: Option<ThinkingLevel>,
        cancel: &CancellationToken,
    ) -> SummaryReply {
        // Models with a lower output limit would refuse the request.
        let limit = match self.model.max_tokens {
            0 => limit,
            most => limit.min(most),
        };
        let thinking = self.thinking.or(thinking);
        let thinks = |level: &ThinkingLevel| self.model.reasoning && *level != ThinkingLevel::Off;
        let request = Request {
            model: self.model.clone(),
            system_prompt: Some(prompts::SYSTEM_PROMPT.to_owned()),
            messages: vec![Message::User(UserMessage::new(prompt, Vec::new()))],
            tools: None,
            options: StreamOptions {
                api_key: self.api_key.clone(),
                headers: self.headers.clone(),
                reasoning: thinking.filter(thinks),
                max_tokens: Some(limit),
                session_id: self.session_id.clone(),
                max_retry_delay_ms: self.max_retry_delay_ms,
                ..StreamOptions::default()
            },
            cancel: cancel.clone(),
        };
        SummaryReply {
            stream: self.api.stream(request),
            done: None,
        }
    }
}

/// An answer that is being streamed.
pub(super) struct SummaryReply {
    stream: AssistantStream,
    done: Option<Arc<AssistantMessage>>,
}

impl SummaryReply {
    /// Waits until the first part of the answer has arrived.
    async fn wait_started(&mut self) {
        if let Some(StreamItem::Done(message)) = self.stream.next().await {
            self.done = Some(message);
        }
    }

    /// Waits for the whole text of the answer. Errors begin with `what`.
    pub(super) async fn text(mut self, what: &str) -> Result<String, SummaryError> {
        let failed = |why: &str| SummaryError::Model {
            what: what.to_owned(),
            why: why.to_owned(),
        };
        let message = loop {
            if let Some(message) = self.done.take() {
                break message;
            }
            match self.stream.next().await {
                Some(StreamItem::Done(message)) => break message,
                Some(StreamItem::Event { .. }) => {}
                None => return Err(failed("the stream ended without an answer")),
            }
        };
        match message.stop_reason {
            StopReason::Aborted => return Err(SummaryError::Cancelled),
            StopReason::Error => {
                let why = message.error_message.as_deref();
                return Err(failed(why.unwrap_or("Unknown error")));
            }
            StopReason::Stop | StopReason::Length | StopReason::ToolUse => {}
        }
        let texts: Vec<&str> = message.texts().collect();
        let text = texts.join("\n");
        // An empty summary would lose the conversation.
        match text.trim().is_empty() {
            true => Err(failed("the model answered without a text")),
            false => Ok(text),
        }
    }
}
