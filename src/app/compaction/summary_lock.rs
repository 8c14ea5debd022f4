//! The exclusive right to write a summary, for a compaction or of a branch. No run begins while it
//! is held. Also finds the model for the summary.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::AgentSession;
use crate::activity::{ActivityWatch, Work};
use crate::state::State;
use pi_compaction::Summarizer;

/// Why no model can write the summary.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSummarizer {
    #[error("No model selected")]
    Model,
    #[error("{0}")]
    Auth(String),
    #[error(
        "The model {model} speaks the API \"{api}\", which neither pi nor an extension that is \
         loaded provides"
    )]
    Api { model: String, api: String },
    #[error("cancelled")]
    Cancelled,
}

/// The exclusive right to write a summary.
pub(crate) struct SummaryLock {
    state: Arc<Mutex<State>>,
    activity: ActivityWatch,
}

/// The right while a summary is being written; dropping it returns the right.
pub(crate) struct SummaryGuard<'a> {
    right: &'a SummaryLock,
    pub work: Work,
}

impl Drop for SummaryGuard<'_> {
    fn drop(&mut self) {
        self.right.state.lock().work.end_summary(self.work.id);
    }
}

impl SummaryGuard<'_> {
    /// Releases the right and marks `run` active in one step, so that no other work begins in
    /// between.
    pub fn transfer_to_run(self, run: Work) {
        self.right.state.lock().work.continue_run(run);
    }
}

/// The request of a caller that waits for the end of the run to write a summary. Dropping it
/// withdraws the request.
pub(crate) struct SummaryRequest<'a>(&'a SummaryLock);

impl<'a> SummaryRequest<'a> {
    /// Takes the right that the ended run passed on.
    pub fn take_handoff(&self) -> Option<SummaryGuard<'a>> {
        let work = self.0.state.lock().work.take_passed_summary()?;
        Some(self.0.resume(work))
    }
}

impl Drop for SummaryRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.compaction.waiters -= 1;
        if state.compaction.waiters == 0
            && let Some(work) = state.work.take_passed_summary()
        {
            state.work.end_summary(work.id);
        }
    }
}

impl SummaryLock {
    pub fn new(state: Arc<Mutex<State>>, activity: ActivityWatch) -> Self {
        Self { state, activity }
    }

    /// Makes the run pass the right to write a summary on when it ends. Otherwise handlers of
    /// `agent_end` could begin the next run each time.
    pub fn request(&self) -> SummaryRequest<'_> {
        self.state.lock().compaction.waiters += 1;
        SummaryRequest(self)
    }

    /// Returns `None` while a run is active, another summary is being written, or the session is
    /// being replaced.
    pub fn begin(&self) -> Option<SummaryGuard<'_>> {
        let mut state = self.state.lock();
        state.work.may_begin().then(|| SummaryGuard {
            right: self,
            work: state.work.begin_summary(),
        })
    }

    /// Makes the guard of a summary that was claimed before.
    pub fn resume(&self, work: Work) -> SummaryGuard<'_> {
        SummaryGuard { right: self, work }
    }

    /// Returns whether a summary is being written.
    pub fn is_held(&self) -> bool {
        self.state.lock().work.summary().is_some()
    }

    /// Returns when no summary is being written.
    pub async fn wait_free(&self) {
        let wait = self.activity.wait(|activity| activity.summary().is_none());
        wait.await;
    }
}

impl AgentSession {
    pub(crate) fn abort_summary(&self) {
        let summary = self.state.lock().work.summary();
        self.cancel_work(summary);
    }

    /// Returns the session's model with its credentials.
    pub(crate) async fn summarizer(
        &self,
        cancel: &CancellationToken,
    ) -> Result<Summarizer, NoSummarizer> {
        let model = self.model().ok_or(NoSummarizer::Model)?;
        let credentials = tokio::select! {
            found = self.models.credentials(&model) => found,
            () = cancel.cancelled() => return Err(NoSummarizer::Cancelled),
        };
        let credentials = credentials.map_err(|error| NoSummarizer::Auth(error.to_string()))?;
        let api = self
            .models
            .api(&model.api)
            .ok_or_else(|| NoSummarizer::Api {
                model: model.reference(),
                api: model.api.clone(),
            })?;
        Ok(Summarizer {
            model,
            api,
            api_key: credentials.api_key,
            headers: credentials.headers,
            max_retry_delay_ms: Some(self.settings.values().retry.max_requested_delay_ms()),
            thinking: None,
            session_id: None,
        })
    }
}
