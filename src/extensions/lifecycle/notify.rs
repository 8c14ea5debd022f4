//! Pushes events whose results are ignored into the queue.

use serde_json::value::{RawValue, to_raw_value};
use tokio_util::sync::CancellationToken;

use super::Extensions;
use super::generation::Generation;
use crate::events::mutations::{Mutation, MutationSlot};
use crate::events::queue::QueuedEvent;
use crate::events::table::{self, Merge};
use crate::events::turn_end::Proposal;
use pi_agent::event::MessageUpdate;

impl Extensions {
    /// Queues an event, and waits for its handlers if it is a [`Merge::Settle`] one.
    /// `event` is built only if there are handlers, and includes its `type`. If `cancel`
    /// fires while the queue is full, the event is dropped.
    pub async fn notify<T: serde::Serialize>(
        &self,
        name: &str,
        event: impl FnOnce() -> T,
        cancel: &CancellationToken,
    ) {
        self.deliver(&self.current(), name, event, None, cancel)
            .await;
    }

    /// Like [`Self::notify`], for a `message_update`.
    pub async fn notify_update(&self, update: &MessageUpdate, cancel: &CancellationToken) {
        let generation = self.current();
        let targets = generation.host.registry.lock().handlers("message_update");
        if !targets.is_empty() {
            let run = self.actions().and_then(|actions| actions.current_run());
            let queued = QueuedEvent::Update(Box::new(update.clone()));
            let queue = &generation.event_queue;
            queue.push(queued, targets, None, run, cancel).await;
        }
    }

    /// Like [`Self::notify`], for an event with a member that handlers may change. Returns
    /// the change, if there is one.
    pub async fn notify_mutable<T: serde::Serialize>(
        &self,
        name: &str,
        event: impl FnOnce() -> T,
        cancel: &CancellationToken,
    ) -> Option<Mutation> {
        let generation = self.current();
        let number = generation.host.next_token();
        let member = table::find(name).and_then(|(_, kind)| kind.mutable.first().copied());
        let change = Some(MutationSlot { number, member });
        self.deliver(&generation, name, event, change, cancel).await;
        generation.host.mutations.take(number)
    }

    /// Like [`Self::notify`], for an event whose handlers may propose entries and another
    /// request. Returns their proposal, if there is one.
    pub async fn notify_turn_end<T: serde::Serialize>(
        &self,
        name: &str,
        event: impl FnOnce() -> T,
        cancel: &CancellationToken,
    ) -> Option<Proposal> {
        let generation = self.current();
        let number = generation.host.next_token();
        let member = None;
        let change = Some(MutationSlot { number, member });
        self.deliver(&generation, name, event, change, cancel).await;
        generation.host.proposals.take(number)
    }

    async fn deliver<T: serde::Serialize>(
        &self,
        generation: &Generation,
        name: &str,
        event: impl FnOnce() -> T,
        change: Option<MutationSlot>,
        cancel: &CancellationToken,
    ) {
        let has_handlers = generation.has_handlers(name);
        if !has_handlers && generation.event_queue.is_empty() {
            return;
        }
        let run = self.actions().and_then(|actions| actions.current_run());
        if has_handlers {
            let Some(event) = to_json(name, &event()) else {
                return;
            };
            let targets = generation.host.registry.lock().handlers(name);
            let queue = &generation.event_queue;
            let queued = QueuedEvent::Event(event);
            queue.push(queued, targets, change, run, cancel).await;
        }
        if table::find(name).is_some_and(|(_, kind)| matches!(kind.merge, Merge::Settle)) {
            generation.wait_handlers(run, cancel).await;
            generation.host.wait_shown().await;
        }
    }

    /// Like [`Self::notify`], for callers that cannot wait. If the queue is full, the event
    /// is delivered later and out of order.
    pub fn notify_soon<T: serde::Serialize>(&self, name: &str, event: impl FnOnce() -> T) {
        let generation = self.current();
        if !generation.has_handlers(name) {
            return;
        }
        let Some(event) = to_json(name, &event()) else {
            return;
        };
        let targets = generation.host.registry.lock().handlers(name);
        let run = self.actions().and_then(|actions| actions.current_run());
        let pushed = generation.event_queue.try_push(event, targets.clone(), run);
        if let Err(event) = pushed {
            self.handle.spawn(async move {
                let never = CancellationToken::new();
                generation
                    .event_queue
                    .push(QueuedEvent::Event(event), targets, None, run, &never)
                    .await;
            });
        }
    }

    /// Returns when all queued events have been handled.
    pub async fn wait_drained(&self) {
        self.current().event_queue.drain().await;
    }
}

fn to_json(name: &str, event: &impl serde::Serialize) -> Option<Box<RawValue>> {
    let json = to_raw_value(event);
    json.inspect_err(|error| tracing::error!("{name} cannot be told to extensions: {error}"))
        .ok()
}
