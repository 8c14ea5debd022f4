//! A queue of `ctx.ui` messages and of messages appended while the agent is idle. They are emitted
//! in order. Messages of `ctx.ui` are bounded in bytes, because extensions cannot be made to wait
//! for a slow client. Status lines, widgets and titles are cleared when their extensions are
//! unloaded.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::UserInterface;
use crate::session::{emit, report_error, spawn_started};
use pi_agent::AgentMessage;
use pi_agent::event::{Event, ExtensionError, UiMethod, UiRequest};

/// Limit of all pending `ctx.ui` messages, in bytes. The oldest are evicted first.
const MAX_PENDING_BYTES: usize = 8 << 20;

/// Messages that wait for the mode.
#[derive(Default)]
pub(crate) struct UiOutbox {
    state: Mutex<State>,
    /// The number of the last message that the mode has taken.
    delivered: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    pending: VecDeque<PendingMessage>,
    /// The number of the last message.
    last: u64,
    /// Size of all pending messages.
    bytes: usize,
    /// A task is emitting from the front.
    is_sending: bool,
    /// A message was evicted, and the queue was not empty since.
    is_evicting: bool,
    /// For each slot in use, the message that clears it.
    clearing: BTreeMap<String, UiMethod>,
}

struct PendingMessage {
    number: u64,
    /// A later message of the same slot replaces this one.
    slot: Option<String>,
    /// Zero for messages that must not be evicted.
    bytes: usize,
    message: UiMessage,
}

enum UiMessage {
    Ui(UiMethod),
    Message(Arc<AgentMessage>),
}

impl State {
    /// Returns `true` when eviction begins.
    fn push(&mut self, message: UiMessage) -> bool {
        let (slot, bytes) = match &message {
            // A method that does not serialize could not be emitted either.
            UiMessage::Ui(method) => (
                slot(method),
                serde_json::to_string(method).map_or(0, |text| text.len()),
            ),
            UiMessage::Message(_) => (None, 0),
        };
        if let (Some(slot), UiMessage::Ui(method)) = (&slot, &message) {
            match method.removal() {
                Some(cleared) if cleared != *method => {
                    self.clearing.insert(slot.clone(), cleared);
                }
                _ => _ = self.clearing.remove(slot),
            }
        }
        let same = |pending: &PendingMessage| slot.is_some() && pending.slot == slot;
        if let Some(before) = self.pending.iter().position(same) {
            self.evict(before);
        }
        self.bytes += bytes;
        self.last += 1;
        self.pending.push_back(PendingMessage {
            number: self.last,
            slot,
            bytes,
            message,
        });
        let was_evicting = self.is_evicting;
        while self.bytes > MAX_PENDING_BYTES
            && let Some(oldest) = self.pending.iter().position(|pending| pending.bytes > 0)
            && oldest + 1 < self.pending.len()
        {
            self.evict(oldest);
            self.is_evicting = true;
        }
        self.is_evicting && !was_evicting
    }

    fn evict(&mut self, index: usize) {
        let evicted = self.pending.remove(index);
        self.bytes -= evicted.map_or(0, |evicted| evicted.bytes);
    }

    fn pop(&mut self) -> Option<PendingMessage> {
        let Some(next) = self.pending.pop_front() else {
            (self.is_sending, self.is_evicting) = (false, false);
            return None;
        };
        self.bytes -= next.bytes;
        Some(next)
    }
}

fn slot(method: &UiMethod) -> Option<String> {
    let key = match method {
        UiMethod::SetStatus { status_key, .. } => status_key.as_str(),
        UiMethod::SetWidget { widget_key, .. } => widget_key,
        UiMethod::SetTitle { .. } | UiMethod::SetEditorText { .. } => "",
        _ => return None,
    };
    Some(format!("{} {key}", method.name()))
}

impl UserInterface {
    /// Sends a `ctx.ui` message to the mode; never waits.
    pub fn show(self: &Arc<Self>, method: UiMethod) {
        self.enqueue(UiMessage::Ui(method));
    }

    /// Clears what unloaded extensions have shown. Pending messages of these slots are replaced.
    pub fn clear(self: &Arc<Self>) {
        let clearing = std::mem::take(&mut self.outbox.state.lock().clearing);
        for cleared in clearing.into_values() {
            self.show(cleared);
        }
    }

    /// Emits a message that was appended to the conversation.
    pub fn emit_message_in_order(self: &Arc<Self>, message: Arc<AgentMessage>) {
        self.enqueue(UiMessage::Message(message));
    }

    fn enqueue(self: &Arc<Self>, message: UiMessage) {
        let (begins_to_evict, is_sending) = {
            let mut outbox = self.outbox.state.lock();
            let begins_to_evict = outbox.push(message);
            let is_sending = std::mem::replace(&mut outbox.is_sending, true);
            (begins_to_evict, is_sending)
        };
        if begins_to_evict {
            let ui = self.clone();
            spawn_started(&self.handle, async move {
                let text = format!(
                    "The client does not read pi's output: pi keeps the last {} MB of what \
                     extensions show and drops the rest",
                    MAX_PENDING_BYTES >> 20
                );
                report_error(&*ui.mode, ExtensionError::new("<session>", "ui", text)).await;
            });
        }
        if is_sending {
            return;
        }
        let ui = self.clone();
        spawn_started(&self.handle, async move {
            loop {
                // The lock must not be held while the event is emitted.
                let next = ui.outbox.state.lock().pop();
                let Some(next) = next else { return };
                match next.message {
                    UiMessage::Message(message) => ui.emit_message(message).await,
                    UiMessage::Ui(method) => {
                        let id = uuid::Uuid::new_v4().to_string();
                        let request = UiRequest { id, method };
                        emit(&*ui.mode, Event::ExtensionUiRequest(request)).await;
                    }
                }
                ui.outbox.delivered.send_replace(next.number);
            }
        });
    }

    /// Emits `message_start` and `message_end` for a message that joined an idle session.
    async fn emit_message(&self, message: Arc<AgentMessage>) {
        let start = Event::MessageStart {
            message: message.clone(),
        };
        emit(&*self.mode, start).await;
        emit(&*self.mode, Event::MessageEnd { message }).await;
    }

    /// Returns when everything that was queued before this call is emitted.
    pub async fn wait_outbox(&self) {
        let last = self.outbox.state.lock().last;
        // An error is impossible: `self` holds the sender. Replaced and evicted messages have
        // smaller numbers.
        let mut delivered = self.outbox.delivered.subscribe();
        let _ = delivered.wait_for(|delivered| *delivered >= last).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pi_ai::message::UserMessage;

    fn note(bytes: usize) -> UiMessage {
        UiMessage::Ui(UiMethod::Notify {
            message: "n".repeat(bytes),
            notify_type: None,
        })
    }

    #[test]
    fn keeps_the_last_of_a_slot_and_a_limited_size() {
        let mut outbox = State::default();
        let title = |title: &str| {
            UiMessage::Ui(UiMethod::SetTitle {
                title: title.into(),
            })
        };
        assert!(!outbox.push(title("1")) && !outbox.push(note(1)) && !outbox.push(title("2")));
        assert_eq!(outbox.pending.len(), 2);
        let next = outbox.pop().unwrap();
        assert!(next.number == 2 && next.slot.is_none());
        let message = UserMessage::new("kept", Vec::new());
        outbox.push(UiMessage::Message(Arc::new(AgentMessage::User(message))));
        assert!(!outbox.push(note(MAX_PENDING_BYTES / 2)));
        assert!(
            outbox.push(note(MAX_PENDING_BYTES / 2)),
            "the title is evicted"
        );
        assert!(
            !outbox.push(note(MAX_PENDING_BYTES / 2)),
            "eviction is reported once"
        );
        assert_eq!(outbox.pending.len(), 2);
        assert!(
            !outbox.push(note(2 * MAX_PENDING_BYTES)),
            "the last message is never evicted"
        );
        assert!(matches!(
            outbox.pop().unwrap().message,
            UiMessage::Message(_)
        ));
        assert!(outbox.pop().is_some() && outbox.pop().is_none());
        assert_eq!(outbox.bytes, 0);
        assert!(!outbox.is_evicting);
    }
}
