//! Prompts reach the agent in the order in which they were said, however long an `input`
//! handler or a compaction keeps the first: those that waited woke all at once.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// The numbers of the prompts that have not reached the agent yet.
#[derive(Default)]
struct Waiting {
    numbers: BTreeSet<u64>,
    next: u64,
    /// Those before it have been waited for in vain.
    given_up: u64,
}

pub(super) struct Turns(watch::Sender<Waiting>);

impl Default for Turns {
    fn default() -> Self {
        Self(watch::Sender::new(Waiting::default()))
    }
}

impl Turns {
    pub(super) fn take(&self) -> Turn {
        let mut number = 0;
        self.0.send_modify(|waiting| {
            number = waiting.next;
            waiting.next += 1;
            waiting.numbers.insert(number);
        });
        Turn {
            turns: self.0.clone(),
            number,
        }
    }

    /// Whether a prompt is on its way to the agent.
    pub(super) fn is_waiting(&self) -> bool {
        !self.0.borrow().numbers.is_empty()
    }

    /// Returns when no prompt is on its way to the agent.
    pub(super) async fn wait_empty(&self) {
        let mut waiting = self.0.subscribe();
        let empty = |waiting: &Waiting| waiting.numbers.is_empty();
        // An error is not possible: this is a sender.
        let _ = waiting.wait_for(empty).await;
    }

    /// Returns when all that were said by now have reached the agent, or after `limit`;
    /// those that have not by then are not waited for again.
    pub(super) async fn settle(&self, limit: Duration) {
        let mut waiting = self.0.subscribe();
        let end = waiting.borrow().next;
        let none = |waiting: &Waiting| {
            let awaited = waiting.numbers.range(waiting.given_up..end);
            awaited.count() == 0
        };
        if timeout(limit, waiting.wait_for(none)).await.is_err() {
            self.0.send_modify(|waiting| waiting.given_up = end);
        }
    }
}

/// A place in the row, until it is dropped.
pub(super) struct Turn {
    turns: watch::Sender<Waiting>,
    number: u64,
}

impl Turn {
    /// All that were said before have reached the agent, or never will.
    pub(super) async fn come(&self) {
        let mut waiting = self.turns.subscribe();
        let first = |waiting: &Waiting| waiting.numbers.first() == Some(&self.number);
        // An error is not possible: this is a sender.
        let _ = waiting.wait_for(first).await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns
            .send_modify(|waiting| _ = waiting.numbers.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_gives_up_does_not_let_the_next_overtake() {
        let turns = Turns::default();
        let (first, second, third) = (turns.take(), turns.take(), turns.take());
        drop(second);
        assert!(futures::poll!(Box::pin(third.come())).is_pending());
        first.come().await;
        drop(first);
        third.come().await;
    }

    #[tokio::test]
    async fn nobody_is_waited_for_twice_in_vain() {
        let turns = Turns::default();
        let stuck = turns.take();
        turns.settle(Duration::from_millis(1)).await;
        let quick = turns.take();
        let settled = turns.settle(Duration::from_secs(3600));
        tokio::pin!(settled);
        assert!(futures::poll!(&mut settled).is_pending());
        drop(quick);
        settled.await;
        drop(stuck);
    }
}
