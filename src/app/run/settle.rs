//! The end of a run. Handlers of `agent_end` see the session busy when they begin and idle soon
//! after; the mode gets `agent_end` when they are done.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::AgentSession;
use crate::activity::{AfterRun, Work};
use crate::run::NewRun;
use crate::state::State;
use pi_agent::AgentMessage;
use pi_agent::event::Event;
use pi_agent::queue::Delivery;

impl State {
    /// Forgets the run `run`, after the mode got its `agent_end` or its task panicked.
    pub(crate) fn finish_closing(&mut self, run: u64) {
        if self.work.finish_closing(run) {
            self.lock_used.send_replace(());
        }
    }
}

impl AgentSession {
    /// Marks an ending run idle: from now on messages of its handlers are appended at once, and
    /// prompts begin a run.
    pub(crate) fn mark_idle(&self, run: u64) {
        let mut state = self.state.lock();
        let ending = state.work.ending_run().filter(|ending| ending.id == run);
        let Some(run) = ending.filter(|_| state.work.is_ending()) else {
            return;
        };
        let has_leftovers = self.end_run(&mut state);
        state.work.close_run(run, has_leftovers);
    }

    /// Marks the run idle after the `agent_end` handlers are done or have timed out. Returns
    /// whether messages are queued that no other work will take.
    pub(crate) fn mark_idle_after_handlers(&self) -> bool {
        let run = self.state.lock().work.ending_run();
        if let Some(run) = run {
            self.mark_idle(run.id);
        }
        self.state.lock().work.has_leftovers()
    }

    /// Returns when no run is between `agent_end` and idle.
    pub(crate) async fn wait_not_ending(&self) {
        self.activity.wait(|activity| !activity.is_ending()).await;
    }

    /// Ends the run, and claims the summary if a compaction is due or requested. Clients that hear
    /// of the end may prompt at once, or wait for that compaction. Returns whether messages are
    /// queued that no other work will take.
    pub(crate) fn end_run(&self, state: &mut State) -> bool {
        if let Some(problem) = state.append_deferred_user_commands() {
            let session = self.arc();
            self.handle
                .spawn(async move { session.report_store_problem(Some(problem)).await });
        }
        let settings = self.compaction_settings(state.model.as_deref());
        let next = match state.compaction_due(settings, false) {
            Some(trigger) => AfterRun::Compact(trigger),
            None if state.compaction.is_requested() && !state.work.is_replacing => {
                AfterRun::PassToWaiter
            }
            None => AfterRun::Settle,
        };
        state.work.leave_run(next);
        next == AfterRun::Settle && state.ended_without_error() && state.prompts.queues.need_run()
    }

    /// Begins a run with the queued messages, unless other work has begun, which will take them.
    pub(crate) async fn start_queued(&self) {
        let prompts = {
            let queues = &mut self.state.lock().prompts.queues;
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
            let queues = &mut self.state.lock().prompts.queues;
            queues.put_back(Delivery::FollowUp, prompts);
        } else if prompts
            .iter()
            .any(|one| matches!(**one, AgentMessage::User(_)))
        {
            self.queue_changed().await;
        }
    }

    /// Requests a run for the queued messages, unless an abort has cancelled `switch_cancel`.
    pub(crate) fn set_run_pending(&self, switch_cancel: &CancellationToken) {
        let mut state = self.state.lock();
        state.prompts.is_run_pending =
            state.prompts.queues.need_run() && !switch_cancel.is_cancelled();
    }

    /// Begins the requested run for the queued messages, unless a prompt on its way may still begin
    /// one. Such a prompt came first, and queued messages follow it.
    pub(crate) async fn start_pending_run(&self) {
        let now = self.state.lock().prompts.take_pending_run();
        if now {
            self.start_queued().await;
        }
    }

    /// Marks that a prompt is on its way, until the result is dropped.
    pub(crate) fn mark_preparing(&self) -> impl Drop {
        struct Preparing<'a>(&'a AgentSession);
        impl Drop for Preparing<'_> {
            fn drop(&mut self) {
                let mut state = self.0.state.lock();
                state.prompts.preparing -= 1;
                state.lock_used.send_replace(());
            }
        }
        self.state.lock().prompts.preparing += 1;
        Preparing(self)
    }

    /// Emits `agent_settled` unless another run, a retry or a compaction follows.
    pub(crate) async fn emit_settled(&self, run: &Work) {
        let is_settled = self.state.lock().work.is_settled_after(run.id);
        if is_settled {
            let aborted = run.is_aborted();
            let event = || json!({ "aborted": aborted });
            self.extensions.deliver_soon("agent_settled", event);
            self.emit_to_mode(Event::AgentSettled { aborted }).await;
        }
    }
}
