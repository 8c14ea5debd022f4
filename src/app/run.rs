//! A run of the agent in this session: what it is told and may do, where its
//! events go, and what happens when an answer fails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::prompt::{Accepted, PromptError};
use super::state::{Run, State};
use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::agent::queue::Delivery;
use crate::agent::run::{Outcome, Refusal, RunConfig, RunHooks, run};
use crate::ai::classify;
use crate::ai::message::{StopReason, ToolCall, now};
use crate::ai::model::{Model, ThinkingLevel};
use crate::ai::stream::{StreamHooks, StreamOptions};

/// For handlers of results that come after an abort.
const REVIEW_GRACE: Duration = Duration::from_secs(2);

impl AgentSession {
    /// Sets the agent to work on `prompts`, as soon as the caller lets go of what
    /// this returns.
    pub(super) fn start_run(&self, new: NewRun) -> Result<Accepted, PromptError> {
        let config = self.run_config(new.system_prompt)?;
        let mut prompts = new.prompts;
        let active = {
            let mut state = self.state.lock();
            if new.cancel.is_some_and(|cancel| cancel.is_cancelled()) {
                return Err(PromptError::Aborted);
            }
            if state.run.is_some() || state.summary.is_some() || state.replacing {
                return Err(PromptError::Busy);
            }
            if new.prompted {
                // After the user's own message, before those of handlers.
                let at = prompts.len().min(1);
                prompts.splice(at..at, state.next_turn.drain(..));
            }
            state.runs += 1;
            state.attempt = 0;
            let run = Run {
                id: state.runs,
                cancel: CancellationToken::new(),
            };
            state.run = Some(run.clone());
            state.owed = false;
            self.busy.send_replace(true);
            run
        };
        let (accepted, go) = Accepted::gate();
        let ends = Ends {
            session: self.arc(),
            run: active.id,
        };
        self.handle.spawn(async move {
            // The sender is dropped, nothing is ever sent.
            let _ = go.await;
            let session = ends.session.clone();
            // Whoever begins a run at the end of another may be faster than the news of
            // that end.
            let stage = session.stage.lock().await;
            session.drive(prompts, &config, &active).await;
            drop(stage);
            session.tell_of_rest(&active).await;
            drop(ends);
        });
        Ok(accepted)
    }

    /// What handlers of `before_provider_headers` make of the headers; one that is
    /// `null` goes.
    async fn changed_headers(&self, headers: IndexMap<String, String>) -> IndexMap<String, String> {
        let name = "before_provider_headers";
        if !self.extensions.has_handlers(name) {
            return headers;
        }
        let event = object(json!({ "headers": headers }));
        let emission = self.extensions.emit(name, event, &self.run_cancel()).await;
        let changed = emission.event.get("headers").and_then(Value::as_object);
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        changed.map_or(headers, |changed| {
            let kept = changed.iter();
            kept.filter_map(|(name, value)| Some((name.clone(), text(value)?)))
                .collect()
        })
    }

    fn run_config(&self, system_prompt: Option<String>) -> Result<RunConfig, PromptError> {
        let tools = self.active_tools();
        let state = self.state.lock();
        let model = state.model.clone().ok_or_else(|| self.no_model())?;
        let api = self
            .models
            .api(&model.api)
            .ok_or_else(|| PromptError::UnknownApi {
                model: model.reference(),
                api: model.api.clone(),
            })?;
        Ok(RunConfig {
            system_prompt: system_prompt.unwrap_or_else(|| state.system_prompt.clone()),
            model,
            api,
            tools,
        })
    }

    /// Runs, and runs again after failures that pass, and after a compaction if the
    /// conversation did not fit.
    async fn drive(&self, mut prompts: Vec<Arc<AgentMessage>>, config: &RunConfig, active: &Run) {
        let cancel = &active.cancel;
        let thinking = self.state.lock().thinking;
        loop {
            let hooks = Hooks {
                session: self,
                config,
                thinking,
            };
            let mut context = self.state.lock().context.clone();
            run(
                &mut context,
                std::mem::take(&mut prompts),
                config,
                &hooks,
                cancel,
            )
            .await;
            let again = match self.retry_after(cancel).await {
                Some((delay, wait)) => self.wait_for_retry(delay, wait).await,
                None => false,
            };
            if !again && !self.compact_after_run(active).await {
                return;
            }
        }
    }

    /// `false` if somebody ended the wait, and the run with it.
    async fn wait_for_retry(&self, delay: Duration, wait: CancellationToken) -> bool {
        let waited = tokio::select! {
            () = tokio::time::sleep(delay) => true,
            () = wait.cancelled() => false,
        };
        let attempt = {
            let mut state = self.state.lock();
            state.retry_wait = None;
            if waited {
                return true;
            }
            self.rest(&mut state);
            std::mem::take(&mut state.attempt)
        };
        self.tell(Event::AutoRetryEnd {
            success: false,
            attempt,
            final_error: Some("Retry cancelled".into()),
        })
        .await;
        false
    }

    /// How long to wait before the failed answer is asked for again, and what ends
    /// the wait; `None` if it did not fail, or is not to be.
    async fn retry_after(
        &self,
        cancel: &CancellationToken,
    ) -> Option<(Duration, CancellationToken)> {
        let (event, delay) = {
            let mut state = self.state.lock();
            let error = state.failure.take()?;
            let attempt = state.attempt + 1;
            match state.retry.delay(attempt) {
                Some(delay) => {
                    state.attempt = attempt;
                    // Before anybody hears of the wait, and may end it.
                    let wait = cancel.child_token();
                    state.retry_wait = Some(wait.clone());
                    // It stays in the file; the model is not shown it.
                    state.context.pop();
                    let start = Event::AutoRetryStart {
                        attempt,
                        max_attempts: state.retry.max_retries,
                        delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                        error_message: error,
                    };
                    (start, Some((delay, wait)))
                }
                None => {
                    self.rest(&mut state);
                    let end = Event::AutoRetryEnd {
                        success: false,
                        attempt: std::mem::take(&mut state.attempt),
                        final_error: Some(error),
                    };
                    (end, None)
                }
            }
        };
        self.tell(event).await;
        delay
    }
}

/// What a run begins with.
#[derive(Clone)]
pub(super) struct NewRun {
    pub prompts: Vec<Arc<AgentMessage>>,
    /// Instead of the session's own.
    pub system_prompt: Option<String>,
    /// The first message is a user's: what waited for one goes along.
    pub prompted: bool,
    /// Fires if whoever wanted the run has thought better of it.
    pub cancel: Option<CancellationToken>,
}

impl NewRun {
    pub fn of(prompts: Vec<Arc<AgentMessage>>) -> Self {
        Self {
            prompts,
            system_prompt: None,
            prompted: false,
            cancel: None,
        }
    }
}

/// Leaves the session idle when the run is over, also when it panics.
struct Ends {
    session: Arc<AgentSession>,
    run: u64,
}

impl Drop for Ends {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        if state.run.as_ref().is_some_and(|run| run.id == self.run) {
            state.run = None;
        }
        self.session.end_ending(&mut state, self.run);
        if state.due.take().is_some() {
            self.session.release_summary(&mut state);
        }
        // Whoever heard of the end may have begun another run already.
        if state.run.is_none() {
            self.session.busy.send_replace(false);
        }
    }
}

impl State {
    /// The error of the last answer, if asking again may help.
    fn passing_failure(&self, config: &RunConfig) -> Option<String> {
        let failed = self.context.last()?.as_assistant()?;
        let error = failed.error_message.clone().unwrap_or_default();
        let passes = self.retry.enabled
            && failed.stop_reason == StopReason::Error
            && classify::is_retryable(&error)
            && !classify::is_context_overflow(failed, config.model.context_window);
        passes.then_some(error)
    }

    pub fn ended_well(&self) -> bool {
        let mut answers = self.context.iter().rev();
        // A tool may have had the last word.
        let last = answers.find_map(|message| message.as_assistant());
        last.is_some_and(|answer| {
            !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        })
    }
}

/// The session as a run sees it.
struct Hooks<'a> {
    session: &'a AgentSession,
    config: &'a RunConfig,
    /// When it began.
    thinking: ThinkingLevel,
}

#[async_trait]
impl RunHooks for Hooks<'_> {
    /// Extensions first, then the file, then the mode.
    async fn emit(&self, event: Event) {
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
        let (turn, event_name) = {
            let mut state = session.state.lock();
            match &event {
                Event::AgentStart => state.turn = 0,
                Event::TurnEnd { .. } => state.turn += 1,
                _ => {}
            }
            let ended = matches!(event, Event::TurnEnd { .. });
            (state.turn - u64::from(ended), event.name())
        };
        session
            .extensions
            .notify(event_name, || ForExtensions::new(&event, turn), &cancel)
            .await;
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

    async fn transform_context(
        &self,
        messages: Vec<Arc<AgentMessage>>,
        cancel: &CancellationToken,
    ) -> Vec<Arc<AgentMessage>> {
        let extensions = &self.session.extensions;
        if !extensions.has_handlers("context") {
            return messages;
        }
        let event = object(json!({ "messages": messages }));
        let emission = extensions.emit("context", event, cancel).await;
        let changed = emission.event.get("messages").cloned().unwrap_or_default();
        match serde_json::from_value(changed) {
            Ok(messages) => messages,
            Err(error) => {
                let error = format!("the messages that the handlers left cannot be used: {error}");
                self.session.report("<runtime>", "context", error).await;
                messages
            }
        }
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
        let hooked = session.extensions.has_handlers("before_provider_request")
            || session.extensions.has_handlers("after_provider_response");
        Ok(StreamOptions {
            api_key: credentials.api_key,
            headers: session.changed_headers(credentials.headers).await,
            reasoning: Some(thinking),
            thinking_budgets: session.settings.values().thinking_budgets.clone(),
            session_id: Some(id),
            max_retry_delay_ms: Some(session.settings.values().retry.max_delay_ms),
            hooks: hooked.then(|| Arc::new(ProviderHooks(session.arc())) as _),
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
        if let Some(reason) = emission.blocked {
            let terminate = false;
            return Err(Refusal { reason, terminate });
        }
        if emission.says("block") {
            let reason = emission
                .answer
                .as_ref()
                .and_then(|answer| answer.get("reason"));
            let reason = reason
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty());
            let answer = emission.answer.as_ref();
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

    async fn after_tool_call(
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
        let event = object(json!({
            "toolName": call.name,
            "toolCallId": call.id,
            "input": args,
            "content": outcome.output.content,
            "details": outcome.output.details,
            "isError": outcome.is_error,
        }));
        // A tool that was aborted has a result, too, and handlers a moment to see it.
        let over = CancellationToken::new();
        let end = async {
            cancel.cancelled().await;
            tokio::time::sleep(REVIEW_GRACE).await;
            over.cancel();
            std::future::pending::<()>().await;
        };
        let mut emission = tokio::select! {
            emission = extensions.emit("tool_result", event, &over) => emission,
            () = end => return,
        };
        let content = emission.event.remove("content").unwrap_or_default();
        match serde_json::from_value(content) {
            Ok(content) => outcome.output.content = content,
            Err(error) => {
                let error = format!("the content that the handlers left cannot be used: {error}");
                self.session.report("<runtime>", "tool_result", error).await;
            }
        }
        outcome.output.details = emission
            .event
            .remove("details")
            .filter(|details| !details.is_null());
        if let Some(Value::Bool(is_error)) = emission.event.get("isError") {
            outcome.is_error = *is_error;
        }
    }

    async fn take_steering(&self) -> Vec<Arc<AgentMessage>> {
        self.take(Delivery::Steer)
    }

    async fn take_follow_up(&self) -> Vec<Arc<AgentMessage>> {
        self.take(Delivery::FollowUp)
    }

    async fn queue_taken(&self) {
        self.session.queue_changed().await;
    }
}

impl Hooks<'_> {
    fn take(&self, delivery: Delivery) -> Vec<Arc<AgentMessage>> {
        self.session.state.lock().queues.take(delivery)
    }
}

/// `before_provider_request` and `after_provider_response`.
struct ProviderHooks(Arc<AgentSession>);

#[async_trait]
impl StreamHooks for ProviderHooks {
    async fn payload(&self, _model: &Model, payload: Value) -> Value {
        let cancel = self.0.run_cancel();
        let event = object(json!({ "payload": payload }));
        let name = "before_provider_request";
        let mut emission = self.0.extensions.emit(name, event, &cancel).await;
        emission.event.remove("payload").unwrap_or_default()
    }

    async fn response(&self, _model: &Model, status: u16, headers: &IndexMap<String, String>) {
        let cancel = self.0.run_cancel();
        let event = object(json!({ "status": status, "headers": headers }));
        let name = "after_provider_response";
        self.0.extensions.emit(name, event, &cancel).await;
    }
}

impl AgentSession {
    pub(super) fn run_cancel(&self) -> CancellationToken {
        let run = self.state.lock().run.clone();
        run.map(|run| run.cancel).unwrap_or_default()
    }
}

/// What extensions are told: the wire format, and the number and time of a turn.
#[derive(Serialize)]
#[serde(untagged)]
enum ForExtensions<'a> {
    Plain(&'a Event),
    Turn(WithTurn<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WithTurn<'a> {
    #[serde(flatten)]
    event: &'a Event,
    turn_index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
}

impl<'a> ForExtensions<'a> {
    fn new(event: &'a Event, turn: u64) -> Self {
        let timestamp = match event {
            Event::TurnStart => Some(now()),
            Event::TurnEnd { .. } => None,
            _ => return Self::Plain(event),
        };
        Self::Turn(WithTurn {
            event,
            turn_index: turn,
            timestamp,
        })
    }
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
