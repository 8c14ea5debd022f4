//! Asks for a summary again when a model that is overloaded, or a connection that broke,
//! may be better the next time: by the same settings as answers, with events of its own.

use super::AgentSession;
use super::state::Run;
use crate::agent::event::{Event, SummarySource};
use crate::ai::classify;
use crate::compaction::SummaryError;

impl AgentSession {
    /// `ask` asks once.
    pub(super) async fn ask_with_retries<T, Asked>(
        &self,
        source: SummarySource,
        work: &Run,
        ask: impl Fn() -> Asked,
    ) -> Result<T, SummaryError>
    where
        Asked: Future<Output = Result<T, SummaryError>>,
    {
        let mut attempt = 0;
        let asked = loop {
            let asked = ask().await;
            let Err(SummaryError::Model { why, .. }) = &asked else {
                break asked;
            };
            if !classify::is_retryable(why) || work.cancel.is_cancelled() {
                break asked;
            }
            let (delay, max_attempts, wait) = {
                let mut state = self.state.lock();
                let Some(delay) = state.retry.delay(attempt + 1) else {
                    break asked;
                };
                // Before anybody hears of the wait, and may end it.
                let wait = work.cancel.child_token();
                state.retry_wait = Some(wait.clone());
                (delay, state.retry.max_retries, wait)
            };
            attempt += 1;
            self.tell(Event::SummarizationRetryScheduled {
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
            self.state.lock().retry_wait = None;
            if work.cancel.is_cancelled() {
                break Err(SummaryError::Cancelled);
            }
            if !waited {
                break asked;
            }
            self.tell(Event::SummarizationRetryAttemptStart(source))
                .await;
        };
        if attempt > 0 {
            self.tell(Event::SummarizationRetryFinished).await;
        }
        asked
    }
}
