//! What extensions show without a question, while nobody reads: they cannot be made to
//! wait, so only what is still worth reading is kept.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::session::{AgentSession, begin};
use crate::agent::event::{Event, UiMethod, UiRequest};

/// So much may wait; then the oldest is lost.
const MOST: usize = 256;

/// What waits for the mode.
#[derive(Default)]
pub(super) struct Showing(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    last: u64,
    /// Something was lost, and something waits since then.
    is_losing: bool,
}

struct Waiting {
    number: u64,
    /// The next one of the same place takes its place.
    place: Option<String>,
    dropped: CancellationToken,
}

struct Entered {
    number: u64,
    dropped: CancellationToken,
    /// The first that was lost since the mode has taken everything.
    has_lost: bool,
}

impl Showing {
    fn enter(&self, place: Option<String>) -> Entered {
        let state = &mut *self.0.lock();
        let before = state
            .waiting
            .iter()
            .position(|waiting| place.is_some() && waiting.place == place);
        let is_full = state.waiting.len() >= MOST;
        let dropped = match before {
            Some(before) => state.waiting.remove(before),
            None if is_full => state.waiting.pop_front(),
            None => None,
        };
        if let Some(dropped) = &dropped {
            dropped.dropped.cancel();
        }
        let loses = before.is_none() && dropped.is_some();
        let has_lost = loses && !state.is_losing;
        state.is_losing |= loses;
        state.last += 1;
        let (number, dropped) = (state.last, CancellationToken::new());
        state.waiting.push_back(Waiting {
            number,
            place,
            dropped: dropped.clone(),
        });
        Entered {
            number,
            dropped,
            has_lost,
        }
    }

    fn leave(&self, number: u64) {
        let state = &mut *self.0.lock();
        state.waiting.retain(|waiting| waiting.number != number);
        if state.waiting.is_empty() {
            state.is_losing = false;
        }
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
        let session = self.arc();
        let entered = self.showing.enter(place(&method));
        if entered.has_lost {
            let session = self.arc();
            begin(&self.handle, async move {
                let text = format!(
                    "Nobody reads what extensions show: of all that waits only the last {MOST} are kept"
                );
                session.report("<session>", "ui", text).await;
            });
        }
        let request = UiRequest {
            id: uuid::Uuid::new_v4().to_string(),
            method,
        };
        begin(&self.handle, async move {
            tokio::select! {
                biased;
                () = session.tell(Event::ExtensionUiRequest(request)) => {}
                () = entered.dropped.cancelled() => {}
            }
            session.showing.leave(entered.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_of_a_place_waits_and_only_so_many() {
        let showing = Showing::default();
        let title = || place(&UiMethod::SetTitle { title: "t".into() });
        let first = showing.enter(title());
        let second = showing.enter(title());
        assert!(first.dropped.is_cancelled() && !second.has_lost);
        let notes: Vec<Entered> = (1..MOST).map(|_| showing.enter(None)).collect();
        assert!(!second.dropped.is_cancelled());
        assert!(showing.enter(None).has_lost && second.dropped.is_cancelled());
        let another = showing.enter(None);
        assert!(!another.has_lost && notes[0].dropped.is_cancelled());
        assert_eq!(showing.0.lock().waiting.len(), MOST);
        for number in 1..=another.number {
            showing.leave(number);
        }
        assert!(!showing.0.lock().is_losing);
    }
}
