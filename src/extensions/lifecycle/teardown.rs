//! Ends a generation: closes dialogs, emits the last events and stops the isolate.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Extensions;
use super::generation::Generation;
use crate::events::table;
use pi_base::process_tree;

/// How long the end waits until a stop of the isolate is reported. The offender is known after 3 s at
/// most, unless the heap is full.
const REPORT_TIMEOUT: Duration = Duration::from_secs(4);

/// How long child processes of a replaced generation may take to end before the next one is
/// loaded.
const CHILDREN_TIMEOUT: Duration = Duration::from_secs(1);

impl Extensions {
    /// Cancels all open dialogs, and those that are requested from now on.
    pub fn close_dialogs(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.ui.close();
    }

    /// Emits the signal that ends pi with `code` to listeners on `process`. Returns whether
    /// a listener ended pi; only `exit` is emitted then.
    pub async fn emit_signal(&self, code: u8) -> bool {
        let current = self.current();
        for error in current.emit_signal(code).await {
            self.show_error(error).await;
        }
        current.host.exit_code().is_some()
    }

    /// Emits `session_shutdown` if `session_start` was emitted, with its own limit.
    /// Afterwards the generation is stale. `target` is the file of the next session. After
    /// an abort handlers are called with a short limit.
    pub async fn shut_down(&self, reason: &str, target: Option<String>) {
        // A stopped isolate gets no event; its replacement does.
        let cancel = self.wait_cancel.lock().clone();
        let generation = self.wait_ready(&cancel).await;
        // Detects an unresponsive process meanwhile, instead of at the end of the limit.
        let found_out = async {
            generation.wait_responsive().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.emit_shutdown(&generation, reason, target) => {}
            () = found_out => {}
        }
    }

    pub(super) async fn emit_shutdown(
        &self,
        generation: &Generation,
        reason: &str,
        target: Option<String>,
    ) {
        let cancel = self.wait_cancel.lock().child_token();
        generation.host.begin_shutdown();
        // `session_shutdown` is not emitted twice.
        if !generation.session_started.swap(false, Ordering::Relaxed) {
            return;
        }
        // Handlers of earlier events finish, even without handlers of this one.
        let earlier = async {
            let limit = generation.timeouts.shutdown;
            let _ = tokio::time::timeout(limit, generation.session_start_lock.lock()).await;
            let _ = tokio::time::timeout(limit, generation.wait_drained()).await;
        };
        tokio::select! {
            () = earlier => {}
            () = cancel.cancelled() => {}
        }
        let event = table::shutdown_event(reason, target);
        let emission = generation.dispatch("session_shutdown", event, None, &cancel);
        tokio::pin!(emission);
        let limit = generation.timeouts.shutdown * 2;
        let emission = match tokio::time::timeout(limit, &mut emission).await {
            Ok(emission) => emission,
            // There are many handlers, or a dialog is open.
            Err(_) => {
                cancel.cancel();
                emission.await
            }
        };
        for error in emission.errors {
            self.show_error(error).await;
        }
    }

    /// Closes a replaced generation before the next one is loaded: everything that its extensions
    /// hold is released. The isolate ends, unless a stale call is open.
    pub(super) async fn close(&self, old: &Generation) {
        old.close();
        let thrown = match old.host.stale_calls.is_any_open() {
            true => old.release().await,
            false => {
                let thrown = old.end(0).await;
                old.wait_ended().await;
                thrown
            }
        };
        for error in thrown {
            self.show_error(error).await;
        }
        if old.runtime.is_some() {
            process_tree::wait_terminations(CHILDREN_TIMEOUT).await;
        }
    }

    /// Ends everything that extensions hold. Listeners of `exit` have the limit of a
    /// shutdown; the isolate ends a second later at most, and its last reports are shown within
    /// another. Returns the exit code, which is `code` unless a listener has set another.
    pub async fn stop(&self, code: u8) -> u8 {
        self.close_dialogs();
        let _ = tokio::time::timeout(REPORT_TIMEOUT, self.reports.stops.wait_reported()).await;
        let mut all = std::mem::take(&mut *self.replaced.lock());
        let released = std::mem::take(&mut *self.released.lock());
        all.extend(released.iter().filter_map(Weak::upgrade));
        let current = self.current();
        let limit = current.timeouts.shutdown;
        all.push(current.clone());
        let code = current.host.exit_code().unwrap_or(code);
        let ends = all.iter().map(|generation| generation.end(code));
        let thrown = futures::future::join_all(ends).await;
        for error in thrown.into_iter().flatten() {
            self.show_error(error).await;
        }
        self.shutdown_tasks.close();
        let _ = tokio::time::timeout(limit, self.shutdown_tasks.wait()).await;
        current.wait_ended().await;
        current.host.wait_shown().await;
        current.host.exit_code().unwrap_or(code)
    }
}
