//! What extensions show without a question, and put into the conversation while the agent
//! is idle: it is told in the order in which it was said. While nobody reads only so much
//! of what they show is kept, since they cannot be made to wait. What stays on the screen
//! goes with the extensions that showed it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::session::{AgentSession, begin};
use crate::agent::AgentMessage;
use crate::agent::event::{Event, UiMethod, UiRequest};

/// So many bytes may wait; then the oldest are lost.
const MOST: usize = 8 << 20;

/// What waits for the mode.
#[derive(Default)]
pub(super) struct Showing {
    state: Mutex<State>,
    /// The number of the last one that the mode has taken.
    told: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// The number of the last one.
    last: u64,
    /// Of all that waits.
    bytes: usize,
    /// Somebody takes it from the front.
    is_sending: bool,
    /// Something was lost, and something waits since then.
    is_losing: bool,
    /// By its place, what takes away again what is shown there.
    shown: BTreeMap<String, UiMethod>,
}

struct Waiting {
    number: u64,
    /// The next one of the same place takes its place.
    place: Option<String>,
    /// None of what may not be lost.
    bytes: usize,
    what: Shown,
}

enum Shown {
    Ui(UiMethod),
    Message(Arc<AgentMessage>),
}

impl State {
    /// Whether something is lost now that nothing was before.
    fn push(&mut self, what: Shown) -> bool {
        let (place, bytes) = match &what {
            // Without a length it is nothing that could be told.
            Shown::Ui(method) => (
                place(method),
                serde_json::to_string(method).map_or(0, |text| text.len()),
            ),
            Shown::Message(_) => (None, 0),
        };
        if let (Some(place), Shown::Ui(method)) = (&place, &what) {
            match method.removal() {
                Some(nothing) if nothing != *method => {
                    self.shown.insert(place.clone(), nothing);
                }
                _ => _ = self.shown.remove(place),
            }
        }
        let same = |waiting: &Waiting| place.is_some() && waiting.place == place;
        if let Some(before) = self.waiting.iter().position(same) {
            self.lose(before);
        }
        self.bytes += bytes;
        self.last += 1;
        self.waiting.push_back(Waiting {
            number: self.last,
            place,
            bytes,
            what,
        });
        let was_losing = self.is_losing;
        while self.bytes > MOST
            && let Some(oldest) = self.waiting.iter().position(|waiting| waiting.bytes > 0)
            && oldest + 1 < self.waiting.len()
        {
            self.lose(oldest);
            self.is_losing = true;
        }
        self.is_losing && !was_losing
    }

    fn lose(&mut self, index: usize) {
        let lost = self.waiting.remove(index);
        self.bytes -= lost.map_or(0, |lost| lost.bytes);
    }

    fn pop(&mut self) -> Option<Waiting> {
        let Some(next) = self.waiting.pop_front() else {
            (self.is_sending, self.is_losing) = (false, false);
            return None;
        };
        self.bytes -= next.bytes;
        Some(next)
    }
}

fn place(method: &UiMethod) -> Option<String> {
    let key = match method {
        UiMethod::SetStatus { status_key, .. } => status_key.as_str(),
        UiMethod::SetWidget { widget_key, .. } => widget_key,
        UiMethod::SetTitle { .. } | UiMethod::SetEditorText { .. } => "",
        _ => return None,
    };
    Some(format!("{} {key}", method.name()))
}

impl AgentSession {
    pub(super) fn show(&self, method: UiMethod) {
        self.tell_in_turn(Shown::Ui(method));
    }

    /// Those that showed what is on the screen are gone. What still waits is not told any
    /// more: what takes it away takes its place.
    pub(super) fn clear_ui(&self) {
        let shown = std::mem::take(&mut self.showing.state.lock().shown);
        for nothing in shown.into_values() {
            self.show(nothing);
        }
    }

    /// A message that is in the conversation by now.
    pub(super) fn announce_in_turn(&self, message: Arc<AgentMessage>) {
        self.tell_in_turn(Shown::Message(message));
    }

    fn tell_in_turn(&self, what: Shown) {
        let (begins_to_lose, is_sending) = {
            let mut showing = self.showing.state.lock();
            let begins_to_lose = showing.push(what);
            let is_sending = std::mem::replace(&mut showing.is_sending, true);
            (begins_to_lose, is_sending)
        };
        if begins_to_lose {
            let session = self.arc();
            begin(&self.handle, async move {
                let text = format!(
                    "Nobody reads what extensions show: of all that waits only the last {} MB are \
                     kept",
                    MOST >> 20
                );
                session.report("<session>", "ui", text).await;
            });
        }
        if is_sending {
            return;
        }
        let session = self.arc();
        begin(&self.handle, async move {
            loop {
                // Not held while it is told.
                let next = session.showing.state.lock().pop();
                let Some(next) = next else { return };
                match next.what {
                    Shown::Message(message) => session.announce(message).await,
                    Shown::Ui(method) => {
                        let id = uuid::Uuid::new_v4().to_string();
                        let request = UiRequest { id, method };
                        session.tell(Event::ExtensionUiRequest(request)).await;
                    }
                }
                session.showing.told.send_replace(next.number);
            }
        });
    }

    /// Returns when all that was shown, or put into the conversation, by now was told.
    pub(super) async fn wait_announced(&self) {
        let last = self.showing.state.lock().last;
        // An error is not possible: this is a sender. What a later one has taken the place
        // of, or what was lost, needs not be told.
        let mut told = self.showing.told.subscribe();
        let _ = told.wait_for(|told| *told >= last).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::message::UserMessage;

    fn note(bytes: usize) -> Shown {
        Shown::Ui(UiMethod::Notify {
            message: "n".repeat(bytes),
            notify_type: None,
        })
    }

    #[test]
    fn only_the_last_of_a_place_waits_and_only_so_many_bytes() {
        let mut showing = State::default();
        let title = |title: &str| {
            Shown::Ui(UiMethod::SetTitle {
                title: title.into(),
            })
        };
        assert!(!showing.push(title("1")) && !showing.push(note(1)) && !showing.push(title("2")));
        assert_eq!(showing.waiting.len(), 2);
        let next = showing.pop().unwrap();
        assert!(next.number == 2 && next.place.is_none());
        let message = UserMessage::new("kept", Vec::new());
        showing.push(Shown::Message(Arc::new(AgentMessage::User(message))));
        assert!(!showing.push(note(MOST / 2)));
        assert!(showing.push(note(MOST / 2)), "the title is lost");
        assert!(!showing.push(note(MOST / 2)), "as was told");
        assert_eq!(showing.waiting.len(), 2);
        assert!(
            !showing.push(note(2 * MOST)),
            "the last is kept in any case"
        );
        assert!(matches!(showing.pop().unwrap().what, Shown::Message(_)));
        assert!(showing.pop().is_some() && showing.pop().is_none());
        assert_eq!(showing.bytes, 0);
        assert!(!showing.is_losing);
    }
}
