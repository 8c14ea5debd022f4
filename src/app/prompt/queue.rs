//! Messages that wait for a run, and counts of the prompts that may begin one.

use std::sync::Arc;

use pi_agent::AgentMessage;
use pi_agent::queue::Queues;

#[derive(Default)]
pub(crate) struct PromptQueue {
    pub queues: Queues,
    /// Messages for the next prompt (`deliverAs: "nextTurn"`).
    pub next_turn: Vec<Arc<AgentMessage>>,
    /// Number of prompts on their way to the agent. Queued messages wait for them: see
    /// [`Self::is_run_pending`].
    pub preparing: usize,
    /// Number of prompts whose `before_agent_start` handlers are running. Messages of extensions
    /// are meanwhile queued for the run that is about to begin.
    pub starting: usize,
    /// Whether a run is to begin with the queued messages, unless a prompt on its way begins one.
    pub is_run_pending: bool,
}

impl PromptQueue {
    /// Removes everything that waits. Returns the texts of the queued messages.
    pub fn clear(&mut self) -> (Vec<String>, Vec<String>) {
        let texts = self.queues.texts();
        self.queues.clear();
        self.is_run_pending = false;
        self.next_turn.clear();
        texts
    }

    /// Returns whether a run is to begin now, and takes the request for it.
    pub fn take_pending_run(&mut self) -> bool {
        let is_due = self.preparing == 0 && std::mem::take(&mut self.is_run_pending);
        is_due && self.queues.need_run()
    }
}
