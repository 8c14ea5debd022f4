//! The session as a run of the agent sees it: where its events go, and what extensions
//! change of what is said, sent and called.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::boundary::EndedTurn;
use super::provider_hooks::ProviderHooks;
use super::run::object;
use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::agent::queue::Delivery;
use crate::agent::run::{ModelRequest, Outcome, Refusal, RunConfig, RunHooks, TurnEnd};
use crate::ai::message::{StopReason, ToolCall, now};
use crate::ai::model::ThinkingLevel;
use crate::ai::stream::StreamOptions;
use crate::extensions::diagnostics::results;
use crate::extensions::{Mutation, Proposal};
use crate::tools::tool::{LAST_WORD, STRUCTURED_CONTENT, Tool};

/// For handlers of `input` that are asked about what other handlers have said.
const STEERING: Duration = Duration::from_secs(1);

/// The session as a run sees it.
pub(super) struct Hooks<'a> {
    pub session: &'a AgentSession,
    pub config: &'a RunConfig,
    /// When it began.
    pub thinking: ThinkingLevel,
    /// Messages of the role `system` that `context` handlers have put into the next request.
    pub system: Mutex<Vec<Value>>,
}

/// What came of telling extensions.
#[derive(Default)]
struct Told {
    /// The run ends with it.
    ends: bool,
    /// What handlers made of the event.
    changed: Option<Mutation>,
    /// What they want at the end of a turn.
    proposal: Option<Proposal>,
}

impl Hooks<'_> {
    async fn tell_extensions(&self, event: &Event) -> Told {
        let session = self.session;
        // Otherwise it is tried again, and the session stays busy.
        let ends = matches!(event, Event::AgentEnd { .. }) && {
            let mut state = session.state.lock();
            state.failure = state.passing_failure(self.config);
            state.failure.is_none()
        };
        let cancel = session.run_cancel();
        if ends {
            session.begin_ending();
        }
        let turn = {
            let mut state = session.state.lock();
            match event {
                Event::AgentStart => state.turn = 0,
                Event::TurnEnd { .. } => state.turn += 1,
                _ => {}
            }
            let ended = matches!(event, Event::TurnEnd { .. });
            state.turn - u64::from(ended)
        };
        let name = event.name();
        let event_told = || ForExtensions::new(event, turn, session);
        let extensions = &session.extensions;
        let mut told = Told {
            ends,
            ..Told::default()
        };
        match event {
            // Its pieces are still to come, and take the place of what was made of it.
            Event::MessageStart { message } if message.as_assistant().is_some() => {
                extensions.notify(name, event_told, &cancel).await;
            }
            Event::MessageStart { .. }
            | Event::MessageEnd { .. }
            | Event::ToolExecutionStart { .. }
            | Event::ToolExecutionEnd { .. } => {
                let telling = extensions.notify_mutable(name, event_told, &cancel);
                told.changed = telling.await;
            }
            Event::MessageUpdate(update) => extensions.notify_update(update, &cancel).await,
            Event::TurnEnd { .. } => {
                let telling = extensions.notify_turn_end(name, event_told, &cancel);
                told.proposal = telling.await;
            }
            _ => extensions.notify(name, event_told, &cancel).await,
        }
        session.wait_told_first().await;
        told
    }

    /// Gives what handlers made of the event, if that is something else.
    async fn tell(&self, mut event: Event) -> Option<Mutation> {
        let told = self.tell_extensions(&event).await;
        if let Some(changed) = &told.changed {
            changed.apply_to(&mut event);
        }
        self.tell_others(event, told.ends).await;
        told.changed
    }

    /// Gives the message as it is said then.
    async fn tell_of(
        &self,
        message: Arc<AgentMessage>,
        event: fn(Arc<AgentMessage>) -> Event,
    ) -> Arc<AgentMessage> {
        match self.tell(event(message.clone())).await {
            Some(Mutation::Message(changed)) => changed,
            _ => message,
        }
    }

    async fn tell_others(&self, event: Event, ends: bool) {
        let session = self.session;
        if let Event::MessageEnd { message } = &event {
            let news = session.state.lock().say_anyway(message.clone());
            session.tell_of_store(news).await;
        }
        if let Event::MessageEnd { message } = &event {
            let fits = match &**message {
                AgentMessage::User(_) => true,
                AgentMessage::Assistant(answer) => answer.stop_reason != StopReason::Error,
                _ => false,
            };
            session.state.lock().overflow_recovered &= !fits;
        }
        let recovered = match &event {
            Event::MessageEnd { message } => message.as_assistant().and_then(|message| {
                let fine = !matches!(message.stop_reason, StopReason::Error | StopReason::Aborted);
                let mut state = session.state.lock();
                (fine && state.attempt > 0).then(|| std::mem::take(&mut state.attempt))
            }),
            _ => None,
        };
        let left = ends && session.rest_after_handlers();
        if ends {
            // What its handlers have said was said before it.
            session.wait_announced().await;
        }
        session.tell(event).await;
        if ends {
            let mut state = session.state.lock();
            if let Some(run) = state.ending.as_ref().map(|ending| ending.run.id) {
                session.end_ending(&mut state, run);
            }
        }
        if left {
            session.start_queued().await;
        }
        if let Some(attempt) = recovered {
            session
                .tell(Event::AutoRetryEnd {
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
        let told = self.tell_extensions(&event).await;
        if let Event::AgentEnd { will_retry, .. } = &mut event {
            *will_retry = Some(self.session.state.lock().will_retry());
        }
        self.tell_others(event, told.ends).await;
    }

    async fn begin_message(&self, message: Arc<AgentMessage>) -> Arc<AgentMessage> {
        self.tell_of(message, |message| Event::MessageStart { message })
            .await
    }

    async fn finish_message(&self, message: Arc<AgentMessage>) -> Arc<AgentMessage> {
        self.tell_of(message, |message| Event::MessageEnd { message })
            .await
    }

    async fn begin_tool_call(&self, call: &ToolCall) -> Value {
        let event = Event::ToolExecutionStart {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            args: call.arguments.clone(),
        };
        match self.tell(event).await {
            Some(Mutation::Args(changed)) => changed,
            _ => call.arguments.clone(),
        }
    }

    async fn before_files_change(&self) {
        self.session.mode.before_files_change().await;
    }

    async fn finish_tool_call(&self, call: &ToolCall, outcome: Outcome) -> Outcome {
        let event = Event::ToolExecutionEnd {
            tool_call_id: call.id.clone(),
            tool_name: call.name.clone(),
            result: outcome.output.clone(),
            is_error: outcome.is_error,
            duration_ms: outcome.duration_ms(),
        };
        match self.tell(event).await {
            Some(Mutation::Result(changed)) => Outcome {
                output: *changed,
                ..outcome
            },
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
        let told = self.tell_extensions(&event).await;
        let mut proposal = told.proposal;
        if let Some(hooks) = &self.session.beside.hooks {
            let turn = self.session.state.lock().turn - 1;
            let ended = ForExtensions::new(&event, turn, self.session);
            let more = self.end_second_turn(hooks, ended).await;
            proposal = Proposal::merge(proposal, more);
        }
        self.tell_others(event, told.ends).await;
        match proposal {
            Some(proposal) => self.commit(name, proposal).await,
            None => TurnEnd::default(),
        }
    }

    async fn transform_context(
        &self,
        messages: Vec<Arc<AgentMessage>>,
        cancel: &CancellationToken,
    ) -> Vec<Arc<AgentMessage>> {
        let extensions = &self.session.extensions;
        let taken = |changed: Option<&Value>| {
            let changed = results::read_messages(changed?);
            changed.map(|all| all.into_iter().map(Arc::new).collect())
        };
        let mut messages = messages;
        if extensions.has_handlers("context") {
            let event = object(json!({ "messages": messages }));
            let emission = extensions.emit("context", event, cancel).await;
            let changed = emission.event.get("messages");
            *self.system.lock() = changed.map(results::system_messages).unwrap_or_default();
            messages = taken(changed).unwrap_or(messages);
        }
        if let Some(hooks) = &self.session.beside.hooks
            && hooks.changes("context")
        {
            let event = json!({ "messages": messages });
            let changed = hooks.change("context", event, cancel).await;
            let changed = changed.as_ref().and_then(|event| event.get("messages"));
            messages = taken(changed).unwrap_or(messages);
        }
        messages
    }

    async fn transform_request(
        &self,
        asked: ModelRequest,
        cancel: &CancellationToken,
    ) -> ModelRequest {
        let added = std::mem::take(&mut *self.system.lock());
        self.session.with_system(asked, added, cancel).await
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.session.active_tools()
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
            // Another model is for the next run, and its level, too.
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
            hooks: ProviderHooks::of(session),
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
    ) -> Result<(), Refusal> {
        self.ask_handlers(call, args, cancel).await?;
        match &self.session.beside.hooks {
            Some(hooks) => hooks.before(call, args, cancel).await,
            None => Ok(()),
        }
    }

    async fn after_tool_call(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut Outcome,
        cancel: &CancellationToken,
    ) {
        self.show_handlers(call, args, outcome, cancel).await;
        if let Some(hooks) = &self.session.beside.hooks {
            hooks.after(call, args, outcome, cancel).await;
        }
    }

    async fn take_steering(&self) -> Vec<Arc<AgentMessage>> {
        let session = self.session;
        let cancel = session.run_cancel();
        tokio::select! {
            () = session.steered.settle(STEERING) => {}
            () = cancel.cancelled() => {}
        }
        self.take(Delivery::Steer)
    }

    async fn take_silent(&self) -> Vec<Arc<AgentMessage>> {
        self.session.state.lock().queues.take_silent()
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
        self.session.state.lock().queues.take(delivery)
    }

    /// `tool_call`
    async fn ask_handlers(
        &self,
        call: &ToolCall,
        args: &mut Value,
        cancel: &CancellationToken,
    ) -> Result<(), Refusal> {
        let extensions = &self.session.extensions;
        if !extensions.has_handlers("tool_call") {
            return Ok(());
        }
        let event = object(json!({
            "toolName": call.name,
            "toolCallId": call.id,
            "input": args,
        }));
        let mut emission = extensions.emit("tool_call", event, cancel).await;
        if let Some(reason) = emission.block_reason {
            let terminate = false;
            return Err(Refusal { reason, terminate });
        }
        if emission.is_set("block") {
            let reason = emission
                .result
                .as_ref()
                .and_then(|answer| answer.get("reason"));
            let reason = reason
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty());
            let answer = emission.result.as_ref();
            return Err(Refusal {
                reason: reason.unwrap_or("Tool execution was blocked").to_string(),
                terminate: answer
                    .is_some_and(|answer| answer.get("terminate") == Some(&true.into())),
            });
        }
        if let Some(input) = emission.event.remove("input") {
            *args = input;
        }
        Ok(())
    }

    /// `tool_result`
    async fn show_handlers(
        &self,
        call: &ToolCall,
        args: &Value,
        outcome: &mut Outcome,
        cancel: &CancellationToken,
    ) {
        let extensions = &self.session.extensions;
        if !extensions.has_handlers("tool_result") {
            return;
        }
        let mut event = object(json!({
            "toolName": call.name,
            "toolCallId": call.id,
            "input": args,
            "content": outcome.output.content,
            "isError": outcome.is_error,
        }));
        // Handlers give it a default: there is none, not nothing.
        if let Some(details) = &outcome.output.details {
            event.insert("details".into(), details.clone());
        }
        let structured = outcome.output.other.get(STRUCTURED_CONTENT).cloned();
        for name in ["usage", STRUCTURED_CONTENT] {
            if let Some(value) = outcome.output.other.get(name) {
                event.insert(name.into(), value.clone());
            }
        }
        let content_before = event["content"].clone();
        // A tool that was aborted has a result, too, and handlers a moment to see it.
        let over = CancellationToken::new();
        let end = async {
            cancel.cancelled().await;
            tokio::time::sleep(LAST_WORD).await;
            over.cancel();
            std::future::pending::<()>().await;
        };
        let mut emission = tokio::select! {
            emission = extensions.emit("tool_result", event, &over) => emission,
            () = end => return,
        };
        let content = emission.event.remove("content").unwrap_or_default();
        let has_other_content = content != content_before;
        // What does not fit was not taken.
        if let Ok(content) = serde_json::from_value(content) {
            outcome.output.content = content;
        }
        // With `null` a handler takes back what those before it made of the tool's own.
        match emission.event.remove("details") {
            Some(Value::Null) => {}
            details => outcome.output.details = details,
        }
        if let Some(usage) = emission.event.remove("usage") {
            outcome.output.other.insert("usage".into(), usage);
        }
        match emission.event.remove(STRUCTURED_CONTENT) {
            // Content that a handler has put in place may say something else.
            now if has_other_content && now == structured => {
                outcome.output.other.shift_remove(STRUCTURED_CONTENT);
            }
            Some(now) => {
                outcome.output.other.insert(STRUCTURED_CONTENT.into(), now);
            }
            None => {}
        }
        if let Some(Value::Bool(is_error)) = emission.event.get("isError") {
            outcome.is_error = *is_error;
        }
    }
}

/// What extensions are told: the wire format, and of a turn what it is.
#[derive(Serialize)]
#[serde(untagged)]
enum ForExtensions<'a> {
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

impl<'a> ForExtensions<'a> {
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
