//! Compaction in this session: when it is due, which events it emits, what it appends, and how the
//! run continues.

mod retry;
pub(crate) mod summary_lock;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::AgentSession;
use crate::activity::Work;
use crate::compaction::summary_lock::{NoSummarizer, SummaryGuard};
use crate::error::{CommandError, ErrorCode};
use crate::prompt::PromptError;
use crate::run::json_object;
use crate::state::State;
use pi_agent::AgentMessage;
use pi_agent::event::{CompactionReason, Event, SummarySource};
use pi_ai::classify;
use pi_ai::json::surrogates;
use pi_ai::message::{AssistantMessage, StopReason};
use pi_ai::model::Model;
use pi_compaction::{
    Compacted, NothingToCompact, Preparation, SummaryError, estimate, estimate_context,
    exceeds_window, prepare, summarize, usage_tokens,
};
use pi_extensions::diagnostics::results::CompactionResult;
use pi_resources::settings::CompactionSettings;
use pi_session::{Entry, EntryKind};

const CANCELLED: &str = "Compaction cancelled";
const OVERFLOW_NOT_RECOVERED: &str = "Context overflow recovery failed after one compact-and-retry \
                                      attempt. Try reducing context or switching to a larger-context model.";

/// The settings and the history of compactions in a session.
#[derive(Default)]
pub(crate) struct CompactionState {
    pub is_automatic: bool,
    /// The conversation was compacted after a context overflow, and no answer has fit since.
    pub compacted_for_overflow: bool,
    /// Number of callers that wait for the end of the run to write a summary.
    pub waiters: usize,
}

impl CompactionState {
    /// Whether the right to write a summary is passed on when the run ends.
    pub fn is_requested(&self) -> bool {
        self.waiters > 0
    }
}

/// Why the last answer requires a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactionTrigger {
    Threshold,
    /// The context overflowed. With `retry` there is no answer, so the request is repeated.
    Overflow {
        retry: bool,
    },
    /// The context overflowed again after a compaction.
    GiveUp,
}

/// Members of the compaction events that describe their cause.
#[derive(Clone, Copy)]
struct CompactionCause {
    reason: CompactionReason,
    /// The request that overflowed is repeated afterwards.
    will_retry: bool,
}

#[derive(Debug, thiserror::Error)]
enum CompactError {
    #[error("{CANCELLED}")]
    Cancelled,
    #[error(transparent)]
    Nothing(#[from] NothingToCompact),
    #[error(transparent)]
    NoSummarizer(NoSummarizer),
    #[error("{0}")]
    Failed(String),
}

impl From<CompactError> for CommandError {
    fn from(error: CompactError) -> Self {
        let code = match &error {
            CompactError::Cancelled => ErrorCode::Aborted,
            CompactError::Nothing(_) => ErrorCode::NothingToDo,
            CompactError::NoSummarizer(NoSummarizer::Model) => ErrorCode::NoModel,
            CompactError::NoSummarizer(NoSummarizer::Auth(_)) => ErrorCode::Auth,
            CompactError::NoSummarizer(NoSummarizer::Api { .. }) => ErrorCode::UnsupportedApi,
            CompactError::NoSummarizer(NoSummarizer::Cancelled) => ErrorCode::Aborted,
            CompactError::Failed(_) => ErrorCode::SummaryFailed,
        };
        Self::new(code, error.to_string())
    }
}

impl From<SummaryError> for CompactError {
    fn from(error: SummaryError) -> Self {
        match error {
            SummaryError::Cancelled => Self::Cancelled,
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<NoSummarizer> for CompactError {
    fn from(error: NoSummarizer) -> Self {
        match error {
            NoSummarizer::Cancelled => Self::Cancelled,
            error => Self::NoSummarizer(error),
        }
    }
}

impl AgentSession {
    /// Stops the run and compacts the conversation. `focus` is added to the instructions of the
    /// summary.
    pub(crate) async fn compact(&self, focus: Option<&str>) -> Result<Compacted, CommandError> {
        let cancel = self.handler_cancel.token();
        let summarizing = tokio::select! {
            summarizing = self.acquire_summary() => summarizing?,
            () = cancel.cancelled() => return Err(CompactError::Cancelled.into()),
        };
        let reason = CompactionReason::Manual;
        self.emit_to_mode(Event::CompactionStart { reason }).await;
        let cause = CompactionCause {
            reason,
            will_retry: false,
        };
        let compacted = self.run_compaction(focus, cause, &summarizing.work).await;
        // A client may prompt as soon as it gets `compaction_end`.
        drop(summarizing);
        let aborted = matches!(compacted, Err(CompactError::Cancelled));
        let failure = compacted.as_ref().err().filter(|_| !aborted);
        self.emit_to_mode(Event::CompactionEnd {
            reason,
            result: compacted.as_ref().ok().cloned(),
            aborted,
            will_retry: false,
            error_message: failure.map(|error| format!("Compaction failed: {error}")),
        })
        .await;
        Ok(compacted?)
    }

    /// Enables or disables automatic compaction, for this session and in the settings.
    pub(crate) fn set_auto_compaction(&self, enabled: bool) {
        self.state.lock().compaction.is_automatic = enabled;
        self.report_save_error(self.settings.set_compaction_enabled(enabled));
    }

    pub(crate) fn compaction_settings(&self, model: Option<&Model>) -> CompactionSettings {
        self.settings.values().compaction.for_model(model)
    }

    /// Ends the run and claims the right to write a summary. Fails if a compaction that was in
    /// progress has succeeded meanwhile, because nothing is left to compact.
    async fn acquire_summary(&self) -> Result<SummaryGuard<'_>, CompactError> {
        let compactions = || self.state.lock().compactions();
        let before = compactions();
        loop {
            drop(self.switcher.lock.lock().await);
            let request = self.summary_lock.request();
            let run = self.run_id();
            self.abort_run();
            let over = self.activity.wait_run_end(run).await;
            if let Some(summarizing) = request.take_handoff() {
                return Ok(summarizing);
            }
            if over {
                self.summary_lock.wait_free().await;
            }
            let now = compactions();
            if now.0 == before.0 && now.1 > before.1 {
                return Err(NothingToCompact::Already.into());
            }
            if let Some(summarizing) = self.summary_lock.begin() {
                return Ok(summarizing);
            }
        }
    }

    /// Compacts if the last answer required it. Returns `true` if the run continues.
    pub(crate) async fn compact_after_run(&self, run: &Work) -> bool {
        let due = self.state.lock().work.take_due_compaction();
        let Some((trigger, work)) = due else {
            return false;
        };
        let switch_cancel = self.switcher.cancel.token();
        let summarizing = self.summary_lock.resume(work);
        let outcome = self.auto_compact(trigger, summarizing, Some(run)).await;
        let goes_on = match outcome {
            CompactionOutcome::Retry => return true,
            CompactionOutcome::Aborted => false,
            CompactionOutcome::Compacted => true,
            CompactionOutcome::Failed => self.state.lock().ended_without_error(),
        };
        // No run has taken the messages that were queued meanwhile.
        if goes_on {
            self.set_run_pending(&switch_cancel);
            self.start_pending_run().await;
        }
        false
    }

    /// Compacts before a prompt if the last answer requires it: that answer may be of an aborted
    /// run, or loaded from the file.
    pub(crate) async fn compact_before_prompt(&self) {
        let settings = self.compaction_settings(self.model().as_deref());
        let trigger = self.state.lock().compaction_due(settings, true);
        let (Some(trigger), Some(summarizing)) = (trigger, self.summary_lock.begin()) else {
            return;
        };
        self.auto_compact(trigger, summarizing, None).await;
    }

    /// Compacts without a request of the user. `run` continues if the request is repeated.
    async fn auto_compact(
        &self,
        trigger: CompactionTrigger,
        summarizing: SummaryGuard<'_>,
        run: Option<&Work>,
    ) -> CompactionOutcome {
        let overflow = trigger != CompactionTrigger::Threshold;
        let reason = match overflow {
            true => CompactionReason::Overflow,
            false => CompactionReason::Threshold,
        };
        if trigger == CompactionTrigger::GiveUp {
            drop(summarizing);
            self.emit_to_mode(Event::CompactionEnd {
                reason,
                result: None,
                aborted: false,
                will_retry: false,
                error_message: Some(OVERFLOW_NOT_RECOVERED.into()),
            })
            .await;
            return CompactionOutcome::Failed;
        }
        self.state.lock().compaction.compacted_for_overflow |= overflow;
        self.emit_to_mode(Event::CompactionStart { reason }).await;
        let cause = CompactionCause {
            reason,
            will_retry: run.is_some() && trigger == CompactionTrigger::Overflow { retry: true },
        };
        let compacted = self.run_compaction(None, cause, &summarizing.work).await;
        let retried = run.filter(|_| {
            compacted.is_ok() && trigger == CompactionTrigger::Overflow { retry: true }
        });
        if overflow && matches!(compacted, Err(CompactError::Cancelled)) {
            // The compaction was not tried, so a later prompt may trigger it.
            self.state.lock().compaction.compacted_for_overflow = false;
        }
        if overflow && compacted.is_ok() {
            // The failed answer stays in the file; the model does not see it.
            self.state.lock().remove_failed_answer();
        }
        match retried {
            Some(run) => summarizing.transfer_to_run(run.clone()),
            None => drop(summarizing),
        }
        let (aborted, error_message) = match &compacted {
            Err(CompactError::Cancelled) => (true, None),
            Err(
                error @ (CompactError::Failed(_)
                | CompactError::NoSummarizer(NoSummarizer::Api { .. })),
            ) => {
                let what = match overflow {
                    true => "Context overflow recovery failed",
                    false => "Auto-compaction failed",
                };
                (false, Some(format!("{what}: {error}")))
            }
            // Without messages to compact, or without a model to ask, the next prompt reports the
            // error.
            Err(CompactError::Nothing(_) | CompactError::NoSummarizer(_)) | Ok(_) => (false, None),
        };
        let outcome = match (&compacted, retried) {
            (_, Some(_)) => CompactionOutcome::Retry,
            (Ok(_), None) => CompactionOutcome::Compacted,
            (Err(_), None) if aborted => CompactionOutcome::Aborted,
            (Err(_), None) => CompactionOutcome::Failed,
        };
        self.emit_to_mode(Event::CompactionEnd {
            reason,
            result: compacted.ok(),
            aborted,
            will_retry: retried.is_some(),
            error_message,
        })
        .await;
        outcome
    }

    /// Replaces all but the end of the conversation by a summary.
    async fn run_compaction(
        &self,
        focus: Option<&str>,
        cause: CompactionCause,
        work: &Work,
    ) -> Result<Compacted, CompactError> {
        let mut from_extension = false;
        let compacted = self
            .try_compaction(focus, cause, work, &mut from_extension)
            .await;
        if let Err(error) = &compacted {
            let aborted = matches!(error, CompactError::Cancelled);
            let name = "session_compact_failed";
            let event = || {
                let mut event = json!({
                    "reason": cause.reason,
                    "aborted": aborted,
                    "willRetry": cause.will_retry,
                    "fromExtension": from_extension,
                });
                if !aborted {
                    event["errorMessage"] = error.to_string().into();
                }
                event
            };
            self.extensions.deliver_soon(name, event);
        }
        compacted
    }

    async fn try_compaction(
        &self,
        focus: Option<&str>,
        cause: CompactionCause,
        work: &Work,
        from_extension: &mut bool,
    ) -> Result<Compacted, CompactError> {
        let held = self.acquire_session_lock(&work.cancel).await;
        held.map_err(|error| match error {
            PromptError::Aborted => CompactError::Cancelled,
            error => CompactError::Failed(error.to_string()),
        })?;
        let summarizer = self.summarizer(&work.cancel).await?;
        let (leaf, preparation) = {
            let state = self.state.lock();
            let mut settings = self.compaction_settings(state.model.as_deref());
            settings.enabled = state.compaction.is_automatic;
            let path = state.session.branch(None);
            let context = state.session.build_context().messages;
            let preparation = prepare(&path, &context, settings)?;
            let leaf = path.into_iter().next_back();
            (leaf.ok_or(NothingToCompact::TooSmall)?, preparation)
        };
        let provided = self
            .emit_before_compact(&preparation, &leaf, focus, cause, work)
            .await?;
        *from_extension = provided.is_some();
        let mut compacted = match provided {
            Some(provided) => provided,
            None => {
                let reason = cause.reason;
                let summarize_once = || summarize(&preparation, focus, &summarizer, &work.cancel);
                let source = SummarySource::Compaction { reason };
                self.summarize_with_retries(source, work, summarize_once)
                    .await?
            }
        };
        if work.is_aborted() {
            return Err(CompactError::Cancelled);
        }
        let entry = {
            let mut state = self.state.lock();
            let appended = state.writable().and_then(|session| {
                session.append_compaction(
                    &compacted.summary,
                    &compacted.first_kept_entry_id,
                    compacted.tokens_before,
                    compacted.details.as_ref(),
                    Some(*from_extension),
                )
            });
            let entry = appended.map_err(|error| CompactError::Failed(error.to_string()))?;
            state.context = state.session.build_context().messages;
            // The provider's last count is of the context before, so all tokens are estimated.
            let tokens = state.context.iter().map(|message| estimate(message));
            compacted.estimated_tokens_after = Some(tokens.fold(0, u64::saturating_add));
            entry
        };
        if self.extensions.has_handlers("session_compact") {
            let event = || {
                json!({
                    "compactionEntry": json_of(&entry),
                    "fromExtension": from_extension,
                    "reason": cause.reason,
                    "willRetry": cause.will_retry,
                })
            };
            self.extensions
                .deliver("session_compact", event, &work.cancel)
                .await;
        }
        Ok(compacted)
    }

    /// Emits `session_before_compact`. Returns the summary that handlers provided.
    async fn emit_before_compact(
        &self,
        preparation: &Preparation,
        leaf: &Entry,
        focus: Option<&str>,
        cause: CompactionCause,
        work: &Work,
    ) -> Result<Option<Compacted>, CompactError> {
        const NAME: &str = "session_before_compact";
        if !self.extensions.has_handlers(NAME) {
            return Ok(None);
        }
        let mut event = json_object(json!({
            "preparation": preparation,
            // The JavaScript side replaces this id by the entries of the branch, and `signal` by an
            // `AbortSignal`.
            "branchEntries": leaf.id,
            "signal": work.id,
            "reason": cause.reason,
            "willRetry": cause.will_retry,
        }));
        if let Some(focus) = focus {
            event.insert("customInstructions".into(), focus.into());
        }
        let emission = self.extensions.deliver(NAME, || event, &work.cancel).await;
        // An abort also discards a summary that was returned in time.
        if work.is_aborted() || emission.is_set("cancel") {
            return Err(CompactError::Cancelled);
        }
        let provided = emission
            .result
            .and_then(|mut answer| answer.remove("compaction"));
        let Some(provided) = provided.filter(|provided| !provided.is_null()) else {
            return Ok(None);
        };
        // A summary in a wrong format is ignored.
        let provided = serde_json::from_value::<CompactionResult>(provided).ok();
        Ok(provided.map(|provided| Compacted {
            summary: provided.summary,
            first_kept_entry_id: provided
                .first_kept_entry_id
                .unwrap_or_else(|| preparation.first_kept_entry_id.clone()),
            tokens_before: provided
                .tokens_before
                .map_or(preparation.tokens_before, |tokens| tokens as u64),
            estimated_tokens_after: None,
            details: provided.details,
        }))
    }
}

/// The result of an automatic compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompactionOutcome {
    Compacted,
    Failed,
    Aborted,
    Retry,
}

impl State {
    /// Returns whether the last answer requires a compaction. With `after_abort` an aborted answer
    /// counts, too.
    pub fn compaction_due(
        &self,
        settings: CompactionSettings,
        after_abort: bool,
    ) -> Option<CompactionTrigger> {
        let model = self
            .model
            .as_ref()
            .filter(|_| self.compaction.is_automatic)?;
        let answer = self
            .context
            .iter()
            .rev()
            .find_map(|message| message.as_assistant())?;
        if answer.stop_reason == StopReason::Aborted && !after_abort {
            return None;
        }
        // An answer from before the last compaction has led to that compaction.
        if !self.is_since_compaction(answer) {
            return None;
        }
        let same_model = answer.provider == model.provider && answer.model == model.id;
        if same_model && classify::is_context_overflow(answer, model.context_window) {
            let retry = answer.stop_reason == StopReason::Error;
            return Some(match self.compaction.compacted_for_overflow {
                true => CompactionTrigger::GiveUp,
                false => CompactionTrigger::Overflow { retry },
            });
        }
        let tokens = match answer.stop_reason {
            // A failed answer has no usage of its own.
            StopReason::Error => {
                let estimate = estimate_context(&self.context);
                let counted = self.context[estimate.counted?].as_assistant()?;
                if !self.is_since_compaction(counted) {
                    return None;
                }
                estimate.tokens
            }
            _ => usage_tokens(&answer.usage),
        };
        exceeds_window(tokens, model.context_window, settings)
            .then_some(CompactionTrigger::Threshold)
    }

    /// Returns whether the last usage that a model reported is of the current context.
    pub fn counted_since_compaction(&self) -> bool {
        let Some(since) = self.since_compaction() else {
            return true;
        };
        let answers = since.iter().rev().filter_map(|entry| entry.message().ok()?);
        let mut counted = answers.filter_map(|message| {
            let answer = message.as_assistant()?;
            let is_counted = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
            is_counted.then(|| usage_tokens(&answer.usage) > 0)
        });
        counted.next().unwrap_or(false)
    }

    fn is_since_compaction(&self, answer: &AssistantMessage) -> bool {
        let Some(since) = self.since_compaction() else {
            return true;
        };
        since.iter().rev().any(|entry| {
            let message = entry.message().ok().flatten();
            message.is_some_and(|message| message.as_assistant() == Some(answer))
        })
    }

    /// Returns the entries after the last compaction on the branch; `None` without a compaction.
    fn since_compaction(&self) -> Option<Vec<Arc<Entry>>> {
        // After a compaction the context begins with its summary.
        if !matches!(**self.context.first()?, AgentMessage::CompactionSummary(_)) {
            return None;
        }
        let mut path = self.session.branch(None);
        let last = path
            .iter()
            .rposition(|entry| matches!(entry.kind, EntryKind::Compaction { .. }))?;
        Some(path.split_off(last + 1))
    }

    /// Removes the failed answer at the end of the context, so that the request is repeated.
    fn remove_failed_answer(&mut self) {
        let last = self
            .context
            .last()
            .and_then(|message| message.as_assistant());
        if last.is_some_and(|answer| answer.stop_reason == StopReason::Error) {
            self.context.pop();
        }
    }
}

/// Returns the entry in the format of the extension API.
pub(crate) fn json_of(entry: &Entry) -> Value {
    surrogates::from_session_line(&entry.wire_json()).unwrap_or_default()
}
