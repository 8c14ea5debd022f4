//! Delivers an event to its handlers, in the way that its row in the table says.

use std::sync::Arc;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;

use super::Extensions;
use crate::child::ChildHooks;
use crate::events::dispatch::Emission;
use crate::events::event_body::EventBody;
use crate::events::mutations::MutationSlot;
use crate::events::table::{self, EventKind, Merge};

impl Extensions {
    /// Adds the functions of a child session's parent. They are called after the handlers of
    /// loaded extensions.
    pub fn set_child_hooks(&self, hooks: Arc<ChildHooks>) {
        // A session has one parent.
        let _ = self.child_hooks.set(hooks);
    }

    pub(crate) fn child_hooks(&self) -> Option<&ChildHooks> {
        self.child_hooks.get().map(Arc::as_ref)
    }

    /// Returns whether the event has handlers; without any, the event need not be built. The
    /// extensions that are being loaded may have some.
    pub fn has_handlers(&self, event: &str) -> bool {
        let of_parent = self.child_hooks();
        self.is_replacing()
            || self.current().has_handlers(event)
            || of_parent.is_some_and(|hooks| hooks.has_handlers(event))
    }

    /// Delivers an event to its handlers. The row of the event says whether this waits for
    /// them, and what the result has: the merged results, a change, or a proposal.
    ///
    /// A queued event is built only if it has handlers, and is dropped if `cancel` fires
    /// while the queue is full. For other events `cancel` ends the wait for handlers.
    pub async fn deliver<B: Into<EventBody>>(
        &self,
        name: &'static str,
        body: impl FnOnce() -> B,
        cancel: &CancellationToken,
    ) -> Emission {
        // Some events of the agent are not for extensions.
        let Some((_, kind)) = table::find(name) else {
            return Emission::default();
        };
        let of_parent = self.child_hooks();
        let Some(hooks) = of_parent.filter(|hooks| hooks.has_handlers(name)) else {
            return self.deliver_to_isolate(kind, body, cancel).await;
        };
        let event = body().into().into_members();
        let loaded = self.deliver_to_isolate(kind, || event.clone(), cancel);
        let mut emission = loaded.await;
        if kind.merge.is_queued() {
            emission.event = event;
        }
        hooks.handle(name, emission, self.actions(), cancel).await
    }

    async fn deliver_to_isolate<B: Into<EventBody>>(
        &self,
        kind: &'static EventKind,
        body: impl FnOnce() -> B,
        cancel: &CancellationToken,
    ) -> Emission {
        match kind.merge.is_queued() {
            true => self.enqueue(kind, body, cancel).await,
            false => self.call_handlers(kind.name, body, cancel).await,
        }
    }

    /// Delivers an event for a caller that cannot wait, not even for room in the queue.
    pub fn deliver_soon<B: Into<EventBody>>(
        self: &Arc<Self>,
        name: &'static str,
        body: impl FnOnce() -> B,
    ) {
        if !self.has_handlers(name) {
            return;
        }
        let (this, body) = (self.clone(), body().into());
        let mut delivery = Box::pin(async move {
            let never = CancellationToken::new();
            this.deliver(name, || body, &never).await;
        });
        // Usually the event is in the queue now, so it precedes whatever the caller does next.
        // The budget of the caller's task must not prevent that.
        let first_try = tokio::task::coop::unconstrained(&mut delivery);
        if first_try.now_or_never().is_none() {
            self.handle.spawn(delivery);
        }
    }

    /// Calls the handlers of an event now, even if it is a queued one: a handler that causes
    /// an event and waits for its end blocks the queue.
    pub async fn call_handlers<B: Into<EventBody>>(
        &self,
        name: &'static str,
        body: impl FnOnce() -> B,
        cancel: &CancellationToken,
    ) -> Emission {
        let generation = self.wait_ready(cancel).await;
        let event = body().into().into_members();
        // The wait was aborted. The extensions that are being loaded may have handlers, so what the
        // event is about must not go on.
        if self.is_replacing() {
            return Emission {
                event,
                aborted: true,
                ..Emission::default()
            };
        }
        if name != "session_start" && !generation.has_handlers(name) {
            return Emission {
                event,
                ..Emission::default()
            };
        }
        let run = self.actions().and_then(|actions| actions.current_run());
        let mut emission = generation.dispatch(name, event, run, cancel).await;
        for error in emission.errors.drain(..) {
            self.show_error(error).await;
        }
        emission
    }

    async fn enqueue<B: Into<EventBody>>(
        &self,
        kind: &EventKind,
        body: impl FnOnce() -> B,
        cancel: &CancellationToken,
    ) -> Emission {
        let generation = self.current();
        let targets = generation.handlers(kind.name);
        if targets.is_empty() && generation.event_queue.is_empty() {
            return Emission::default();
        }
        let run = self.actions().and_then(|actions| actions.current_run());
        let mut change = None;
        if !targets.is_empty() {
            let body = body().into();
            change = body.takes_changes(kind).then(|| MutationSlot {
                number: generation.host.next_token(),
                member: kind.mutable.first().copied(),
            });
            let Some(event) = body.into_queued(kind.name) else {
                return Emission::default();
            };
            let queue = &generation.event_queue;
            queue.push(event, targets, change, run, cancel).await;
        }
        if !matches!(kind.merge, Merge::Queue) {
            generation.wait_handlers(run, cancel).await;
            generation.host.wait_shown().await;
        }
        let number = change.map(|change| change.number);
        Emission {
            mutation: number.and_then(|number| generation.host.mutations.take(number)),
            proposal: number.and_then(|number| generation.host.proposals.take(number)),
            ..Emission::default()
        }
    }

    /// Returns when all queued events have been handled.
    pub async fn wait_drained(&self) {
        self.current().event_queue.drain().await;
    }
}
