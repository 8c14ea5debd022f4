//! Messages that extensions send: they join the run, begin one, or wait. Calls of extensions cannot
//! wait, so a task sends their prompts one after the other.

use std::sync::{Arc, Weak};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::tickets::Ticket;
use super::{Behavior, PromptError, PromptRequest, Source};
use crate::AgentSession;
use crate::error::CommandError;
use crate::run::NewRun;
use pi_agent::AgentMessage;
use pi_agent::queue::Delivery;
use pi_ai::message::{ContentBlock, ImageContent, UserContent};
use pi_extensions::api::session_api::{DeliverAs, SendOptions};
use pi_extensions::registry::ExtensionId;
use pi_session::message::CustomMessage;

/// A prompt of an extension that waits for its turn.
pub(crate) struct QueuedUserMessage {
    request: PromptRequest,
    /// The file of the extension.
    from: String,
    /// Taken from the session that the prompt is for.
    switch_cancel: CancellationToken,
    /// The run is ending and the extension did not say how to deliver the prompt.
    is_refused: bool,
    /// Keeps the session from being settled.
    _task: TaskTrackerToken,
    /// The next model request waits for this ticket.
    _steered: Option<Ticket>,
    /// Keeps the prompt in `PromptIntake::from_extensions` until it is dropped.
    pending: Ticket,
}

/// Sends prompts of extensions, one after the other.
pub(crate) async fn send_extension_messages(
    session: Weak<AgentSession>,
    mut queued: mpsc::UnboundedReceiver<QueuedUserMessage>,
) {
    while let Some(QueuedUserMessage {
        request,
        from,
        switch_cancel,
        is_refused,
        _task,
        _steered,
        pending,
    }) = queued.recv().await
    {
        let Some(session) = session.upgrade() else {
            return;
        };
        // A command may itself send a prompt and wait for the run, so later prompts do not wait for
        // it.
        if request.commands && session.is_command(&request.text) {
            let own = session.clone();
            session.spawn(async move {
                let _task = _task;
                own.wait_not_ending().await;
                if !switch_cancel.is_cancelled() {
                    let ran = own.prompt_in(request, Some(switch_cancel)).await.map(drop);
                    if let Err(error) = ran {
                        own.report_undelivered(&from, error).await;
                    }
                }
            });
            continue;
        }
        let prompted = match is_refused {
            true => Err(PromptError::Busy),
            false => {
                // Prompts of `agent_end` handlers are for the next run.
                session.wait_not_ending().await;
                if switch_cancel.is_cancelled() {
                    continue;
                }
                session.prompt_in(request, Some(switch_cancel)).await
            }
        };
        match prompted {
            Ok(accepted) => {
                // The run goes on when `accepted` is dropped. If the ticket were dropped later, an
                // extension could find the session busy after the run has settled.
                drop(pending);
                drop(accepted);
            }
            Err(error) => {
                session.report_undelivered(&from, error).await;
                // A prompt of the user that waits for this ticket is displayed after the report.
                drop(pending);
            }
        }
    }
}

/// The error of a prompt during a run without `deliverAs`.
const BUSY: &str = "Agent is already processing. Specify deliverAs ('steer' or 'followUp') to \
                    queue the message.";

impl AgentSession {
    /// Sends a message of an extension. It joins the run, begins one, waits, or is appended, as the
    /// options and the state of the session say.
    pub(crate) fn send_message(
        &self,
        message: CustomMessage,
        options: SendOptions,
    ) -> Result<(), CommandError> {
        let message = Arc::new(self.custom_message(message));
        let session = self.arc();
        if options.deliver_as == Some(DeliverAs::NextTurn) {
            self.state.lock().prompts.next_turn.push(message);
            return Ok(());
        }
        let delivery = options.deliver_as.and_then(DeliverAs::delivery);
        let delivery = delivery.unwrap_or(Delivery::Steer);
        // Also with `triggerTurn`: a run that is ending for handlers still takes the message.
        let triggers_turn = options.trigger_turn == Some(true);
        let forbids_turn = options.trigger_turn == Some(false);
        let begins_turn = triggers_turn || (options.deliver_as.is_some() && !forbids_turn);
        let queued = {
            let mut state = self.state.lock();
            let queued = match state.queue_if_ending(delivery, message, begins_turn) {
                Err(message) if forbids_turn => state.queue_quietly_if_busy(message),
                Err(message) => state.queue_if_busy(delivery, message),
                queued => queued,
            };
            match queued {
                Err(message) if triggers_turn => state.queue_if_starting(delivery, message),
                queued => queued,
            }
        };
        let message = match queued {
            Ok(()) => return Ok(()),
            Err(message) => message,
        };
        if triggers_turn && self.summary_lock.is_held() {
            let switch_cancel = self.switcher.cancel.token();
            let from = self.sender(options.from);
            let start = async move {
                session
                    .start_after_compaction(message, switch_cancel, from)
                    .await
            };
            self.spawn(start);
            return Ok(());
        }
        // The answer would belong to a session that is being replaced.
        if triggers_turn && !self.state.lock().work.is_replacing {
            drop(self.start_run(NewRun::with_prompts(vec![message]))?);
            return Ok(());
        }
        self.state.lock().append(message.clone())?;
        self.ui.emit_message_in_order(message);
        Ok(())
    }

    /// Sends a message of the user for an extension. A message that cannot be delivered is reported
    /// to the user.
    pub(crate) fn send_user_message(&self, content: UserContent, options: SendOptions) {
        let (text, images) = match content {
            UserContent::Text(text) => (text, Vec::new()),
            UserContent::Blocks(blocks) => split_blocks(blocks),
        };
        let delivery = options.deliver_as.and_then(DeliverAs::delivery);
        // A run that goes on takes the message at once, unless handlers must be asked first, or an
        // earlier message is still on its way.
        if !options.expand_prompt_templates && !self.extensions.has_handlers("input") {
            let session = self.arc();
            let is_next = !self.intake.from_extensions.is_waiting();
            match delivery {
                Some(delivery) if is_next && self.state.lock().work.ending_run().is_none() => {
                    let message = self.user_message_now(&text, &images);
                    let message = Arc::new(AgentMessage::User(message));
                    let queued = self.state.lock().queue_if_busy(delivery, message);
                    if queued.is_ok() {
                        self.emit_first(async move { session.queue_changed().await });
                        return;
                    }
                }
                None if self.is_busy() => {
                    let from = self.sender(options.from);
                    self.emit_first(async move {
                        session.report_undelivered(&from, PromptError::Busy).await;
                    });
                    return;
                }
                _ => {}
            }
        }
        let request = PromptRequest {
            text,
            images,
            source: Source::Extension,
            while_busy: delivery.map_or(Behavior::Refuse, Behavior::Queue),
            commands: options.expand_prompt_templates,
        };
        let steers = delivery == Some(Delivery::Steer) && !options.expand_prompt_templates;
        let is_refused = delivery.is_none() && self.state.lock().work.is_ending();
        // An error means that the session has ended.
        let _ = self.intake.extension_messages.send(QueuedUserMessage {
            _steered: steers.then(|| self.intake.steering.take()),
            pending: self.intake.from_extensions.take(),
            request,
            from: self.sender(options.from),
            switch_cancel: self.switcher.cancel.token(),
            is_refused,
            _task: self.detached_tasks.lock().token(),
        });
    }

    /// Queues a message of the user, whether or not a run is active, and without asking handlers.
    pub(crate) fn queue_user_message_now(
        &self,
        delivery: Delivery,
        text: &str,
        images: &[ImageContent],
    ) {
        let message = Arc::new(AgentMessage::User(self.user_message_now(text, images)));
        self.state.lock().prompts.queues.push(delivery, message);
        let session = self.arc();
        self.handle
            .spawn(async move { session.queue_changed().await });
    }

    /// Reports why a prompt of the extension at `from` did not reach the agent.
    async fn report_undelivered(&self, from: &str, error: PromptError) {
        let text = match error {
            PromptError::Busy => BUSY.to_string(),
            error => error.to_string(),
        };
        self.report(from, "send_user_message", text).await;
    }

    fn sender(&self, extension: Option<ExtensionId>) -> String {
        extension.map_or_else(|| "<runtime>".to_string(), |id| self.extensions.path_of(id))
    }

    /// Starts a tracked task on the runtime of the program, because calls of extensions come from
    /// other threads.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        let work = self.detached_tasks.lock().track_future(work);
        self.handle.spawn(work)
    }

    /// Begins a run with a message that came during a compaction.
    async fn start_after_compaction(
        &self,
        message: Arc<AgentMessage>,
        switch_cancel: CancellationToken,
        from: String,
    ) {
        loop {
            if self.wait_for_compaction(&switch_cancel).await.is_err() {
                return;
            }
            let queued = (self.state.lock()).queue_if_busy(Delivery::Steer, message.clone());
            let message = match queued {
                Ok(()) => return,
                Err(message) => message,
            };
            let new = NewRun {
                cancel: Some(switch_cancel.clone()),
                ..NewRun::with_prompts(vec![message])
            };
            match self.start_run(new).map(drop) {
                Ok(()) | Err(PromptError::Aborted) => return,
                Err(PromptError::Busy) if self.is_working() => {}
                Err(error) => return self.report(&from, "send_message", error).await,
            }
        }
    }
}

/// Returns the texts joined with newlines, and the images.
fn split_blocks(blocks: Vec<ContentBlock>) -> (String, Vec<ImageContent>) {
    let text = pi_ai::message::join_text(&blocks);
    let images = blocks.into_iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image.block),
        ContentBlock::Text(_) | ContentBlock::Other(_) => None,
    });
    (text, images.collect())
}
