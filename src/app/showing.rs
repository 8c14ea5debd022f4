//! What extensions show without a question: it is told in the order in which it was said,
//! and while nobody reads only so much of it is kept, since they cannot be made to wait.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::session::{AgentSession, begin};
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
}

struct Waiting {
    number: u64,
    /// The next one of the same place takes its place.
    place: Option<String>,
    bytes: usize,
    method: UiMethod,
}

impl State {
    /// Whether something is lost now that nothing was before.
    fn push(&mut self, method: UiMethod) -> bool {
        let place = place(&method);
        let same = |waiting: &Waiting| place.is_some() && waiting.place == place;
        if let Some(before) = self.waiting.iter().position(same) {
            let before = self.waiting.remove(before);
            self.bytes -= before.map_or(0, |before| before.bytes);
        }
        // Without a length it is nothing that could be told.
        let bytes = serde_json::to_string(&method).map_or(0, |text| text.len());
        self.bytes += bytes;
        self.last += 1;
        self.waiting.push_back(Waiting {
            number: self.last,
            place,
            bytes,
            method,
        });
        let was_losing = self.is_losing;
        while self.bytes > MOST && self.waiting.len() > 1 {
            let lost = self.waiting.pop_front();
            self.bytes -= lost.map_or(0, |lost| lost.bytes);
            self.is_losing = true;
        }
        self.is_losing && !was_losing
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
        let (begins_to_lose, is_sending) = {
            let mut showing = self.showing.state.lock();
            let begins_to_lose = showing.push(method);
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
                let request = UiRequest {
                    id: uuid::Uuid::new_v4().to_string(),
                    method: next.method,
                };
                session.tell(Event::ExtensionUiRequest(request)).await;
                session.showing.told.send_replace(next.number);
            }
        });
    }

    /// Returns when what is shown by now was told.
    pub(super) async fn wait_shown(&self) {
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

    fn note(bytes: usize) -> UiMethod {
        UiMethod::Notify {
            message: "n".repeat(bytes),
            notify_type: None,
        }
    }

    #[test]
    fn only_the_last_of_a_place_waits_and_only_so_many_bytes() {
        let mut showing = State::default();
        let title = |title: &str| UiMethod::SetTitle {
            title: title.into(),
        };
        assert!(!showing.push(title("1")) && !showing.push(note(1)) && !showing.push(title("2")));
        assert_eq!(showing.waiting.len(), 2);
        let next = showing.pop().unwrap();
        assert!(matches!(next.method, UiMethod::Notify { .. }) && next.number == 2);
        assert!(!showing.push(note(MOST / 2)));
        assert!(showing.push(note(MOST / 2)), "the title is lost");
        assert!(!showing.push(note(MOST / 2)), "as was told");
        assert_eq!(showing.waiting.len(), 1);
        assert!(
            !showing.push(note(2 * MOST)),
            "the last is kept in any case"
        );
        assert!(showing.pop().is_some() && showing.pop().is_none());
        assert_eq!(showing.bytes, 0);
        assert!(!showing.is_losing);
    }
}
