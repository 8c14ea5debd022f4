//! A run of the agent in this session: its configuration, and retries after failed answers.

pub(in crate::app) mod hooks;
mod provider_hooks;
pub(in crate::app) mod settle;
mod turn_end;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::agent::run::{RunConfig, run};
use crate::ai::classify;
use crate::ai::message::StopReason;
use crate::app::AgentSession;
use crate::app::activity::Work;
use crate::app::prompt::{Accepted, PromptError};
use crate::app::run::hooks::Hooks;
use crate::app::state::State;

impl AgentSession {
    /// Begins a run as soon as the caller drops the result.
    pub(in crate::app) fn start_run(&self, new: NewRun) -> Result<Accepted, PromptError> {
        let run_prompt = new.system_prompt.clone();
        let config = self.run_config(new.system_prompt)?;
        let mut prompts = new.prompts;
        let active = {
            let mut state = self.state.lock();
            if new.cancel.is_some_and(|cancel| cancel.is_cancelled()) {
                return Err(PromptError::Aborted);
            }
            if !state.work.may_begin() {
                return Err(PromptError::Busy);
            }
            if new.prompted {
                // The waiting messages follow the user's own one and precede those of handlers.
                let at = prompts.len().min(1);
                prompts.splice(at..at, state.next_turn.drain(..));
            }
            state.run_prompt = run_prompt;
            state.retry_attempt = 0;
            state.run_pending = false;
            state.work.begin_run()
        };
        let (accepted, go) = Accepted::gate();
        let ends = RunGuard {
            session: self.arc(),
            run: active.id,
        };
        self.handle.spawn(async move {
            // The sender is dropped; no value is ever sent.
            let _ = go.await;
            let session = ends.session.clone();
            // A handler of `agent_end` may begin the next run before the events of the end are
            // emitted.
            let stage = session.event_order.lock().await;
            session.drive(prompts, &config, &active).await;
            drop(stage);
            session.emit_settled(&active).await;
            drop(ends);
        });
        Ok(accepted)
    }

    fn run_config(&self, system_prompt: Option<String>) -> Result<RunConfig, PromptError> {
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
        })
    }

    /// Runs the agent, again after transient failures, and again after a compaction if the context
    /// had overflowed.
    async fn drive(&self, mut prompts: Vec<Arc<AgentMessage>>, config: &RunConfig, active: &Work) {
        let cancel = &active.cancel;
        if let Err(error) = self.acquire_session_lock(cancel).await {
            return self.report("<session>", "append", error).await;
        }
        let thinking = self.state.lock().thinking;
        loop {
            let hooks = Hooks {
                session: self,
                config,
                thinking,
                system: Mutex::default(),
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
            let again = match self.prepare_retry(cancel).await {
                Some((delay, wait)) => self.wait_for_retry(delay, wait).await,
                None => false,
            };
            if !again && !self.compact_after_run(active).await {
                self.emit_before_settle(active, &hooks).await;
                return;
            }
        }
    }

    /// Returns `false` if an abort ended the wait and the run.
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
            self.end_run(&mut state);
            std::mem::take(&mut state.retry_attempt)
        };
        self.emit_to_mode(Event::AutoRetryEnd {
            success: false,
            attempt,
            final_error: Some("Retry cancelled".into()),
        })
        .await;
        false
    }

    /// Decides about a retry and emits `auto_retry_start` or `auto_retry_end`. Returns the delay
    /// and the token that cancels the wait; `None` if the answer did not fail or is not retried.
    async fn prepare_retry(
        &self,
        cancel: &CancellationToken,
    ) -> Option<(Duration, CancellationToken)> {
        let (event, delay) = {
            let mut state = self.state.lock();
            let error = state.retryable_failure.take()?;
            let attempt = state.retry_attempt + 1;
            match state.retry.delay(attempt) {
                Some(delay) => {
                    state.retry_attempt = attempt;
                    // Clients that hear of the wait can cancel it at once.
                    let wait = cancel.child_token();
                    state.retry_wait = Some(wait.clone());
                    // The failed answer stays in the file; the model does not see it.
                    if let Some(last) = state.last_answer() {
                        state.context.remove(last);
                    }
                    let start = Event::AutoRetryStart {
                        attempt,
                        max_attempts: state.retry.max_retries,
                        delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                        error_message: error,
                    };
                    (start, Some((delay, wait)))
                }
                None => {
                    self.end_run(&mut state);
                    let end = Event::AutoRetryEnd {
                        success: false,
                        attempt: std::mem::take(&mut state.retry_attempt),
                        final_error: Some(error),
                    };
                    (end, None)
                }
            }
        };
        self.emit_to_mode(event).await;
        delay
    }
}

/// The arguments of [`AgentSession::start_run`].
#[derive(Clone)]
pub(in crate::app) struct NewRun {
    pub prompts: Vec<Arc<AgentMessage>>,
    /// Replaces the session's system prompt.
    pub system_prompt: Option<String>,
    /// The first message is a user's, so the messages of [`State::next_turn`] join it.
    pub prompted: bool,
    /// Cancelled when the caller does not want the run any more.
    pub cancel: Option<CancellationToken>,
}

impl NewRun {
    pub fn with_prompts(prompts: Vec<Arc<AgentMessage>>) -> Self {
        Self {
            prompts,
            system_prompt: None,
            prompted: false,
            cancel: None,
        }
    }
}

/// Marks the session idle when the run is over, also when it panics.
struct RunGuard {
    session: Arc<AgentSession>,
    run: u64,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        state.finish_closing(self.run);
        state.work.end_run_task(self.run);
    }
}

impl State {
    /// Returns the error of the last answer if a retry may help.
    pub fn retryable_error(&self, config: &RunConfig) -> Option<String> {
        let failed = self.context[self.last_answer()?].as_assistant()?;
        let error = failed.error_message.clone().unwrap_or_default();
        let passes = self.retry.enabled
            && failed.stop_reason == StopReason::Error
            && classify::is_retryable(&error)
            && !classify::is_context_overflow(failed, config.model.context_window);
        passes.then_some(error)
    }

    /// Returns whether the failed request is going to be retried.
    pub fn will_retry(&self) -> bool {
        let aborted = |run: Work| run.cancel.is_cancelled();
        self.retryable_failure.is_some()
            && self.retry.delay(self.retry_attempt + 1).is_some()
            && !self.work.run().is_some_and(aborted)
    }

    /// Returns the index of the last answer, unless other messages than those of extensions follow
    /// it.
    fn last_answer(&self) -> Option<usize> {
        let is_answer = |message: &Arc<AgentMessage>| message.as_assistant().is_some();
        let last = self.context.iter().rposition(is_answer)?;
        let mut since = self.context[last + 1..].iter();
        since
            .all(|message| matches!(**message, AgentMessage::Custom(_)))
            .then_some(last)
    }

    pub fn ended_without_error(&self) -> bool {
        let mut answers = self.context.iter().rev();
        // Tool results may follow the last answer.
        let last = answers.find_map(|message| message.as_assistant());
        last.is_some_and(|answer| {
            !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        })
    }
}

impl AgentSession {
    pub(in crate::app) fn run_cancel(&self) -> CancellationToken {
        let run = self.state.lock().work.run();
        run.map(|run| run.cancel).unwrap_or_default()
    }
}

pub(in crate::app) fn json_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
