//! A queued handler that waits for the agent: while it does, nobody waits for it.
//! Otherwise the two would wait for each other.

use tokio::sync::watch;

/// How many calls of the queued handler that runs wait for the agent.
#[derive(Default)]
pub struct Yields(watch::Sender<usize>);

impl Yields {
    /// One waits until the guard is dropped.
    pub fn begin(&self) -> Yielding<'_> {
        self.0.send_modify(|calls| *calls += 1);
        Yielding(self)
    }

    /// Returns when there is one.
    pub async fn any(&self) {
        let mut calls = self.0.subscribe();
        // The sender is ours, so that waiting does not fail.
        let _ = calls.wait_for(|calls| *calls > 0).await;
    }
}

pub struct Yielding<'a>(&'a Yields);

impl Drop for Yielding<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|calls| *calls -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn lasts_as_long_as_the_call() {
        let yields = Yields::default();
        let call = yields.begin();
        yields.any().await;
        drop(call);
        assert!(timeout(Duration::ZERO, yields.any()).await.is_err());
    }
}
