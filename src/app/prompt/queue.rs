//! Messages that wait for a run, and counts of the prompts that may begin one.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::prompt::PromptError;
use crate::state::State;
use pi_agent::AgentMessage;
use pi_agent::queue::{Delivery, Queues};

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

/// The condition under which a message is queued.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueIf {
    /// A run is active.
    Busy,
    /// A run is active or about to begin.
    BusyOrStarting,
    Always,
}

impl State {
    /// Queues the message if `when` applies, in the session that `switch_cancel` was taken from.
    /// Returns whether it was queued.
    pub fn queue_if(
        &mut self,
        delivery: Delivery,
        message: &Arc<AgentMessage>,
        switch_cancel: &CancellationToken,
        when: QueueIf,
    ) -> Result<bool, PromptError> {
        if switch_cancel.is_cancelled() {
            return Err(PromptError::Aborted);
        }
        let is_starting = when == QueueIf::BusyOrStarting && self.prompts.starting > 0;
        let queued = self.work.is_running() || is_starting || when == QueueIf::Always;
        if queued {
            self.prompts.queues.push(delivery, message.clone());
            self.prompts.is_run_pending |= is_starting && !self.work.is_running();
        }
        Ok(queued)
    }

    /// Queues a message of an extension for the run that is about to begin. Gives the message back
    /// if no run is about to begin.
    pub fn queue_if_starting(
        &mut self,
        delivery: Delivery,
        message: Arc<AgentMessage>,
    ) -> Result<(), Arc<AgentMessage>> {
        if self.prompts.starting == 0 || self.work.is_running() || self.work.is_replacing {
            return Err(message);
        }
        self.prompts.queues.push(delivery, message);
        // The prompt may still fail or be handled.
        self.prompts.is_run_pending = true;
        Ok(())
    }

    /// Queues the message if a run is active, and gives it back otherwise.
    pub fn queue_if_busy(
        &mut self,
        delivery: Delivery,
        message: Arc<AgentMessage>,
    ) -> Result<(), Arc<AgentMessage>> {
        if !self.work.is_running() {
            return Err(message);
        }
        self.prompts.queues.push(delivery, message);
        Ok(())
    }

    /// Like [`Self::queue_if_busy`], for messages that do not extend the run. Gives the message
    /// back once `agent_end` handlers have started.
    pub fn queue_quietly_if_busy(
        &mut self,
        message: Arc<AgentMessage>,
    ) -> Result<(), Arc<AgentMessage>> {
        if !self.work.is_running() || self.work.ending_run().is_some() {
            return Err(message);
        }
        self.prompts.queues.push_silent(Delivery::Steer, message);
        Ok(())
    }

    /// Queues a message of an `agent_end` handler for the next run, which begins for it if `begins`
    /// is set. Gives the message back if no run is ending.
    pub fn queue_if_ending(
        &mut self,
        delivery: Delivery,
        message: Arc<AgentMessage>,
        begins: bool,
    ) -> Result<(), Arc<AgentMessage>> {
        if !self.work.is_ending() {
            return Err(message);
        }
        match begins {
            true => self.prompts.queues.push(delivery, message),
            false => self.prompts.queues.push_silent(delivery, message),
        }
        Ok(())
    }
}
