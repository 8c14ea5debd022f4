//! Dialogs of extensions that wait for the user. Late answers are ignored.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use super::session_api::SessionApi;
use pi_agent::event::{Event, UiAnswer, UiMethod, UiRequest};

#[derive(Default)]
pub struct DialogBroker {
    state: Mutex<State>,
    /// Counts dialogs that ended without an answer of the user.
    withdrawn: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    pending: HashMap<String, Pending>,
    /// Whether new dialogs are cancelled at once.
    closed: bool,
}

struct Pending {
    /// The extension's number of the dialog.
    token: Option<u64>,
    /// Whether the answer is yes or no.
    is_confirm: bool,
    answer: oneshot::Sender<UiAnswer>,
}

impl DialogBroker {
    /// Opens a dialog and waits for the answer; without a user it is `Cancelled`.
    pub async fn request(
        &self,
        actions: &dyn SessionApi,
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
                is_confirm: matches!(method, UiMethod::Confirm { .. }),
                answer,
            };
            state.pending.insert(id.clone(), pending);
        }
        let mut open = OpenDialog {
            broker: self,
            actions,
            id: &id,
            is_answered: false,
        };
        let request = UiRequest {
            id: id.clone(),
            method,
        };
        let answering = async {
            // A mode that does not take the request must not delay a cancelled dialog.
            tokio::select! {
                biased;
                answer = &mut answered => return answer,
                () = actions.emit(Event::ExtensionUiRequest(request)) => {}
            }
            // JavaScript first continues until it awaits, however quick the answer is, so
            // that handlers of `agent_end` see an idle run.
            tokio::task::yield_now().await;
            answered.await
        };
        let answer = match timeout {
            None => answering.await.ok(),
            Some(timeout) => tokio::time::timeout(timeout, answering)
                .await
                .ok()
                .and_then(Result::ok),
        };
        open.is_answered = answer.is_some();
        answer.unwrap_or(UiAnswer::Cancelled)
    }

    /// Passes on the user's answer. Returns whether the dialog was open.
    pub fn respond(&self, id: &str, answer: UiAnswer) -> bool {
        let Some(pending) = self.state.lock().pending.remove(id) else {
            return false;
        };
        pending.answer.send(answer).is_ok()
    }

    /// Returns whether the dialog is a confirmation.
    pub fn is_confirm(&self, id: &str) -> bool {
        let state = self.state.lock();
        state
            .pending
            .get(id)
            .is_some_and(|pending| pending.is_confirm)
    }

    /// Returns whether the dialog is open.
    pub fn is_open(&self, id: &str) -> bool {
        self.state.lock().pending.contains_key(id)
    }

    /// Changes when dialogs were withdrawn.
    pub fn withdrawn(&self) -> watch::Receiver<u64> {
        self.withdrawn.subscribe()
    }

    /// Withdraws a dialog of an extension.
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

    /// Cancels open dialogs and all later ones.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.withdraw(|_, _| true);
    }
}

/// A dialog that the mode shows. Withdraws it when its future is dropped.
struct OpenDialog<'a> {
    broker: &'a DialogBroker,
    actions: &'a dyn SessionApi,
    id: &'a str,
    is_answered: bool,
}

impl Drop for OpenDialog<'_> {
    fn drop(&mut self) {
        self.broker.withdraw(|id, _| id == self.id);
        if !self.is_answered {
            self.actions.dialog_ended(self.id);
        }
    }
}
