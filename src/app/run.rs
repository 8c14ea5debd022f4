//! A run of the agent in this session: what it is told and may do, where its
//! events go, and what happens when an answer fails.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::prompt::{Accepted, PromptError};
use super::run_hooks::Hooks;
use super::state::{Run, State};
use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::agent::run::{RunConfig, run};
use crate::ai::classify;
use crate::ai::message::StopReason;

impl AgentSession {
    /// Sets the agent to work on `prompts`, as soon as the caller lets go of what
    /// this returns.
    pub(super) fn start_run(&self, new: NewRun) -> Result<Accepted, PromptError> {
        let run_prompt = new.system_prompt.clone();
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
            state.run_prompt = run_prompt;
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

    /// Runs, and runs again after failures that pass, and after a compaction if the
    /// conversation did not fit.
    async fn drive(&self, mut prompts: Vec<Arc<AgentMessage>>, config: &RunConfig, active: &Run) {
        let cancel = &active.cancel;
        if let Err(error) = self.hold_session(cancel).await {
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
            let again = match self.retry_after(cancel).await {
                Some((delay, wait)) => self.wait_for_retry(delay, wait).await,
                None => false,
            };
            if !again && !self.compact_after_run(active).await {
                self.ask_before_rest(active, &hooks).await;
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
    pub fn passing_failure(&self, config: &RunConfig) -> Option<String> {
        let failed = self.context[self.last_answer()?].as_assistant()?;
        let error = failed.error_message.clone().unwrap_or_default();
        let passes = self.retry.enabled
            && failed.stop_reason == StopReason::Error
            && classify::is_retryable(&error)
            && !classify::is_context_overflow(failed, config.model.context_window);
        passes.then_some(error)
    }

    /// Whether the failed answer is going to be asked for again.
    pub fn will_retry(&self) -> bool {
        let aborted = |run: &Run| run.cancel.is_cancelled();
        self.failure.is_some()
            && self.retry.delay(self.attempt + 1).is_some()
            && !self.run.as_ref().is_some_and(aborted)
    }

    /// Where the last answer is, if only extensions have said anything since.
    fn last_answer(&self) -> Option<usize> {
        let is_answer = |message: &Arc<AgentMessage>| message.as_assistant().is_some();
        let last = self.context.iter().rposition(is_answer)?;
        let mut since = self.context[last + 1..].iter();
        since
            .all(|message| matches!(**message, AgentMessage::Custom(_)))
            .then_some(last)
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

impl AgentSession {
    pub(super) fn run_cancel(&self) -> CancellationToken {
        let run = self.state.lock().run.clone();
        run.map(|run| run.cancel).unwrap_or_default()
    }
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
