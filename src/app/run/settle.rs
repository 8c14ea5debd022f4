//! The end of a run. Handlers of `agent_end` see the session busy when they begin and idle soon
//! after; the mode gets `agent_end` when they are done.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::agent::queue::Delivery;
use crate::app::AgentSession;
use crate::app::run::NewRun;
use crate::app::state::{State, Work};

/// A run whose `agent_end` is being emitted.
pub(in crate::app) struct RunEnding {
    pub run: Work,
    /// Set when the run is idle: whether messages are queued that no other work will take.
    has_leftovers: Option<bool>,
}

impl AgentSession {
    /// Marks the run as ending, before handlers of `agent_end` are called.
    pub(in crate::app) fn begin_ending(&self) {
        let mut state = self.state.lock();
        let Some(run) = state.run.clone() else {
            return;
        };
        state.ending = Some(RunEnding {
            run,
            has_leftovers: None,
        });
        self.ending.send_replace(true);
    }

    /// Marks an ending run idle: from now on messages of its handlers are appended at once, and
    /// prompts begin a run.
    pub(in crate::app) fn mark_idle(&self, run: u64) {
        let mut state = self.state.lock();
        let is_busy = |ending: &RunEnding| ending.run.id == run && ending.has_leftovers.is_none();
        if !state.ending.as_ref().is_some_and(is_busy) {
            return;
        }
        let has_leftovers = self.end_run(&mut state);
        if let Some(ending) = &mut state.ending {
            ending.has_leftovers = Some(has_leftovers);
        }
        self.ending.send_replace(false);
    }

    /// Returns whether handlers of `agent_end` are running and the run is not idle yet.
    pub(in crate::app) fn is_ending(&self) -> bool {
        let state = self.state.lock();
        let ending = state.ending.as_ref();
        ending.is_some_and(|ending| ending.has_leftovers.is_none())
    }

    /// Queues a message of an `agent_end` handler for the next run, which begins for it if `begins`
    /// is set. Gives the message back if no run is ending.
    pub(in crate::app) fn queue_if_ending(
        &self,
        delivery: Delivery,
        message: Arc<AgentMessage>,
        begins: bool,
    ) -> Result<(), Arc<AgentMessage>> {
        let mut state = self.state.lock();
        if state
            .ending
            .as_ref()
            .is_none_or(|ending| ending.has_leftovers.is_some())
        {
            return Err(message);
        }
        match begins {
            true => state.queues.push(delivery, message),
            false => state.queues.push_silent(delivery, message),
        }
        Ok(())
    }

    /// Marks the run idle after the `agent_end` handlers are done or have timed out. Returns
    /// whether messages are queued that no other work will take.
    pub(in crate::app) fn mark_idle_after_handlers(&self) -> bool {
        let run = self
            .state
            .lock()
            .ending
            .as_ref()
            .map(|ending| ending.run.id);
        if let Some(run) = run {
            self.mark_idle(run);
        }
        let state = self.state.lock();
        state
            .ending
            .as_ref()
            .and_then(|ending| ending.has_leftovers)
            .unwrap_or_default()
    }

    /// Ends the state of an ending run, after the mode got `agent_end` or the run panicked.
    pub(in crate::app) fn finish_ending(&self, state: &mut State, run: u64) {
        if state
            .ending
            .as_ref()
            .is_some_and(|ending| ending.run.id == run)
        {
            state.ending = None;
            state.lock_used.send_replace(());
            self.ending.send_replace(false);
        }
    }

    /// Returns when no run is between `agent_end` and idle.
    pub(in crate::app) async fn wait_not_ending(&self) {
        let mut ending = self.ending.subscribe();
        // An error means that the session is gone.
        let _ = ending.wait_for(|ending| !ending).await;
    }

    /// Ends the run, and claims the summary if a compaction is due or requested. Clients that hear
    /// of the end may prompt at once, or wait for that compaction. Returns whether messages are
    /// queued that no other work will take.
    pub(in crate::app) fn end_run(&self, state: &mut State) -> bool {
        state.run = None;
        if let Some(problem) = state.append_deferred_bash() {
            let session = self.arc();
            self.handle
                .spawn(async move { session.report_store_problem(Some(problem)).await });
        }
        let settings = self.compaction_settings(state.model.as_deref());
        state.due_compaction = state.compaction_due(settings, false);
        if state.due_compaction.is_some() {
            self.claim_summary(state);
            return false;
        }
        if state.summary_waiters > 0 && !state.replacing {
            state.summary_handoff = Some(self.claim_summary(state));
            return false;
        }
        state.ended_without_error() && state.queues.need_run()
    }

    /// Begins a run with the queued messages, unless other work has begun, which will take them.
    pub(in crate::app) async fn start_queued(&self) {
        let prompts = {
            let queues = &mut self.state.lock().queues;
            match queues.has_steering() {
                // The run takes steering messages before its first request, and follow-ups later.
                true => Vec::new(),
                false => queues.take(Delivery::FollowUp),
            }
        };
        let begun = self
            .start_run(NewRun::with_prompts(prompts.clone()))
            .map(drop);
        if begun.is_err() {
            let queues = &mut self.state.lock().queues;
            queues.put_back(Delivery::FollowUp, prompts);
        } else if prompts
            .iter()
            .any(|one| matches!(**one, AgentMessage::User(_)))
        {
            self.queue_changed().await;
        }
    }

    /// Requests a run for the queued messages, unless an abort has cancelled `switch_cancel`.
    pub(in crate::app) fn set_run_pending(&self, switch_cancel: &CancellationToken) {
        let mut state = self.state.lock();
        state.run_pending = state.queues.need_run() && !switch_cancel.is_cancelled();
    }

    /// Begins the requested run for the queued messages, unless a prompt on its way may still begin
    /// one. Such a prompt came first, and queued messages follow it.
    pub(in crate::app) async fn start_pending_run(&self) {
        let now = {
            let mut state = self.state.lock();
            let now = state.prompts_preparing == 0 && std::mem::take(&mut state.run_pending);
            now && state.queues.need_run()
        };
        if now {
            self.start_queued().await;
        }
    }

    /// Marks that a prompt is on its way, until the result is dropped.
    pub(in crate::app) fn mark_preparing(&self) -> impl Drop {
        struct Preparing<'a>(&'a AgentSession);
        impl Drop for Preparing<'_> {
            fn drop(&mut self) {
                let mut state = self.0.state.lock();
                state.prompts_preparing -= 1;
                state.lock_used.send_replace(());
            }
        }
        self.state.lock().prompts_preparing += 1;
        Preparing(self)
    }

    /// Emits `agent_settled` unless another run, a retry or a compaction follows.
    pub(in crate::app) async fn emit_settled(&self, run: &Work) {
        let rests = {
            let state = self.state.lock();
            let other = state.run.as_ref().is_some_and(|other| other.id != run.id);
            !other && (state.summary.is_none() || state.summary_handoff.is_some())
        };
        if rests {
            let aborted = run.cancel.is_cancelled();
            let event = || json!({ "type": "agent_settled", "aborted": aborted });
            self.extensions.notify_soon("agent_settled", event);
            self.emit_to_mode(Event::AgentSettled { aborted }).await;
        }
    }
}
