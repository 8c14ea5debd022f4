//! Prompts on their way to the agent, in their order.

use tokio::sync::{mpsc, watch};

use super::extension_messages::QueuedUserMessage;
use super::tickets::TicketQueue;

pub(crate) struct PromptIntake {
    /// Number of prompts that are neither refused, handled, queued nor started yet.
    in_progress: watch::Sender<usize>,
    /// Orders prompts by arrival.
    pub order: TicketQueue,
    /// Steering messages that must be queued before the next model request.
    pub steering: TicketQueue,
    /// Prompts of extensions that have neither begun a run nor been queued or refused yet. The
    /// session is not idle for extensions while there are any.
    pub from_extensions: TicketQueue,
    /// Prompts of extensions, in order. Unbounded, because extensions send them from code that
    /// cannot wait.
    pub extension_messages: mpsc::UnboundedSender<QueuedUserMessage>,
}

impl PromptIntake {
    pub fn new(extension_messages: mpsc::UnboundedSender<QueuedUserMessage>) -> Self {
        Self {
            in_progress: watch::Sender::new(0),
            order: TicketQueue::default(),
            steering: TicketQueue::default(),
            from_extensions: TicketQueue::default(),
            extension_messages,
        }
    }

    /// Keeps the session from being settled until the result is dropped.
    pub fn begin(&self) -> impl Drop + use<> {
        struct InProgress(watch::Sender<usize>);
        impl Drop for InProgress {
            fn drop(&mut self) {
                self.0.send_modify(|count| *count -= 1);
            }
        }
        self.in_progress.send_modify(|count| *count += 1);
        InProgress(self.in_progress.clone())
    }

    /// Receives the number of prompts that are neither refused, handled, queued nor started yet.
    pub fn subscribe(&self) -> watch::Receiver<usize> {
        self.in_progress.subscribe()
    }
}
