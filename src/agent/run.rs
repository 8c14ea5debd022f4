//! The loop: ask the model, run the tools it calls, again, until it stops and
//! nobody has anything to add.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::event::{Event, MessageUpdate};
use super::{AgentMessage, tool_calls};
use crate::ai::message::{
    AssistantMessage, Message, StopReason, ToolCall, Usage, mentions_tools, now,
};
use crate::ai::model::Model;
use crate::ai::stream::{Api, AssistantEvent, Request, StreamItem, StreamOptions, ToolSpec};
use crate::tools::tool::{Tool, ToolOutput};

/// What is fixed when a run starts, and stays so until it ends.
pub struct RunConfig {
    pub model: Arc<Model>,
    pub api: Arc<dyn Api>,
    pub system_prompt: String,
}

/// The outside of a run. Every method that waits for extensions also ends when
/// the run is cancelled.
#[async_trait]
pub trait RunHooks: Send + Sync {
    /// Everything that happens, in order. Returns when the event is stored and
    /// handed on; a slow reader slows the run, it loses nothing.
    async fn emit(&self, event: Event);

    /// The `message_start` event of a message that is whole, which handlers may change.
    async fn begin(&self, message: Arc<AgentMessage>) -> Arc<AgentMessage>;

    /// The `message_end` event: gives what is said in the end, which handlers may change.
    async fn finish(&self, message: Arc<AgentMessage>) -> Arc<AgentMessage>;

    /// Last changes to what the model is told (the `context` event).
    async fn transform_context(
        &self,
        messages: Vec<Arc<AgentMessage>>,
        cancel: &CancellationToken,
    ) -> Vec<Arc<AgentMessage>>;

    /// Last changes to the request as a whole (the `context_with_system` event).
    async fn transform_request(&self, asked: Asked, cancel: &CancellationToken) -> Asked;

    /// Returns the tools that the model may call in its next answer. The loop asks before each
    /// turn begins, so tools that handlers choose from `turn_start` on are for the turn after.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Key, headers and hooks of the next request; asked before every one, since
    /// tokens expire. The error becomes the answer's error message.
    async fn stream_options(&self) -> Result<StreamOptions, String>;

    /// Whether the model may see pictures; asked before every request.
    fn shows_images(&self) -> bool;

    /// The `tool_execution_start` event: gives the arguments, which handlers may change.
    async fn begin_tool_call(&self, call: &ToolCall) -> Value;

    /// Returns when clients have had a moment to read the files that the calls announced so far
    /// are about to change.
    async fn before_files_change(&self);

    /// The `tool_execution_end` event: gives what the model is told, which handlers may change.
    async fn finish_tool_call(&self, call: &ToolCall, outcome: Outcome) -> Outcome;

    /// The `tool_call` event. May change the arguments.
    async fn before_tool_call(
        &self,
        call: &ToolCall,
        args: &mut Value,
        cancel: &CancellationToken,
    ) -> Result<(), Refusal>;

    /// The `tool_result` event.
    async fn after_tool_call(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut Outcome,
        cancel: &CancellationToken,
    );

    /// The `turn_end` event, and what its handlers want put into the conversation.
    async fn end_turn(
        &self,
        message: Arc<AgentMessage>,
        tool_results: Vec<Arc<AgentMessage>>,
    ) -> TurnEnd;

    /// Messages to deliver after the turn that has just ended.
    async fn take_steering(&self) -> Vec<Arc<AgentMessage>>;
    /// Those of them that want no answer.
    async fn take_quiet(&self) -> Vec<Arc<AgentMessage>>;

    /// Messages to go on with when the agent would stop.
    async fn take_follow_up(&self) -> Vec<Arc<AgentMessage>>;

    /// What was taken is about to be said.
    async fn queue_taken(&self);
}

/// What a model is told.
pub struct Asked {
    pub system_prompt: String,
    pub messages: Vec<Arc<AgentMessage>>,
    pub tools: Vec<ToolSpec>,
}

/// What came of the end of a turn.
#[derive(Default)]
pub struct TurnEnd {
    /// What was said besides.
    pub said: Vec<Arc<AgentMessage>>,
    /// The whole conversation, if what was said before is another now.
    pub context: Option<Vec<Arc<AgentMessage>>>,
    /// The model is asked once more, if nothing else makes it so.
    pub go_on: bool,
}

/// Why a tool must not run.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub reason: String,
    /// [`ToolOutput::terminate`] of the result that says so.
    pub terminate: bool,
}

/// How a tool call ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub output: ToolOutput,
    pub is_error: bool,
    /// How long the tool ran; `None` if it did not run.
    pub duration: Option<Duration>,
}

impl Outcome {
    /// Whole milliseconds, as events have them.
    pub fn duration_ms(&self) -> Option<u64> {
        let milliseconds = self.duration?.as_secs_f64() * 1000.0;
        Some(milliseconds.round() as u64)
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        let mut outcome = Self::error(refusal.reason);
        outcome.output.terminate = refusal.terminate;
        outcome
    }
}

impl Outcome {
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

/// Runs until the model stops and both queues are empty, or until an answer
/// fails or is aborted. `context` grows by everything that is said; `prompts`
/// are said first (none: the model answers what is already there). Returns the
/// messages of this run.
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
        transcript.say(message).await;
    }
    transcript.turns(config, tools, cancel).await;
    let messages = transcript.new;
    hooks
        .emit(Event::AgentEnd {
            messages: messages.clone(),
            // The session decides that.
            will_retry: None,
        })
        .await;
    messages
}

/// The conversation as it grows.
pub(super) struct Transcript<'a> {
    context: &'a mut Vec<Arc<AgentMessage>>,
    new: Vec<Arc<AgentMessage>>,
    pub(super) hooks: &'a dyn RunHooks,
}

impl Transcript<'_> {
    /// Announces a whole message and keeps it, as it is in the end.
    pub(super) async fn say(&mut self, message: Arc<AgentMessage>) -> Arc<AgentMessage> {
        let message = self.hooks.begin(message).await;
        self.keep(message).await
    }

    async fn keep(&mut self, message: Arc<AgentMessage>) -> Arc<AgentMessage> {
        let message = self.hooks.finish(message).await;
        self.context.push(message.clone());
        self.new.push(message.clone());
        message
    }

    fn add(&mut self, end: TurnEnd) {
        self.new.extend(end.said.iter().cloned());
        match end.context {
            Some(context) => *self.context = context,
            None => self.context.extend(end.said),
        }
    }

    /// `tools` are those of the first turn.
    async fn turns(
        &mut self,
        config: &RunConfig,
        mut tools: Vec<Arc<dyn Tool>>,
        cancel: &CancellationToken,
    ) {
        // Something may have been queued before the run began.
        let mut waiting = self.hooks.take_steering().await;
        let mut first = true;
        loop {
            let (mut calls_tools, mut go_on) = (true, false);
            while calls_tools || !waiting.is_empty() {
                if !std::mem::take(&mut first) {
                    tools = self.hooks.tools();
                    self.hooks.emit(Event::TurnStart).await;
                }
                // What extensions queue is shown nowhere.
                if waiting
                    .iter()
                    .any(|one| matches!(**one, AgentMessage::User(_)))
                {
                    self.hooks.queue_taken().await;
                }
                for message in waiting.drain(..) {
                    self.say(message).await;
                }
                let message = self.answer(config, &tools, cancel).await;
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
                    tool_calls::execute(self, assistant, &tools, cancel).await
                };
                calls_tools = !tool_results.is_empty() && !terminate;
                let end = self.hooks.end_turn(message.clone(), tool_results).await;
                go_on = end.go_on;
                self.add(end);
                if failed || !calls_tools {
                    for message in self.hooks.take_quiet().await {
                        self.say(message).await;
                    }
                }
                if failed {
                    return;
                }
                waiting = self.hooks.take_steering().await;
            }
            waiting = self.hooks.take_follow_up().await;
            if waiting.is_empty() && !go_on {
                return;
            }
        }
    }

    /// One answer of the model, streamed.
    async fn answer(
        &mut self,
        config: &RunConfig,
        tools: &[Arc<dyn Tool>],
        cancel: &CancellationToken,
    ) -> Arc<AgentMessage> {
        let messages = self
            .hooks
            .transform_context(self.context.clone(), cancel)
            .await;
        let asked = Asked {
            system_prompt: config.system_prompt.clone(),
            messages,
            tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
        };
        let asked = self.hooks.transform_request(asked, cancel).await;
        let options = match self.hooks.stream_options().await {
            Ok(options) => options,
            Err(error) => {
                let mut failed = failure(&config.model, error);
                if cancel.is_cancelled() {
                    failed.stop_reason = StopReason::Aborted;
                }
                let message = Arc::new(AgentMessage::Assistant(failed));
                return self.say(message).await;
            }
        };
        let shows_images = self.hooks.shows_images();
        let told = asked.messages.iter();
        let told = told.filter_map(|message| message.to_llm());
        let messages: Vec<Message> = told
            .map(|message| match shows_images {
                true => message,
                false => message.without_images(),
            })
            .collect();
        // Some servers refuse an empty list, and some a conversation with calls without one.
        let is_told = !asked.tools.is_empty() || mentions_tools(&messages);
        let mut stream = config.api.stream(Request {
            model: config.model.clone(),
            system_prompt: Some(asked.system_prompt).filter(|text| !text.is_empty()),
            messages,
            tools: is_told.then_some(asked.tools),
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
            true => self.keep(message).await,
            false => self.say(message).await,
        }
    }
}

/// An answer that could not even be asked for.
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
