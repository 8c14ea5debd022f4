//! Queued handlers that wait for the agent. While one does, the agent does not wait for the
//! queue, because the two would wait for each other.

use tokio::sync::watch;

/// Number of calls of the current queued handler that wait for the agent.
#[derive(Default)]
pub struct AgentWaits(watch::Sender<usize>);

impl AgentWaits {
    /// Counts a call until the guard is dropped.
    pub fn begin(&self) -> AgentWaitGuard<'_> {
        self.0.send_modify(|calls| *calls += 1);
        AgentWaitGuard(self)
    }

    /// Returns when a call waits for the agent.
    pub async fn wait_any(&self) {
        let mut calls = self.0.subscribe();
        // The sender is owned by `self`, so waiting does not fail.
        let _ = calls.wait_for(|calls| *calls > 0).await;
    }
}

pub struct AgentWaitGuard<'a>(&'a AgentWaits);

impl Drop for AgentWaitGuard<'_> {
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
    async fn counts_until_guard_is_dropped() {
        let waits = AgentWaits::default();
        let call = waits.begin();
        waits.wait_any().await;
        drop(call);
        assert!(timeout(Duration::ZERO, waits.wait_any()).await.is_err());
    }
}
