//! The exclusive right to write a summary, for a compaction or of a branch. No run begins while it
//! is held. Also finds the model for the summary.

use tokio_util::sync::CancellationToken;

use crate::app::AgentSession;
use crate::app::state::{State, Work};
use crate::compaction::Summarizer;

/// Why no model can write the summary.
#[derive(Debug, thiserror::Error)]
pub(in crate::app) enum NoSummarizer {
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

/// LockOutcome while a summary is being written.
pub(in crate::app) struct SummaryGuard<'a> {
    session: &'a AgentSession,
    pub work: Work,
}

impl Drop for SummaryGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        let held = state.summary.as_ref();
        if held.is_some_and(|held| held.id == self.work.id) {
            self.session.release_summary(&mut state);
        }
    }
}

impl SummaryGuard<'_> {
    /// Releases the right and marks `run` active in one step, so that no other work begins in
    /// between.
    pub fn transfer_to_run(self, run: Work) {
        let mut state = self.session.state.lock();
        self.session.release_summary(&mut state);
        state.run = Some(run);
    }
}

/// A caller waits for the end of the run to write a summary, until this is dropped.
pub(in crate::app) struct SummaryRequest<'a>(&'a AgentSession);

impl<'a> SummaryRequest<'a> {
    /// Takes the right that the ended run passed on.
    pub fn take_handoff(&self) -> Option<SummaryGuard<'a>> {
        let work = self.0.state.lock().summary_handoff.take()?;
        Some(self.0.resume_summary(work))
    }
}

impl Drop for SummaryRequest<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.summary_waiters -= 1;
        if state.summary_waiters == 0 && state.summary_handoff.take().is_some() {
            self.0.release_summary(&mut state);
        }
    }
}

impl AgentSession {
    /// Makes the run pass the right to write a summary on when it ends. Otherwise handlers of
    /// `agent_end` could begin the next run each time.
    pub(in crate::app) fn request_summary(&self) -> SummaryRequest<'_> {
        self.state.lock().summary_waiters += 1;
        SummaryRequest(self)
    }

    /// Returns `None` while a run is active, another summary is being written, or the session is
    /// being replaced.
    pub(in crate::app) fn begin_summary(&self) -> Option<SummaryGuard<'_>> {
        let mut state = self.state.lock();
        let free = state.run.is_none() && state.summary.is_none() && !state.replacing;
        free.then(|| SummaryGuard {
            session: self,
            work: self.claim_summary(&mut state),
        })
    }

    /// Makes the guard of a summary that was claimed before.
    pub(in crate::app) fn resume_summary(&self, work: Work) -> SummaryGuard<'_> {
        SummaryGuard {
            session: self,
            work,
        }
    }

    pub(in crate::app) fn claim_summary(&self, state: &mut State) -> Work {
        state.last_work_id += 1;
        let work = Work {
            id: state.last_work_id,
            cancel: CancellationToken::new(),
        };
        state.summary = Some(work.clone());
        self.summarizing.send_replace(true);
        work
    }

    pub(in crate::app) fn release_summary(&self, state: &mut State) {
        state.summary = None;
        self.summarizing.send_replace(false);
    }

    pub(in crate::app) fn is_summarizing(&self) -> bool {
        self.state.lock().summary.is_some()
    }

    pub(in crate::app) fn abort_summary(&self) {
        let summary = self.state.lock().summary.clone();
        self.cancel_work(summary);
    }

    /// Returns when no summary is being written.
    pub(in crate::app) async fn wait_summary(&self) {
        let mut summarizing = self.summarizing.subscribe();
        // An error means that the session is gone.
        let _ = summarizing.wait_for(|summarizing| !summarizing).await;
    }

    /// Returns the session's model with its credentials.
    pub(in crate::app) async fn summarizer(
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
