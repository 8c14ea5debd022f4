//! Questions of extensions that wait for the user. An answer that comes too late
//! or for nothing is ignored.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::session_api::Actions;
use crate::agent::event::{Event, UiAnswer, UiMethod, UiRequest};

#[derive(Default)]
pub struct UiBroker {
    state: Mutex<State>,
    /// Counts the times that questions went without an answer of the user.
    withdrawn: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    pending: HashMap<String, Pending>,
    /// Nobody is asked any more.
    closed: bool,
}

struct Pending {
    /// The extension's own number for the question.
    token: Option<u64>,
    /// Yes or no is the answer.
    confirms: bool,
    answer: oneshot::Sender<UiAnswer>,
}

impl UiBroker {
    /// Asks and waits; without a user the answer is `Cancelled`.
    pub async fn ask(
        &self,
        actions: &dyn Actions,
        method: UiMethod,
        token: Option<u64>,
        timeout: Option<Duration>,
    ) -> UiAnswer {
        if !actions.has_ui() {
            return UiAnswer::Cancelled;
        }
        let id = uuid::Uuid::new_v4().to_string();
        let (answer, mut answered) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.closed {
                return UiAnswer::Cancelled;
            }
            let pending = Pending {
                token,
                confirms: matches!(method, UiMethod::Confirm { .. }),
                answer,
            };
            state.pending.insert(id.clone(), pending);
        }
        let _forget = Forget {
            broker: self,
            id: &id,
        };
        let request = UiRequest {
            id: id.clone(),
            method,
        };
        let asked = async {
            // A mode that does not take the question must not hold up whoever
            // does not want to know any more.
            tokio::select! {
                biased;
                answer = &mut answered => return answer,
                () = actions.emit(Event::ExtensionUiRequest(request)) => {}
            }
            // JavaScript first does what it does while it waits, however quick the answer
            // is: handlers of `agent_end` see the run at rest then.
            tokio::task::yield_now().await;
            answered.await
        };
        let answer = match timeout {
            None => asked.await.ok(),
            Some(timeout) => tokio::time::timeout(timeout, asked)
                .await
                .ok()
                .and_then(Result::ok),
        };
        answer.unwrap_or(UiAnswer::Cancelled)
    }

    /// The user's answer. Returns whether anybody was waiting for it.
    pub fn answer(&self, id: &str, answer: UiAnswer) -> bool {
        let Some(pending) = self.state.lock().pending.remove(id) else {
            return false;
        };
        pending.answer.send(answer).is_ok()
    }

    /// Whether this is a question to be answered with yes or no.
    pub fn confirms(&self, id: &str) -> bool {
        let state = self.state.lock();
        state
            .pending
            .get(id)
            .is_some_and(|pending| pending.confirms)
    }

    /// Whether anybody waits for an answer to it.
    pub fn asks(&self, id: &str) -> bool {
        self.state.lock().pending.contains_key(id)
    }

    /// Changes when there may be questions that nobody asks any more.
    pub fn withdrawn(&self) -> watch::Receiver<u64> {
        self.withdrawn.subscribe()
    }

    /// The extension does not want to know any more.
    pub fn cancel(&self, token: u64) {
        self.withdraw(|_, pending| pending.token == Some(token));
    }

    fn withdraw(&self, which: impl Fn(&str, &Pending) -> bool) {
        let withdrawn = {
            let pending = &mut self.state.lock().pending;
            let before = pending.len();
            pending.retain(|id, pending| !which(id, pending));
            pending.len() < before
        };
        if withdrawn {
            self.withdrawn.send_modify(|times| *times += 1);
        }
    }

    /// Nobody is there any more: what waits for an answer, and whatever is asked
    /// from now on, is cancelled.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.withdraw(|_, _| true);
    }
}

/// Also when the extension that asked is dropped.
struct Forget<'a> {
    broker: &'a UiBroker,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.broker.withdraw(|id, _| id == self.id);
    }
}
