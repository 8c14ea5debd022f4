//! Compaction in this session: when it is due, who is asked, what is stored, and
//! how the agent goes on afterwards.

use std::sync::Arc;

use serde_json::{Value, json};

use super::AgentSession;
use super::prompt::PromptError;
use super::refusal::{ErrorCode, Refusal};
use super::run::object;
use super::state::{Run, State};
use super::summary::{NoSummarizer, Summarising};
use crate::agent::AgentMessage;
use crate::agent::event::{CompactionReason, Event, SummarySource};
use crate::ai::classify;
use crate::ai::half_characters;
use crate::ai::message::{AssistantMessage, StopReason};
use crate::ai::model::Model;
use crate::compaction::{
    Compacted, NothingToCompact, Preparation, SummaryError, estimate, estimate_context,
    exceeds_window, prepare, summarize, usage_tokens,
};
use crate::extensions::diagnostics::results::CompactionResult;
use crate::resources::settings::CompactionSettings;
use crate::session::{Entry, EntryKind};

const CANCELLED: &str = "Compaction cancelled";
const GAVE_UP: &str = "Context overflow recovery failed after one compact-and-retry attempt. Try \
                       reducing context or switching to a larger-context model.";

/// What an answer calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Threshold,
    /// `retry`: there is no answer, so the model is asked again.
    Overflow {
        retry: bool,
    },
    /// It did not fit after a compaction either.
    GiveUp,
}

/// What extensions are told of it.
#[derive(Clone, Copy)]
struct Why {
    reason: CompactionReason,
    /// The request that did not fit is made again.
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

impl From<CompactError> for Refusal {
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
    /// Stops the run and compacts the conversation, with `focus` in mind.
    pub async fn compact(&self, focus: Option<&str>) -> Result<Compacted, Refusal> {
        let cancel = self.waiting.lock().clone();
        let summarising = tokio::select! {
            summarising = self.stop_for_summary() => summarising?,
            () = cancel.cancelled() => return Err(CompactError::Cancelled.into()),
        };
        let reason = CompactionReason::Manual;
        self.tell(Event::CompactionStart { reason }).await;
        let why = Why {
            reason,
            will_retry: false,
        };
        let compacted = self.shorten(focus, why, &summarising.work).await;
        // A client that hears of the end may go on at once.
        drop(summarising);
        let aborted = matches!(compacted, Err(CompactError::Cancelled));
        let failure = compacted.as_ref().err().filter(|_| !aborted);
        self.tell(Event::CompactionEnd {
            reason,
            result: compacted.as_ref().ok().cloned(),
            aborted,
            will_retry: false,
            error_message: failure.map(|error| format!("Compaction failed: {error}")),
        })
        .await;
        Ok(compacted?)
    }

    /// For this session, and kept in the settings.
    pub fn set_auto_compaction(&self, enabled: bool) {
        self.state.lock().auto_compaction = enabled;
        self.saved(self.settings.set_compaction_enabled(enabled));
    }

    pub(super) fn compaction_settings(&self, model: Option<&Model>) -> CompactionSettings {
        self.settings.values().compaction.of(model)
    }

    /// Ends the run, and waits for a compaction that is under way: then there is nothing
    /// left to do.
    async fn stop_for_summary(&self) -> Result<Summarising<'_>, CompactError> {
        let compactions = || self.state.lock().compactions();
        let before = compactions();
        loop {
            drop(self.replacing.lock().await);
            let wanted = self.want_summary();
            let run = self.run_id();
            self.abort_run();
            let over = self.wait_run_over(run).await;
            if let Some(summarising) = wanted.handed() {
                return Ok(summarising);
            }
            if over {
                self.wait_summary().await;
            }
            let now = compactions();
            if now.0 == before.0 && now.1 > before.1 {
                return Err(NothingToCompact::Already.into());
            }
            if let Some(summarising) = self.begin_summary() {
                return Ok(summarising);
            }
        }
    }

    /// What the last answer called for when the run ended. `true` if the run is to
    /// go on: it is the session's again.
    pub(super) async fn compact_after_run(&self, run: &Run) -> bool {
        let (due, work) = {
            let mut state = self.state.lock();
            let (Some(due), Some(work)) = (state.due.take(), state.summary.clone()) else {
                return false;
            };
            (due, work)
        };
        let here = self.here.lock().clone();
        let summarising = self.go_on_with_summary(work);
        let settled = self.compact_by_itself(due, summarising, Some(run)).await;
        let goes_on = match settled {
            Settled::Retry => return true,
            Settled::Aborted => false,
            Settled::Compacted => true,
            Settled::Failed => self.state.lock().ended_well(),
        };
        // What was queued meanwhile has nobody seen.
        if goes_on {
            self.owe_run(&here);
            self.start_owed().await;
        }
        false
    }

    /// The same before a prompt: the last answer may be from a run that was aborted,
    /// or from another day.
    pub(super) async fn compact_before_prompt(&self) {
        let settings = self.compaction_settings(self.model().as_deref());
        let due = self.state.lock().compaction_due(settings, true);
        let (Some(due), Some(summarising)) = (due, self.begin_summary()) else {
            return;
        };
        self.compact_by_itself(due, summarising, None).await;
    }

    /// `run` is to go on where there is something to be tried again.
    async fn compact_by_itself(
        &self,
        due: Due,
        summarising: Summarising<'_>,
        run: Option<&Run>,
    ) -> Settled {
        let overflow = due != Due::Threshold;
        let reason = match overflow {
            true => CompactionReason::Overflow,
            false => CompactionReason::Threshold,
        };
        if due == Due::GiveUp {
            drop(summarising);
            self.tell(Event::CompactionEnd {
                reason,
                result: None,
                aborted: false,
                will_retry: false,
                error_message: Some(GAVE_UP.into()),
            })
            .await;
            return Settled::Failed;
        }
        self.state.lock().overflow_recovered |= overflow;
        self.tell(Event::CompactionStart { reason }).await;
        let why = Why {
            reason,
            will_retry: run.is_some() && due == Due::Overflow { retry: true },
        };
        let compacted = self.shorten(None, why, &summarising.work).await;
        let retried = run.filter(|_| compacted.is_ok() && due == Due::Overflow { retry: true });
        if overflow && matches!(compacted, Err(CompactError::Cancelled)) {
            // Nothing was tried: the next prompt may.
            self.state.lock().overflow_recovered = false;
        }
        if overflow && compacted.is_ok() {
            // It stays in the file; the model is not shown it.
            self.state.lock().forget_failure();
        }
        match retried {
            Some(run) => summarising.give_way_to(run.clone()),
            None => drop(summarising),
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
            // Nothing to do, or nobody to ask: whoever prompts is told.
            Err(CompactError::Nothing(_) | CompactError::NoSummarizer(_)) | Ok(_) => (false, None),
        };
        let settled = match (&compacted, retried) {
            (_, Some(_)) => Settled::Retry,
            (Ok(_), None) => Settled::Compacted,
            (Err(_), None) if aborted => Settled::Aborted,
            (Err(_), None) => Settled::Failed,
        };
        self.tell(Event::CompactionEnd {
            reason,
            result: compacted.ok(),
            aborted,
            will_retry: retried.is_some(),
            error_message,
        })
        .await;
        settled
    }

    /// Puts a summary in the place of all but the end of the conversation.
    async fn shorten(
        &self,
        focus: Option<&str>,
        why: Why,
        work: &Run,
    ) -> Result<Compacted, CompactError> {
        let mut from_extension = false;
        let shortened = self
            .try_to_shorten(focus, why, work, &mut from_extension)
            .await;
        if let Err(error) = &shortened {
            let aborted = matches!(error, CompactError::Cancelled);
            let name = "session_compact_failed";
            let event = || {
                let mut event = json!({
                    "type": name,
                    "reason": why.reason,
                    "aborted": aborted,
                    "willRetry": why.will_retry,
                    "fromExtension": from_extension,
                });
                if !aborted {
                    event["errorMessage"] = error.to_string().into();
                }
                event
            };
            self.extensions.notify_soon(name, event);
        }
        shortened
    }

    async fn try_to_shorten(
        &self,
        focus: Option<&str>,
        why: Why,
        work: &Run,
        from_extension: &mut bool,
    ) -> Result<Compacted, CompactError> {
        let held = self.hold_session(&work.cancel).await;
        held.map_err(|error| match error {
            PromptError::Aborted => CompactError::Cancelled,
            error => CompactError::Failed(error.to_string()),
        })?;
        let summarizer = self.summarizer(&work.cancel).await?;
        let (leaf, preparation) = {
            let state = self.state.lock();
            let mut settings = self.compaction_settings(state.model.as_deref());
            settings.enabled = state.auto_compaction;
            let path = state.session.branch(None);
            let context = state.session.build_context().messages;
            let preparation = prepare(&path, &context, settings)?;
            let leaf = path.into_iter().next_back();
            (leaf.ok_or(NothingToCompact::TooSmall)?, preparation)
        };
        let given = self
            .ask_for_summary(&preparation, &leaf, focus, why, work)
            .await?;
        *from_extension = given.is_some();
        let mut compacted = match given {
            Some(given) => given,
            None => {
                let reason = why.reason;
                let ask = || summarize(&preparation, focus, &summarizer, &work.cancel);
                let source = SummarySource::Compaction { reason };
                self.ask_with_retries(source, work, ask).await?
            }
        };
        if work.cancel.is_cancelled() {
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
            // The provider's last count is of what was before, so all of it is a guess.
            let tokens = state.context.iter().map(|message| estimate(message));
            compacted.estimated_tokens_after = Some(tokens.fold(0, u64::saturating_add));
            entry
        };
        if self.extensions.has_handlers("session_compact") {
            let event = object(json!({
                "compactionEntry": json_of(&entry),
                "fromExtension": from_extension,
                "reason": why.reason,
                "willRetry": why.will_retry,
            }));
            self.extensions
                .emit("session_compact", event, &work.cancel)
                .await;
        }
        Ok(compacted)
    }

    /// The `session_before_compact` event.
    async fn ask_for_summary(
        &self,
        preparation: &Preparation,
        leaf: &Entry,
        focus: Option<&str>,
        why: Why,
        work: &Run,
    ) -> Result<Option<Compacted>, CompactError> {
        const NAME: &str = "session_before_compact";
        if !self.extensions.has_handlers(NAME) {
            return Ok(None);
        }
        let mut event = object(json!({
            "preparation": preparation,
            // JavaScript makes the entries of it, and an `AbortSignal`.
            "branchEntries": leaf.id,
            "signal": work.id,
            "reason": why.reason,
            "willRetry": why.will_retry,
        }));
        if let Some(focus) = focus {
            event.insert("customInstructions".into(), focus.into());
        }
        let emission = self.extensions.emit(NAME, event, &work.cancel).await;
        // Also if it has answered in time: nobody wants the summary any more.
        if work.cancel.is_cancelled() || emission.is_set("cancel") {
            return Err(CompactError::Cancelled);
        }
        let given = emission
            .result
            .and_then(|mut result| result.remove("compaction"));
        let Some(given) = given.filter(|given| !given.is_null()) else {
            return Ok(None);
        };
        // What cannot be used was not taken.
        let given = serde_json::from_value::<CompactionResult>(given).ok();
        Ok(given.map(|given| Compacted {
            summary: given.summary,
            first_kept_entry_id: given
                .first_kept_entry_id
                .unwrap_or_else(|| preparation.first_kept_entry_id.clone()),
            tokens_before: given
                .tokens_before
                .map_or(preparation.tokens_before, |tokens| tokens as u64),
            estimated_tokens_after: None,
            details: given.details,
        }))
    }
}

/// How a compaction that nobody asked for ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    Compacted,
    Failed,
    Aborted,
    Retry,
}

impl State {
    /// `after_abort`: also if the last answer was aborted.
    pub fn compaction_due(&self, settings: CompactionSettings, after_abort: bool) -> Option<Due> {
        let model = self.model.as_ref().filter(|_| self.auto_compaction)?;
        let answer = self
            .context
            .iter()
            .rev()
            .find_map(|said| said.as_assistant())?;
        if answer.stop_reason == StopReason::Aborted && !after_abort {
            return None;
        }
        // What was said before a compaction has led to it, and is counted no more.
        if !self.is_since_compaction(answer) {
            return None;
        }
        let same_model = answer.provider == model.provider && answer.model == model.id;
        if same_model && classify::is_context_overflow(answer, model.context_window) {
            let retry = answer.stop_reason == StopReason::Error;
            return Some(match self.overflow_recovered {
                true => Due::GiveUp,
                false => Due::Overflow { retry },
            });
        }
        let tokens = match answer.stop_reason {
            // It has no count of its own.
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
        exceeds_window(tokens, model.context_window, settings).then_some(Due::Threshold)
    }

    /// Whether a count of the model is about what it is told now.
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

    /// The entries after the last compaction on the path; `None` if there is none.
    fn since_compaction(&self) -> Option<Vec<Arc<Entry>>> {
        // The model is told of it first.
        if !matches!(**self.context.first()?, AgentMessage::CompactionSummary(_)) {
            return None;
        }
        let mut path = self.session.branch(None);
        let last = path
            .iter()
            .rposition(|entry| matches!(entry.kind, EntryKind::Compaction { .. }))?;
        Some(path.split_off(last + 1))
    }

    /// The failed answer at the end is to be asked for again.
    fn forget_failure(&mut self) {
        let last = self
            .context
            .last()
            .and_then(|message| message.as_assistant());
        if last.is_some_and(|answer| answer.stop_reason == StopReason::Error) {
            self.context.pop();
        }
    }
}

/// The entry as extensions get it.
pub(super) fn json_of(entry: &Entry) -> Value {
    half_characters::from_line(&entry.wire_json()).unwrap_or_default()
}
