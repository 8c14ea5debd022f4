//! Retries a summary after a transient failure, with the retry settings of answers and events of
//! its own.

use crate::AgentSession;
use crate::activity::Work;
use pi_agent::event::{Event, SummarySource};
use pi_ai::classify;
use pi_compaction::SummaryError;

impl AgentSession {
    /// Calls `summarize` until it succeeds or no retry may help.
    pub(crate) async fn summarize_with_retries<T, Summary>(
        &self,
        source: SummarySource,
        work: &Work,
        summarize: impl Fn() -> Summary,
    ) -> Result<T, SummaryError>
    where
        Summary: Future<Output = Result<T, SummaryError>>,
    {
        let mut attempt = 0;
        let result = loop {
            let result = summarize().await;
            let Err(SummaryError::Model { why, .. }) = &result else {
                break result;
            };
            if !classify::is_retryable(why) || work.is_aborted() {
                break result;
            }
            let (delay, max_attempts, wait) = {
                let mut state = self.state.lock();
                let Some(delay) = state.retry.policy.delay(attempt + 1) else {
                    break result;
                };
                // Clients that hear of the wait can cancel it at once.
                let wait = work.cancel.child_token();
                state.retry.wait = Some(wait.clone());
                (delay, state.retry.policy.max_retries, wait)
            };
            attempt += 1;
            self.emit_to_mode(Event::SummarizationRetryScheduled {
                attempt,
                max_attempts,
                delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                error_message: why.clone(),
            })
            .await;
            let waited = tokio::select! {
                () = tokio::time::sleep(delay) => true,
                () = wait.cancelled() => false,
            };
            self.state.lock().retry.wait = None;
            if work.is_aborted() {
                break Err(SummaryError::Cancelled);
            }
            if !waited {
                break result;
            }
            self.emit_to_mode(Event::SummarizationRetryAttemptStart(source))
                .await;
        };
        if attempt > 0 {
            self.emit_to_mode(Event::SummarizationRetryFinished).await;
        }
        result
    }
}
