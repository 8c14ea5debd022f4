//! Retries of a request after a transient failure.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::AgentSession;
use crate::activity::Work;
use crate::state::State;
use pi_agent::event::Event;
use pi_agent::retry::RetryPolicy;
use pi_agent::run::RunConfig;
use pi_ai::classify;
use pi_ai::message::StopReason;

pub(crate) struct Retry {
    pub policy: RetryPolicy,
    /// The error of the last answer if the request is retried. Set before `agent_end`, whose
    /// handlers may change the policy.
    pub failure: Option<String>,
    /// Cancels the wait before a retry.
    pub wait: Option<CancellationToken>,
    /// Failed attempts of the current request.
    pub attempt: u32,
}

impl From<RetryPolicy> for Retry {
    fn from(policy: RetryPolicy) -> Self {
        Self {
            policy,
            failure: None,
            wait: None,
            attempt: 0,
        }
    }
}

impl AgentSession {
    /// Ends the wait for a retry, and with it the run. A run that is not waiting goes on. Returns
    /// whether there was a wait.
    pub(crate) fn abort_retry(&self) -> bool {
        let state = self.state.lock();
        let waits = state.retry.wait.as_ref();
        waits.inspect(|wait| wait.cancel()).is_some()
    }

    pub(crate) fn set_auto_retry(&self, enabled: bool) {
        self.state.lock().retry.policy.enabled = enabled;
        self.report_save_error(self.settings.set_retry_enabled(enabled));
    }

    /// Returns `false` if an abort ended the wait and the run.
    pub(super) async fn wait_for_retry(&self, delay: Duration, wait: CancellationToken) -> bool {
        let waited = tokio::select! {
            () = tokio::time::sleep(delay) => true,
            () = wait.cancelled() => false,
        };
        let attempt = {
            let mut state = self.state.lock();
            state.retry.wait = None;
            if waited {
                return true;
            }
            self.end_run(&mut state);
            std::mem::take(&mut state.retry.attempt)
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
    pub(super) async fn begin_retry(
        &self,
        cancel: &CancellationToken,
    ) -> Option<(Duration, CancellationToken)> {
        let (event, delay) = {
            let mut state = self.state.lock();
            let error = state.retry.failure.take()?;
            let attempt = state.retry.attempt + 1;
            match state.retry.policy.delay(attempt) {
                Some(delay) => {
                    state.retry.attempt = attempt;
                    // Clients that hear of the wait can cancel it at once.
                    let wait = cancel.child_token();
                    state.retry.wait = Some(wait.clone());
                    // The failed answer stays in the file; the model does not see it.
                    if let Some(last) = state.last_answer() {
                        state.context.remove(last);
                    }
                    let start = Event::AutoRetryStart {
                        attempt,
                        max_attempts: state.retry.policy.max_retries,
                        delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                        error_message: error,
                    };
                    (start, Some((delay, wait)))
                }
                None => {
                    self.end_run(&mut state);
                    let end = Event::AutoRetryEnd {
                        success: false,
                        attempt: std::mem::take(&mut state.retry.attempt),
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

impl State {
    /// Returns the error of the last answer if a retry may help.
    pub fn retryable_error(&self, config: &RunConfig) -> Option<String> {
        let failed = self.context[self.last_answer()?].as_assistant()?;
        let error = failed.error_message.clone().unwrap_or_default();
        let passes = self.retry.policy.enabled
            && failed.stop_reason == StopReason::Error
            && classify::is_retryable(&error)
            && !classify::is_context_overflow(failed, config.model.context_window);
        passes.then_some(error)
    }

    /// Returns whether the failed request is going to be retried.
    pub fn will_retry(&self) -> bool {
        let aborted = |run: Work| run.is_aborted();
        self.retry.failure.is_some()
            && self.retry.policy.delay(self.retry.attempt + 1).is_some()
            && !self.work.run().is_some_and(aborted)
    }
}
