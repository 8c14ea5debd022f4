//! The end of a run: handlers of `agent_end` see it busy when they begin and at rest
//! soon after, and everybody else hears of it when they are done.

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::AgentSession;
use super::run::NewRun;
use super::state::{Run, State};
use crate::agent::AgentMessage;
use crate::agent::event::Event;
use crate::agent::queue::Delivery;

/// A run that has nothing more to do, until the mode was told.
pub(super) struct Ending {
    pub run: Run,
    /// Set when it is at rest: whether messages are left that nobody has seen, and
    /// nothing that will see them.
    left: Option<bool>,
}

impl AgentSession {
    /// Handlers of `agent_end` are about to be told.
    pub(super) fn begin_ending(&self) {
        let mut state = self.state.lock();
        let Some(run) = state.run.clone() else {
            return;
        };
        state.ending = Some(Ending { run, left: None });
        self.ending.send_replace(true);
    }

    /// A run that is ending is at rest: what its handlers say from now on is said at
    /// once, and prompts begin a run.
    pub(super) fn rest_now(&self, run: u64) {
        let mut state = self.state.lock();
        let is_busy = |ending: &Ending| ending.run.id == run && ending.left.is_none();
        if !state.ending.as_ref().is_some_and(is_busy) {
            return;
        }
        let left = self.rest(&mut state);
        if let Some(ending) = &mut state.ending {
            ending.left = Some(left);
        }
        self.ending.send_replace(false);
    }

    /// Handlers of `agent_end` are told, and the run is not at rest yet.
    pub(super) fn is_ending(&self) -> bool {
        let state = self.state.lock();
        let ending = state.ending.as_ref();
        ending.is_some_and(|ending| ending.left.is_none())
    }

    /// Keeps what a handler of `agent_end` says for the run that comes next, which begins
    /// for it if it `begins` one, and gives it back if no run is about to rest.
    pub(super) fn queue_if_ending(
        &self,
        delivery: Delivery,
        message: Arc<AgentMessage>,
        begins: bool,
    ) -> Result<(), Arc<AgentMessage>> {
        let mut state = self.state.lock();
        if state
            .ending
            .as_ref()
            .is_none_or(|ending| ending.left.is_some())
        {
            return Err(message);
        }
        match begins {
            true => state.queues.push(delivery, message),
            false => state.queues.push_silent(delivery, message),
        }
        Ok(())
    }

    /// The handlers are done, or are waited for no more. `true` if messages are left.
    pub(super) fn rest_after_handlers(&self) -> bool {
        let run = self
            .state
            .lock()
            .ending
            .as_ref()
            .map(|ending| ending.run.id);
        if let Some(run) = run {
            self.rest_now(run);
        }
        let state = self.state.lock();
        state
            .ending
            .as_ref()
            .and_then(|ending| ending.left)
            .unwrap_or_default()
    }

    /// Everybody knows, or nobody is left who would tell.
    pub(super) fn end_ending(&self, state: &mut State, run: u64) {
        if state
            .ending
            .as_ref()
            .is_some_and(|ending| ending.run.id == run)
        {
            state.ending = None;
            state.written.send_replace(());
            self.ending.send_replace(false);
        }
    }

    /// Returns when no run is between its last word and its rest.
    pub(super) async fn wait_rested(&self) {
        let mut ending = self.ending.subscribe();
        // An error means that the session is gone.
        let _ = ending.wait_for(|ending| !ending).await;
    }

    /// The run is over: a client that hears of it may go on at once, or wait for the
    /// compaction that is due. `true` if messages are left that nobody has seen,
    /// and nothing that will see them.
    pub(super) fn rest(&self, state: &mut State) -> bool {
        state.run = None;
        if let Some(news) = state.store_deferred() {
            let session = self.arc();
            self.handle
                .spawn(async move { session.tell_of_store(Some(news)).await });
        }
        let settings = self.compaction_settings(state.model.as_deref());
        state.due = state.compaction_due(settings, false);
        if state.due.is_some() {
            self.hold_summary(state);
            return false;
        }
        if state.wanted > 0 && !state.replacing {
            state.handed = Some(self.hold_summary(state));
            return false;
        }
        state.ended_well() && state.queues.need_run()
    }

    /// Begins a run with what is queued, unless something else is at work meanwhile,
    /// which will see it.
    pub(super) async fn start_queued(&self) {
        let prompts = {
            let queues = &mut self.state.lock().queues;
            match queues.has_steering() {
                // The run takes it before it asks the model, and follow-ups later.
                true => Vec::new(),
                false => queues.take(Delivery::FollowUp),
            }
        };
        let begun = self.start_run(NewRun::of(prompts.clone())).map(drop);
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

    /// What is queued is to be said, if anything is, and if nobody has said abort since
    /// `here` was taken.
    pub(super) fn owe_run(&self, here: &CancellationToken) {
        let mut state = self.state.lock();
        state.owed = state.queues.need_run() && !here.is_cancelled();
    }

    /// Begins the run that is owed to what is queued, unless a prompt may still begin
    /// one: it came before, and what is queued is said after it.
    pub(super) async fn start_owed(&self) {
        let now = {
            let mut state = self.state.lock();
            let now = state.preparing == 0 && std::mem::take(&mut state.owed);
            now && state.queues.need_run()
        };
        if now {
            self.start_queued().await;
        }
    }

    /// A prompt is on its way until this is dropped.
    pub(super) fn prepare_run(&self) -> impl Drop {
        struct Preparing<'a>(&'a AgentSession);
        impl Drop for Preparing<'_> {
            fn drop(&mut self) {
                let mut state = self.0.state.lock();
                state.preparing -= 1;
                state.written.send_replace(());
            }
        }
        self.state.lock().preparing += 1;
        Preparing(self)
    }

    /// Nothing is left to do: no retry, no compaction, nothing that waits.
    pub(super) async fn tell_of_rest(&self, run: &Run) {
        let rests = {
            let state = self.state.lock();
            let other = state.run.as_ref().is_some_and(|other| other.id != run.id);
            !other && (state.summary.is_none() || state.handed.is_some())
        };
        if rests {
            let aborted = run.cancel.is_cancelled();
            let event = || json!({ "type": "agent_settled", "aborted": aborted });
            self.extensions.notify_soon("agent_settled", event);
            self.tell(Event::AgentSettled { aborted }).await;
        }
    }
}
