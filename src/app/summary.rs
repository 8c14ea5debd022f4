//! The right to write a summary, of the conversation or of a branch: one at a
//! time, and no run begins meanwhile. Also the model that writes it.

use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::state::{Run, State};
use crate::compaction::Summarizer;

/// Why nobody can be asked for a summary.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSummarizer {
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

/// Held while a summary is being written.
pub(super) struct Summarising<'a> {
    session: &'a AgentSession,
    pub work: Run,
}

impl Drop for Summarising<'_> {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        let held = state.summary.as_ref();
        if held.is_some_and(|held| held.id == self.work.id) {
            self.session.release_summary(&mut state);
        }
    }
}

impl Summarising<'_> {
    /// Lets go, and gives way to a run at once: nobody gets in between.
    pub fn give_way_to(self, run: Run) {
        let mut state = self.session.state.lock();
        self.session.release_summary(&mut state);
        state.run = Some(run);
    }
}

/// Somebody waits for the end of the run to write a summary, until this is dropped.
pub(super) struct Wanted<'a>(&'a AgentSession);

impl<'a> Wanted<'a> {
    /// What the run has left to whoever waits, if it is over.
    pub fn handed(&self) -> Option<Summarising<'a>> {
        let work = self.0.state.lock().handed.take()?;
        Some(self.0.go_on_with_summary(work))
    }
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.wanted -= 1;
        if state.wanted == 0 && state.handed.take().is_some() {
            self.0.release_summary(&mut state);
        }
    }
}

impl AgentSession {
    /// A run that ends from here on gives way to a summary: a handler of `agent_end` may
    /// begin another run each time.
    pub(super) fn want_summary(&self) -> Wanted<'_> {
        self.state.lock().wanted += 1;
        Wanted(self)
    }

    /// `None` while the agent runs, another summary is being written, or the
    /// session is being replaced.
    pub(super) fn begin_summary(&self) -> Option<Summarising<'_>> {
        let mut state = self.state.lock();
        let free = state.run.is_none() && state.summary.is_none() && !state.replacing;
        free.then(|| Summarising {
            session: self,
            work: self.hold_summary(&mut state),
        })
    }

    /// The same for a summary that is held already.
    pub(super) fn go_on_with_summary(&self, work: Run) -> Summarising<'_> {
        Summarising {
            session: self,
            work,
        }
    }

    pub(super) fn hold_summary(&self, state: &mut State) -> Run {
        state.runs += 1;
        let work = Run {
            id: state.runs,
            cancel: CancellationToken::new(),
        };
        state.summary = Some(work.clone());
        self.summarising.send_replace(true);
        work
    }

    pub(super) fn release_summary(&self, state: &mut State) {
        state.summary = None;
        self.summarising.send_replace(false);
    }

    pub(super) fn is_summarising(&self) -> bool {
        self.state.lock().summary.is_some()
    }

    pub(super) fn abort_summary(&self) {
        let summary = self.state.lock().summary.clone();
        self.cancel(summary);
    }

    /// Returns when no summary is being written.
    pub(super) async fn wait_summary(&self) {
        let mut summarising = self.summarising.subscribe();
        // An error means that the session is gone.
        let _ = summarising.wait_for(|summarising| !summarising).await;
    }

    /// The session's model, with its key.
    pub(super) async fn summarizer(
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
