//! The session as seen by the agent loop: stores and emits its events, and applies the changes of
//! extensions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::AgentSession;
use crate::redaction::redact_error;
use crate::run::provider_hooks::ProviderHooks;
use crate::run::turn_end::EndedTurn;
use pi_agent::AgentMessage;
use pi_agent::event::Event;
use pi_agent::queue::Delivery;
use pi_agent::run::{ModelRequest, Refusal, RunConfig, RunHooks, ToolOutcome, TurnEnd};
use pi_ai::message::{StopReason, ToolCall, now};
use pi_ai::model::ThinkingLevel;
use pi_ai::stream::StreamOptions;
use pi_extensions::diagnostics::results;
use pi_extensions::{EventBody, Mutation, Proposal};
use pi_tools::tool::{PathFilter, Tool};

/// How long a request waits for steering messages that are still in `input` handlers.
const STEER_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The session as the hooks of one run.
pub(crate) struct Hooks<'a> {
    pub session: &'a AgentSession,
    pub config: &'a RunConfig,
    /// The thinking level at the start of the run.
    pub thinking: ThinkingLevel,
    /// Messages of the role `system` that `context` handlers have put into the next request.
    pub system: Mutex<Vec<Value>>,
}

/// The result of emitting an event to extensions.
struct ExtensionOutcome {
    /// The run ends with this event.
    ends_run: bool,
    /// The event as handlers changed it.
    changed: Option<Mutation>,
    /// The proposal of `turn_end` handlers.
    proposal: Option<Proposal>,
}

impl Hooks<'_> {
    async fn emit_to_extensions(&self, event: &Event) -> ExtensionOutcome {
        let session = self.session;
        // Otherwise the request is retried and the session stays busy.
        let ends_run = matches!(event, Event::AgentEnd { .. }) && {
            let mut state = session.state.lock();
            state.retry.failure = state.retryable_error(self.config);
            state.retry.failure.is_none()
        };
        let cancel = session.run_cancel();
        if ends_run {
            session.state.lock().work.begin_ending();
        }
        let turn = {
            let mut state = session.state.lock();
            match event {
                Event::AgentStart => state.turn_index = 0,
                Event::TurnEnd { .. } => state.turn_index += 1,
                _ => {}
            }
            let ended = matches!(event, Event::TurnEnd { .. });
            state.turn_index - u64::from(ended)
        };
        let body = || match event {
            Event::MessageUpdate(update) => update.into(),
            // The updates and the end of the message replace any change.
            Event::MessageStart { message } if message.as_assistant().is_some() => {
                EventBody::preliminary(event)
            }
            _ => EventBody::json(&ExtensionEvent::new(event, turn, session)),
        };
        let emission = session
            .extensions
            .deliver(event.name(), body, &cancel)
            .await;
        session.wait_emit_first().await;
        ExtensionOutcome {
            ends_run,
            changed: emission.mutation,
            proposal: emission.proposal,
        }
    }

    /// Emits an event whose contents handlers may change. Returns the change.
    async fn emit_changeable(&self, mut event: Event) -> Option<Mutation> {
        let result = self.emit_to_extensions(&event).await;
        if let Some(changed) = &result.changed {
            changed.apply_to(&mut event);
        }
        self.emit_to_store_and_mode(event, result.ends_run).await;
        result.changed
    }

    /// Emits an event of a message. Returns the message as handlers changed it.
    async fn emit_message(
        &self,
        message: Arc<AgentMessage>,
        event: fn(Arc<AgentMessage>) -> Event,
    ) -> Arc<AgentMessage> {
        match self.emit_changeable(event(message.clone())).await {
            Some(Mutation::Message(changed)) => changed,
            _ => message,
        }
    }

    async fn emit_to_store_and_mode(&self, event: Event, ends_run: bool) {
        let session = self.session;
        if let Event::MessageEnd { message } = &event {
            let problem = session.state.lock().append_or_buffer(message.clone());
            session.report_store_problem(problem).await;
        }
        if let Event::MessageEnd { message } = &event {
            let fits = match &**message {
                AgentMessage::User(_) => true,
                AgentMessage::Assistant(answer) => answer.stop_reason != StopReason::Error,
                _ => false,
            };
            session.state.lock().compaction.compacted_for_overflow &= !fits;
        }
        let recovered = match &event {
            Event::MessageEnd { message } => message.as_assistant().and_then(|message| {
                let fine = !matches!(message.stop_reason, StopReason::Error | StopReason::Aborted);
                let mut state = session.state.lock();
                (fine && state.retry.attempt > 0).then(|| std::mem::take(&mut state.retry.attempt))
            }),
            _ => None,
        };
        let has_leftovers = ends_run && session.mark_idle_after_handlers();
        if ends_run {
            // Messages that handlers of `agent_end` appended are emitted before it.
            session.ui.wait_outbox().await;
        }
        session.emit_to_mode(event).await;
        if ends_run {
            let mut state = session.state.lock();
            if let Some(run) = state.work.ending_run().map(|run| run.id) {
                state.finish_closing(run);
            }
        }
        if has_leftovers {
            session.start_queued().await;
        }
        if let Some(attempt) = recovered {
            session
                .emit_to_mode(Event::AutoRetryEnd {
                    success: true,
                    attempt,
                    final_error: None,
                })
                .await;
        }
    }
}

#[async_trait]
impl RunHooks for Hooks<'_> {
    /// Extensions first, then the file, then the mode.
    async fn emit(&self, mut event: Event) {
        if let Event::ToolExecutionUpdate { partial_result, .. } = &mut event {
            self.session.redact_output(partial_result);
        }
        let result = self.emit_to_extensions(&event).await;
        if let Event::AgentEnd { will_retry, .. } = &mut event {
            *will_retry = Some(self.session.state.lock().will_retry());
        }
        self.emit_to_store_and_mode(event, result.ends_run).await;
    }

    async fn begin_message(&self, message: Arc<AgentMessage>) -> Arc<AgentMessage> {
        let message = redact_error(message);
        self.emit_message(message, |message| Event::MessageStart { message })
            .await
    }

    async fn finish_message(&self, message: Arc<AgentMessage>) -> Arc<AgentMessage> {
        let message = redact_error(message);
        self.emit_message(message, |message| Event::MessageEnd { message })
            .await
    }

    async fn begin_tool_call(&self, call: &ToolCall) -> Value {
        let event = Event::ToolExecutionStart {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            args: call.arguments.clone(),
        };
        match self.emit_changeable(event).await {
            Some(Mutation::Args(changed)) => changed,
            _ => call.arguments.clone(),
        }
    }

    async fn before_files_change(&self) {
        self.session.mode.before_files_change().await;
    }

    async fn finish_tool_call(&self, call: &ToolCall, mut outcome: ToolOutcome) -> ToolOutcome {
        self.session.redact_output(&mut outcome.output);
        let event = Event::ToolExecutionEnd {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            result: outcome.output.clone(),
            is_error: outcome.is_error,
            duration_ms: outcome.duration_ms(),
        };
        match self.emit_changeable(event).await {
            Some(Mutation::Result(mut changed)) => {
                self.session.redact_output(&mut changed);
                ToolOutcome {
                    output: *changed,
                    ..outcome
                }
            }
            _ => outcome,
        }
    }

    async fn end_turn(
        &self,
        message: Arc<AgentMessage>,
        tool_results: Vec<Arc<AgentMessage>>,
    ) -> TurnEnd {
        let event = Event::TurnEnd {
            message,
            tool_results,
        };
        let name = event.name();
        let result = self.emit_to_extensions(&event).await;
        self.emit_to_store_and_mode(event, result.ends_run).await;
        match result.proposal {
            Some(proposal) => self.apply_proposal(name, proposal).await,
            None => TurnEnd::default(),
        }
    }

    async fn transform_context(
        &self,
        messages: Vec<Arc<AgentMessage>>,
        cancel: &CancellationToken,
    ) -> Vec<Arc<AgentMessage>> {
        let extensions = &self.session.extensions;
        if !extensions.has_handlers("context") {
            return messages;
        }
        let event = || json!({ "messages": messages });
        let emission = extensions.deliver("context", event, cancel).await;
        let changed = emission.event.get("messages");
        *self.system.lock() = changed.map(results::system_messages).unwrap_or_default();
        match changed.and_then(results::read_messages) {
            Some(changed) => changed.into_iter().map(Arc::new).collect(),
            None => messages,
        }
    }

    async fn transform_request(
        &self,
        request: ModelRequest,
        cancel: &CancellationToken,
    ) -> ModelRequest {
        let added = std::mem::take(&mut *self.system.lock());
        self.session
            .apply_system_messages(request, added, cancel)
            .await
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.session.tools.active()
    }

    fn is_tool_active(&self, name: &str) -> bool {
        self.session.tools.is_active(name)
    }

    async fn stream_options(&self) -> Result<StreamOptions, String> {
        let session = self.session;
        let cancel = session.run_cancel();
        let credentials = tokio::select! {
            found = session.models.credentials(&self.config.model) => found,
            () = cancel.cancelled() => return Err("Request was aborted.".into()),
        };
        let credentials = credentials.map_err(|error| error.to_string())?;
        let (thinking, id) = {
            let state = session.state.lock();
            // A model that was changed during the run, and its level, are for the next run.
            let is_same = state.model.as_ref() == Some(&self.config.model);
            let thinking = if is_same {
                state.thinking
            } else {
                self.thinking
            };
            (thinking, state.session.id().to_string())
        };
        Ok(StreamOptions {
            api_key: credentials.api_key,
            headers: session.changed_headers(credentials.headers).await,
            reasoning: Some(thinking),
            thinking_budgets: session.settings.values().thinking_budgets.clone(),
            session_id: Some(id),
            max_retry_delay_ms: Some(session.settings.values().retry.max_requested_delay_ms()),
            transport: Some(session.settings.values().transport),
            hooks: ProviderHooks::if_handled(session),
            ..StreamOptions::default()
        })
    }

    fn shows_images(&self) -> bool {
        !self.session.settings.values().images.block_images
    }

    async fn before_tool_call(
        &self,
        call: &ToolCall,
        args: &mut Value,
        cancel: &CancellationToken,
    ) -> Result<Option<PathFilter>, Refusal> {
        let session = self.session;
        let mut approval = session.approve(call, args, cancel).await?;
        let approved = approval.is_decided.then(|| args.clone());
        let extensions = &session.extensions;
        extensions.before_tool_call(call, args, cancel).await?;
        // The input that was approved is the input that runs.
        if approved.is_some_and(|approved| approved != *args) {
            approval = session.approve(call, args, cancel).await?;
        }
        let unreadable = approval
            .unreadable
            .map(|unreadable| -> PathFilter { Arc::new(move |path| unreadable.contains(path)) });
        tokio::select! {
            biased;
            guarded = session.guard_protected(&call.name, args) => guarded?,
            () = cancel.cancelled() => return Err(Refusal {
                reason: "Operation aborted".to_owned(),
                terminate: false,
            }),
        }
        session.note_tool_start(&call.id);
        Ok(unreadable)
    }

    async fn after_tool_call(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut ToolOutcome,
        cancel: &CancellationToken,
    ) {
        self.session.note_tool_end(&call.id);
        if !outcome.is_error {
            self.session.note_writes(&call.name, args).await;
        }
        self.session.redact_output(&mut outcome.output);
        let extensions = &self.session.extensions;
        extensions
            .after_tool_call(call, args, outcome, cancel)
            .await;
    }

    async fn take_steering(&self) -> Vec<Arc<AgentMessage>> {
        let session = self.session;
        let cancel = session.run_cancel();
        tokio::select! {
            () = session.intake.steering.drain(STEER_DRAIN_TIMEOUT) => {}
            () = cancel.cancelled() => {}
        }
        self.take(Delivery::Steer)
    }

    async fn take_silent(&self) -> Vec<Arc<AgentMessage>> {
        self.session.state.lock().prompts.queues.take_silent()
    }

    async fn take_follow_up(&self) -> Vec<Arc<AgentMessage>> {
        self.take(Delivery::FollowUp)
    }

    async fn queue_delivered(&self) {
        self.session.queue_changed().await;
    }
}

impl Hooks<'_> {
    fn take(&self, delivery: Delivery) -> Vec<Arc<AgentMessage>> {
        self.session.state.lock().prompts.queues.take(delivery)
    }
}

/// An event in the format of the extension API, which adds the turn to `turn_start` and `turn_end`.
#[derive(Serialize)]
#[serde(untagged)]
enum ExtensionEvent<'a> {
    Plain(&'a Event),
    TurnStart {
        #[serde(flatten)]
        event: &'a Event,
        #[serde(rename = "turnIndex")]
        turn: u64,
        timestamp: i64,
    },
    TurnEnd {
        #[serde(flatten)]
        event: &'a Event,
        #[serde(rename = "turnIndex")]
        turn: u64,
        #[serde(flatten)]
        ended: EndedTurn,
    },
}

impl<'a> ExtensionEvent<'a> {
    fn new(event: &'a Event, turn: u64, session: &AgentSession) -> Self {
        match event {
            Event::TurnStart => Self::TurnStart {
                event,
                turn,
                timestamp: now(),
            },
            Event::TurnEnd { .. } => Self::TurnEnd {
                event,
                turn,
                ended: session.state.lock().last_turn(),
            },
            _ => Self::Plain(event),
        }
    }
}
