//! Keeps prompts in their order of arrival while `input` handlers or a compaction delay some of
//! them.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The tickets that are not dropped yet.
#[derive(Default)]
struct Tickets {
    pending: BTreeSet<u64>,
    next: u64,
    /// Tickets with smaller numbers have timed out in [`TicketQueue::drain`].
    abandoned_before: u64,
}

pub(crate) struct TicketQueue(watch::Sender<Tickets>);

impl Default for TicketQueue {
    fn default() -> Self {
        Self(watch::Sender::new(Tickets::default()))
    }
}

impl TicketQueue {
    pub(crate) fn take(&self) -> Ticket {
        let mut number = 0;
        self.0.send_modify(|tickets| {
            number = tickets.next;
            tickets.next += 1;
            tickets.pending.insert(number);
        });
        Ticket {
            queue: self.0.clone(),
            number,
        }
    }

    /// Returns whether any ticket is not dropped yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.0.borrow().pending.is_empty()
    }

    /// Returns when all tickets are dropped.
    pub(crate) async fn wait_empty(&self) {
        let mut tickets = self.0.subscribe();
        let empty = |tickets: &Tickets| tickets.pending.is_empty();
        // An error is impossible: `self` is a sender.
        let _ = tickets.wait_for(empty).await;
    }

    /// Returns when all tickets taken so far are dropped, or after `limit`. Tickets that time out
    /// are not waited for again.
    pub(crate) async fn drain(&self, limit: Duration) {
        let mut tickets = self.0.subscribe();
        let end = tickets.borrow().next;
        let none = |tickets: &Tickets| {
            let awaited = tickets.pending.range(tickets.abandoned_before..end);
            awaited.count() == 0
        };
        if timeout(limit, tickets.wait_for(none)).await.is_err() {
            self.0.send_modify(|tickets| tickets.abandoned_before = end);
        }
    }
}

/// A position in the queue, until it is dropped.
pub(crate) struct Ticket {
    queue: watch::Sender<Tickets>,
    number: u64,
}

impl Ticket {
    /// Returns when all tickets taken before this one are dropped.
    pub(crate) async fn wait(&self) {
        let mut tickets = self.queue.subscribe();
        let first = |tickets: &Tickets| tickets.pending.first() == Some(&self.number);
        // An error is impossible: `self` holds a sender.
        let _ = tickets.wait_for(first).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.queue
            .send_modify(|tickets| _ = tickets.pending.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn dropped_ticket_lets_no_later_one_overtake() {
        let queue = TicketQueue::default();
        let (first, second, third) = (queue.take(), queue.take(), queue.take());
        drop(second);
        assert!(futures::poll!(Box::pin(third.wait())).is_pending());
        first.wait().await;
        drop(first);
        third.wait().await;
    }

    #[tokio::test]
    async fn drain_waits_only_once_for_a_stuck_ticket() {
        let queue = TicketQueue::default();
        let stuck = queue.take();
        queue.drain(Duration::from_millis(1)).await;
        let quick = queue.take();
        let drained = queue.drain(Duration::from_secs(3600));
        tokio::pin!(drained);
        assert!(futures::poll!(&mut drained).is_pending());
        drop(quick);
        drained.await;
        drop(stuck);
    }
}
