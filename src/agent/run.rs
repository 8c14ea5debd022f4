//! The agent loop: ask the model, run the tools it calls, and repeat until the model stops and
//! no message is queued.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::event::{Event, MessageUpdate};
use super::{AgentMessage, tool_calls};
use pi_ai::message::{AssistantMessage, Message, StopReason, ToolCall, Usage, mentions_tools, now};
use pi_ai::model::Model;
use pi_ai::stream::{Api, AssistantEvent, Request, StreamItem, StreamOptions, ToolSpec};
use pi_tools::tool::{PathFilter, Tool, ToolOutput};

/// Configuration that stays the same during a run.
pub struct RunConfig {
    pub model: Arc<Model>,
    pub api: Arc<dyn Api>,
    pub system_prompt: String,
}

/// Everything a run needs from outside. Methods that wait for extensions also return when the
/// run is cancelled.
#[async_trait]
pub trait RunHooks: Send + Sync {
    /// Emits an event. Returns when the event is stored and delivered; a slow reader slows the
    /// run down, but no event is lost.
    async fn emit(&self, event: Event);

    /// Emits `message_start` for a complete message and returns the message, which handlers may
    /// change.
    async fn begin_message(&self, message: Arc<AgentMessage>) -> Arc<AgentMessage>;

    /// Emits `message_end` and returns the final message, which handlers may change.
    async fn finish_message(&self, message: Arc<AgentMessage>) -> Arc<AgentMessage>;

    /// Emits `context` and returns the messages for the model, which handlers may change.
    async fn transform_context(
        &self,
        messages: Vec<Arc<AgentMessage>>,
        cancel: &CancellationToken,
    ) -> Vec<Arc<AgentMessage>>;

    /// Emits `context_with_system` and returns the request, which handlers may change.
    async fn transform_request(
        &self,
        request: ModelRequest,
        cancel: &CancellationToken,
    ) -> ModelRequest;

    /// Returns the tools that the model may call in its next answer. Called before each turn
    /// begins, so tools that handlers select from `turn_start` on apply to the following turn.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Returns whether the tool is still one that the model may call. Called after each answer,
    /// before its calls begin.
    fn is_tool_active(&self, name: &str) -> bool;

    /// Returns key, headers and hooks of the next request. Called before each request, since
    /// tokens expire. An error becomes the error message of the answer.
    async fn stream_options(&self) -> Result<StreamOptions, String>;

    /// Returns whether images are sent to the model. Called before each request.
    fn shows_images(&self) -> bool;

    /// Emits `tool_execution_start` and returns the arguments, which handlers may change.
    async fn begin_tool_call(&self, call: &ToolCall) -> Value;

    /// Waits until clients had time to read the files that the announced calls are about to
    /// change.
    async fn before_files_change(&self);

    /// Emits `tool_execution_end` and returns the outcome for the model, which handlers may
    /// change.
    async fn finish_tool_call(&self, call: &ToolCall, outcome: ToolOutcome) -> ToolOutcome;

    /// Emits `tool_call`. Handlers may change the arguments or refuse the call. Returns the files
    /// that a search has to leave out.
    async fn before_tool_call(
        &self,
        call: &ToolCall,
        args: &mut Value,
        cancel: &CancellationToken,
    ) -> Result<Option<PathFilter>, Refusal>;

    /// Emits `tool_result`. Handlers may change the outcome.
    async fn after_tool_call(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut ToolOutcome,
        cancel: &CancellationToken,
    );

    /// Emits `turn_end` and returns the changes that its handlers request.
    async fn end_turn(
        &self,
        message: Arc<AgentMessage>,
        tool_results: Vec<Arc<AgentMessage>>,
    ) -> TurnEnd;

    /// Takes the messages to deliver after the turn that has just ended.
    async fn take_steering(&self) -> Vec<Arc<AgentMessage>>;
    /// Takes those steering messages that need no answer.
    async fn take_silent(&self) -> Vec<Arc<AgentMessage>>;

    /// Takes the messages that continue a run that would end.
    async fn take_follow_up(&self) -> Vec<Arc<AgentMessage>>;

    /// Reports that queued messages are about to be appended.
    async fn queue_delivered(&self);
}

/// A request to the model.
pub struct ModelRequest {
    pub system_prompt: String,
    pub messages: Vec<Arc<AgentMessage>>,
    pub tools: Vec<ToolSpec>,
}

/// The changes that handlers of `turn_end` request.
#[derive(Default)]
pub struct TurnEnd {
    /// Messages that were appended.
    pub appended: Vec<Arc<AgentMessage>>,
    /// The whole context, if earlier messages have changed.
    pub context: Option<Vec<Arc<AgentMessage>>>,
    /// Whether the model is asked once more even if no message is queued.
    pub continues: bool,
}

/// The reason why a tool must not run.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub reason: String,
    /// [`ToolOutput::terminate`] of the result with the reason.
    pub terminate: bool,
}

/// The outcome of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    pub output: ToolOutput,
    pub is_error: bool,
    /// Time that the tool ran; `None` if it did not run.
    pub duration: Option<Duration>,
}

impl ToolOutcome {
    /// Returns the duration in whole milliseconds, as events have it.
    pub fn duration_ms(&self) -> Option<u64> {
        let milliseconds = self.duration?.as_secs_f64() * 1000.0;
        Some(milliseconds.round() as u64)
    }
}

impl From<Refusal> for ToolOutcome {
    fn from(refusal: Refusal) -> Self {
        let mut outcome = Self::error(refusal.reason);
        outcome.output.terminate = refusal.terminate;
        outcome
    }
}

impl ToolOutcome {
    pub(super) fn error(text: impl Into<String>) -> Self {
        Self {
            output: ToolOutput {
                details: Some(Value::Object(Default::default())),
                ..ToolOutput::text(text)
            },
            is_error: true,
            duration: None,
        }
    }
}

/// Runs until the model stops and both queues are empty, or until an answer fails or is
/// aborted. Appends all messages to `context`, beginning with `prompts` (if there are none, the
/// model answers the existing context). Returns the messages of this run.
pub async fn run(
    context: &mut Vec<Arc<AgentMessage>>,
    prompts: Vec<Arc<AgentMessage>>,
    config: &RunConfig,
    hooks: &dyn RunHooks,
    cancel: &CancellationToken,
) -> Vec<Arc<AgentMessage>> {
    let mut transcript = Transcript {
        context,
        new: Vec::new(),
        hooks,
    };
    let tools = hooks.tools();
    hooks.emit(Event::AgentStart).await;
    hooks.emit(Event::TurnStart).await;
    for message in prompts {
        transcript.append(message).await;
    }
    transcript.run_turns(config, tools, cancel).await;
    let messages = transcript.new;
    hooks
        .emit(Event::AgentEnd {
            messages: messages.clone(),
            // Set by the session later.
            will_retry: None,
        })
        .await;
    messages
}

/// The context as it grows during a run.
pub(super) struct Transcript<'a> {
    context: &'a mut Vec<Arc<AgentMessage>>,
    new: Vec<Arc<AgentMessage>>,
    pub(super) hooks: &'a dyn RunHooks,
}

impl Transcript<'_> {
    /// Emits the events of a complete message and appends its final form.
    pub(super) async fn append(&mut self, message: Arc<AgentMessage>) -> Arc<AgentMessage> {
        let message = self.hooks.begin_message(message).await;
        self.finish_and_append(message).await
    }

    async fn finish_and_append(&mut self, message: Arc<AgentMessage>) -> Arc<AgentMessage> {
        let message = self.hooks.finish_message(message).await;
        self.context.push(message.clone());
        self.new.push(message.clone());
        message
    }

    fn apply_turn_end(&mut self, end: TurnEnd) {
        self.new.extend(end.appended.iter().cloned());
        match end.context {
            Some(context) => *self.context = context,
            None => self.context.extend(end.appended),
        }
    }

    /// Runs turns until the run ends. `tools` are the tools of the first turn.
    async fn run_turns(
        &mut self,
        config: &RunConfig,
        mut tools: Vec<Arc<dyn Tool>>,
        cancel: &CancellationToken,
    ) {
        // Messages may have been queued before the run began.
        let mut waiting = self.hooks.take_steering().await;
        let mut first = true;
        loop {
            let (mut calls_tools, mut continues) = (true, false);
            while calls_tools || !waiting.is_empty() {
                if !std::mem::take(&mut first) {
                    tools = self.hooks.tools();
                    self.hooks.emit(Event::TurnStart).await;
                }
                // Queued messages of extensions are not shown in `queue_update`.
                if waiting
                    .iter()
                    .any(|one| matches!(**one, AgentMessage::User(_)))
                {
                    self.hooks.queue_delivered().await;
                }
                for message in waiting.drain(..) {
                    self.append(message).await;
                }
                let message = self.call_model(config, &tools, cancel).await;
                let Some(assistant) = message.as_assistant() else {
                    return;
                };
                let failed = matches!(
                    assistant.stop_reason,
                    StopReason::Error | StopReason::Aborted
                );
                let (tool_results, terminate) = if failed {
                    Default::default()
                } else {
                    self.drop_deactivated(&mut tools);
                    tool_calls::execute(self, assistant, &tools, cancel).await
                };
                calls_tools = !tool_results.is_empty() && !terminate;
                let end = self.hooks.end_turn(message.clone(), tool_results).await;
                continues = end.continues;
                self.apply_turn_end(end);
                if failed || !calls_tools {
                    for message in self.hooks.take_silent().await {
                        self.append(message).await;
                    }
                }
                if failed {
                    return;
                }
                waiting = self.hooks.take_steering().await;
            }
            waiting = self.hooks.take_follow_up().await;
            if waiting.is_empty() && !continues {
                return;
            }
        }
    }

    /// Drops tools that were deactivated since the turn began: a handler that leaves the agent only
    /// tools that read must not see a call of the answer that is on its way write.
    fn drop_deactivated(&self, tools: &mut Vec<Arc<dyn Tool>>) {
        tools.retain(|tool| self.hooks.is_tool_active(&tool.spec().name));
    }

    /// Streams one answer of the model and appends it.
    async fn call_model(
        &mut self,
        config: &RunConfig,
        tools: &[Arc<dyn Tool>],
        cancel: &CancellationToken,
    ) -> Arc<AgentMessage> {
        let messages = self
            .hooks
            .transform_context(self.context.clone(), cancel)
            .await;
        let request = ModelRequest {
            system_prompt: config.system_prompt.clone(),
            messages,
            tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
        };
        let request = self.hooks.transform_request(request, cancel).await;
        let options = match self.hooks.stream_options().await {
            Ok(options) => options,
            Err(error) => {
                let mut failed = failure(&config.model, error);
                if cancel.is_cancelled() {
                    failed.stop_reason = StopReason::Aborted;
                }
                let message = Arc::new(AgentMessage::Assistant(failed));
                return self.append(message).await;
            }
        };
        let shows_images = self.hooks.shows_images();
        let messages = request.messages.iter();
        let messages = messages.filter_map(|message| message.to_llm());
        let messages: Vec<Message> = messages
            .map(|message| match shows_images {
                true => message,
                false => message.without_images(),
            })
            .collect();
        // Some servers refuse an empty list, others a conversation with calls but without a
        // list.
        let sends_tools = !request.tools.is_empty() || mentions_tools(&messages);
        let mut stream = config.api.stream(Request {
            model: config.model.clone(),
            system_prompt: Some(request.system_prompt).filter(|text| !text.is_empty()),
            messages,
            tools: sends_tools.then_some(request.tools),
            options,
            cancel: cancel.clone(),
        });
        let mut started = false;
        let done = loop {
            match stream.next().await {
                Some(StreamItem::Event { event, partial }) => {
                    if matches!(event, AssistantEvent::Start) {
                        started = true;
                        let message = Arc::new(AgentMessage::Assistant(partial.message()));
                        self.hooks.emit(Event::MessageStart { message }).await;
                    } else {
                        let message = partial;
                        self.hooks
                            .emit(Event::MessageUpdate(MessageUpdate { message, event }))
                            .await;
                    }
                }
                Some(StreamItem::Done(message)) => break Arc::unwrap_or_clone(message),
                None => {
                    break failure(
                        &config.model,
                        format!("The stream of {} ended without an answer", config.model.api),
                    );
                }
            }
        };
        let message = Arc::new(AgentMessage::Assistant(done));
        match started {
            true => self.finish_and_append(message).await,
            false => self.append(message).await,
        }
    }
}

/// Makes the answer for a request that could not be made.
fn failure(model: &Model, error: String) -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        response_id: None,
        usage: Usage::default(),
        stop_reason: StopReason::Error,
        error_message: Some(error),
        timestamp: now(),
    }
}
