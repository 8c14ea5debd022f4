//! State and statistics of a session: the responses to `get_state` and `get_session_stats`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::AgentSession;
use pi_agent::AgentMessage;
use pi_agent::queue::QueueMode;
use pi_ai::message::{Usage, js_number};
use pi_ai::model::{Model, ThinkingLevel};
use pi_base::VERSION;
use pi_compaction::estimate_context;
use pi_extensions::api::session_api::ContextUsage;

#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<Model>>,
    /// Why no model is set, and how to set one. Only present without `model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_error: Option<String>,
    pub thinking_level: ThinkingLevel,
    pub is_streaming: bool,
    pub is_compacting: bool,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    pub auto_compaction_enabled: bool,
    pub message_count: usize,
    pub pending_message_count: usize,
    /// Name of `steeringMode` before 0.20.
    pub queue_mode: QueueMode,
    /// Name of `pendingMessageCount` before 0.20.
    pub queued_message_count: usize,
    /// The original's version that clients compare, and this program's: `0.87.1+rs.0.1.0`.
    pub version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    pub session_id: String,
    pub user_messages: usize,
    pub assistant_messages: usize,
    pub tool_calls: usize,
    pub tool_results: usize,
    pub total_messages: usize,
    pub tokens: TokenTotals,
    /// US dollars.
    #[serde(serialize_with = "js_number")]
    pub cost: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenTotals {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub total: u64,
}

impl SessionStats {
    fn add(&mut self, usage: &Usage) {
        let tokens = &mut self.tokens;
        tokens.input += usage.input;
        tokens.output += usage.output;
        tokens.cache_read += usage.cache_read;
        tokens.cache_write += usage.cache_write;
        self.cost += usage.cost.total;
    }
}

impl AgentSession {
    pub fn state(&self) -> SessionState {
        let has_model = self.model().is_some();
        let model_error = (!has_model).then(|| self.models.no_model_text());
        let state = self.state.lock();
        let (steering, follow_up) = state.prompts.queues.texts();
        SessionState {
            model: state.model.clone(),
            model_error,
            thinking_level: state.thinking,
            is_streaming: state.work.is_running(),
            is_compacting: state.work.summary().is_some(),
            steering_mode: state.prompts.queues.steering_mode,
            follow_up_mode: state.prompts.queues.follow_up_mode,
            session_file: state.session.path().map(|path| path.display().to_string()),
            session_id: state.session.id().to_string(),
            session_name: state.session.name().map(str::to_string),
            auto_compaction_enabled: state.compaction.is_automatic,
            message_count: state.context.len(),
            pending_message_count: steering.len() + follow_up.len(),
            queue_mode: state.prompts.queues.steering_mode,
            queued_message_count: steering.len() + follow_up.len(),
            version: VERSION,
        }
    }

    /// Counts the messages of the context, not those of the whole file.
    pub fn stats(&self) -> SessionStats {
        let context_usage = self.usage();
        let state = self.state.lock();
        let mut stats = SessionStats {
            session_file: state.session.path().map(|path| path.display().to_string()),
            session_id: state.session.id().to_string(),
            user_messages: 0,
            assistant_messages: 0,
            tool_calls: 0,
            tool_results: 0,
            total_messages: state.context.len(),
            tokens: TokenTotals::default(),
            cost: 0.0,
            context_usage,
        };
        for message in &state.context {
            match &**message {
                AgentMessage::User(_) => stats.user_messages += 1,
                AgentMessage::ToolResult(message) => {
                    stats.tool_results += 1;
                    let usage = message.usage.as_ref().map(Usage::deserialize);
                    // Usage in an unknown format is not counted.
                    if let Some(Ok(usage)) = usage {
                        stats.add(&usage);
                    }
                }
                AgentMessage::Assistant(message) => {
                    stats.assistant_messages += 1;
                    stats.tool_calls += message.tool_calls().count();
                    stats.add(&message.usage);
                }
                _ => {}
            }
        }
        let tokens = &mut stats.tokens;
        tokens.total = tokens.input + tokens.output + tokens.cache_read + tokens.cache_write;
        stats
    }

    /// Returns the size of the context. `tokens` is `None` between a compaction and the next
    /// answer, because the last count is of the context before.
    pub(super) fn usage(&self) -> Option<ContextUsage> {
        let state = self.state.lock();
        let context_window = state.model.as_ref()?.context_window;
        if context_window == 0 {
            return None;
        }
        let known = state.counted_since_compaction();
        let tokens = known.then(|| estimate_context(&state.context).tokens);
        Some(ContextUsage {
            tokens,
            context_window,
            percent: tokens.map(|tokens| tokens as f64 / context_window as f64 * 100.0),
        })
    }
}
