//! How a set of extensions goes: questions are closed, they get their last word, and
//! what they hold ends with their isolate.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Extensions;
use super::generation::Generation;
use crate::extensions::events::table;

/// How long the end waits until the user was told who brought the isolate down.
const LAST_NEWS: Duration = Duration::from_secs(1);

impl Extensions {
    /// The session ends: whatever waits for the user is told that nobody answers,
    /// and so is whoever asks from now on.
    pub fn close_dialogs(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.ui.close();
    }

    /// The program ends with `code`: if by a signal, whoever listens on `process` is told first,
    /// and may end it at once. Then nobody is told anything but `exit`.
    pub async fn signalled(&self, code: u8) -> bool {
        let current = self.current();
        for error in current.signalled(code).await {
            self.show(error).await;
        }
        current.host.exit_code().is_some()
    }

    /// `session_shutdown` for a set that had its `session_start`, with its own deadline.
    /// What comes after it is stale. `target` is the file of the session that takes the
    /// place of this one. After an abort the handlers are told, and hardly waited for.
    pub async fn shut_down(&self, reason: &str, target: Option<String>) {
        // One that was brought down just now hears of nothing; what takes its place does.
        let cancel = self.patience.lock().clone();
        let generation = self.living(&cancel).await;
        // A process that hears nothing is found out meanwhile, not when its time is over.
        let found_out = async {
            generation.answers().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.say_goodbye(&generation, reason, target) => {}
            () = found_out => {}
        }
    }

    pub(super) async fn say_goodbye(
        &self,
        generation: &Generation,
        reason: &str,
        target: Option<String>,
    ) {
        let cancel = self.patience.lock().child_token();
        generation.host.begin_shutdown();
        // Nor does it hear of the end twice.
        if !generation.greeted.swap(false, Ordering::Relaxed) {
            return;
        }
        // Handlers of earlier events finish even if nobody hears of the end.
        let earlier = async {
            let limit = generation.limits.shutdown;
            let _ = tokio::time::timeout(limit, generation.greeting.lock()).await;
            let _ = tokio::time::timeout(limit, generation.wait_drained()).await;
        };
        tokio::select! {
            () = earlier => {}
            () = cancel.cancelled() => {}
        }
        let event = table::shutdown_event(reason, target);
        let emission = generation.emit("session_shutdown", event, None, &cancel);
        tokio::pin!(emission);
        let limit = generation.limits.shutdown * 2;
        let emission = match tokio::time::timeout(limit, &mut emission).await {
            Ok(emission) => emission,
            // Many handlers, or a question to the user.
            Err(_) => {
                cancel.cancel();
                emission.await
            }
        };
        for error in emission.errors {
            self.show(error).await;
        }
    }

    /// Ends everything that extensions hold: a second after `exit` listeners at most, which
    /// have the time of a shutdown. `code` is the program's; gives the one that it is to have.
    pub async fn stop(&self, code: u8) -> u8 {
        self.close_dialogs();
        let _ = tokio::time::timeout(LAST_NEWS, self.reports.stops.wait_reported()).await;
        let mut all = std::mem::take(&mut *self.replaced.lock());
        let let_go = std::mem::take(&mut *self.let_go.lock());
        all.extend(let_go.iter().filter_map(Weak::upgrade));
        let current = self.current();
        let limit = current.limits.shutdown;
        all.push(current.clone());
        let code = current.host.exit_code().unwrap_or(code);
        let ends = all.iter().map(|generation| generation.end(code));
        let thrown = futures::future::join_all(ends).await;
        for error in thrown.into_iter().flatten() {
            self.show(error).await;
        }
        self.farewells.close();
        let _ = tokio::time::timeout(limit, self.farewells.wait()).await;
        current.ended().await;
        current.host.exit_code().unwrap_or(code)
    }
}
