//! Recovers from a stopped isolate: loads all extensions again except the one whose code
//! ran.

use std::path::Path;
use std::sync::Arc;

use pi_base::active_clock;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Extensions;
use super::generation::Generation;
use super::quarantine::{LoadedFiles, release_hint};
use super::reports::Stopped;
use pi_resources::discovery::extensions::ExtensionPath;

impl Extensions {
    /// Returns the current generation, or the one that replaces a stopped one. Events that
    /// happen meanwhile, above all those that a gate may block, must neither skip the
    /// extensions nor reach a handler before its `session_start`.
    pub(super) async fn wait_ready(&self, cancel: &CancellationToken) -> Arc<Generation> {
        let deadline = active_clock::sleep(self.current().timeouts.load);
        tokio::pin!(deadline);
        loop {
            let installed = self.installed.notified();
            let current = self.current();
            let is_replacing = self.is_replacing();
            let is_ready = !current.is_broken() && !self.is_starting(&current) && !is_replacing;
            if is_ready || self.is_closing() {
                return current;
            }
            tokio::select! {
                () = installed => {}
                () = cancel.cancelled() => return current,
                // A reload ends by itself: each load has a limit.
                _ = &mut deadline, if !is_replacing => return current,
            }
        }
    }

    pub(super) async fn recover(self: &Arc<Self>, stopped: Stopped) {
        let _replacing = self.replace_lock.lock().await;
        let old = self.current();
        // The code that loads it reports the failure.
        if old.host.generation() < stopped.generation {
            return self.reports.stops.mark_reported();
        }
        // Another generation, perhaps with the same extension, has replaced it.
        if old.host.generation() != stopped.generation {
            if stopped.was_installed {
                let ending = stopped.ending;
                let sentence = format!("The extension was {ending} while it was replaced");
                let error = ending.to_error(stopped.path, stopped.attribution.what, sentence);
                self.show_error(error).await;
            }
            return self.reports.stops.mark_reported();
        }
        let paths = self.paths.lock().clone();
        let attribution = self.quarantine_offender(&old, &paths, stopped).await;
        self.reports.stops.mark_reported();
        if self.is_closing() {
            return;
        }
        let mut plan = self.plan(paths, &old, Some(Path::new(&attribution))).await;
        let (generation, report) = self.build(&mut plan).await;
        if self.is_closing() {
            return;
        }
        *self.session_starting.lock() = Some(generation.host.generation());
        // The old isolate is gone already.
        self.install(generation.clone()).host.retire();
        self.clear_ui();
        for (path, error) in report.failed.into_iter().chain(report.kept) {
            // The user knows of extensions that failed before.
            if path != attribution && !old.host.registry.lock().has_failed(&path) {
                self.show_error(error.to_error(path)).await;
            }
        }
        if let Some(actions) = self.actions() {
            actions.tools_changed();
            actions.models_changed();
        }
        // The next event may wait for a dialog of a handler.
        let this = self.clone();
        tokio::spawn(async move { this.emit_session_start(&generation).await });
    }

    /// Emits `session_start` to the generation that replaces a stopped one.
    async fn emit_session_start(&self, generation: &Arc<Generation>) {
        // A newer generation gets its own `session_start`.
        if Arc::ptr_eq(generation, &self.current()) {
            let event = [("reason".to_string(), json!("reload"))];
            let event = event.into_iter().collect();
            let cancel = CancellationToken::new();
            let emitted = generation
                .dispatch("session_start", event, None, &cancel)
                .await;
            for error in emitted.errors {
                self.show_error(error).await;
            }
        }
        let number = generation.host.generation();
        self.session_starting
            .lock()
            .take_if(|emitted| *emitted == number);
        self.installed.notify_waiters();
    }

    fn is_starting(&self, generation: &Generation) -> bool {
        *self.session_starting.lock() == Some(generation.host.generation())
    }

    /// Quarantines the extension, reports that, and returns its path.
    async fn quarantine_offender(
        &self,
        old: &Generation,
        paths: &[ExtensionPath],
        stopped: Stopped,
    ) -> String {
        let (attribution, ending, path) = (stopped.attribution, stopped.ending, stopped.path);
        if let Some(found) = paths.get(attribution.extension as usize) {
            let loaded_files = LoadedFiles::for_extension(&old.host, attribution.extension);
            self.quarantine
                .add(&found.path, loaded_files, ending.to_string());
        }
        let rest = match self.is_closing() {
            true => "",
            false => ". The others are loaded again",
        };
        let sentence = format!(
            "The extension was {ending} and quarantined: {}{rest}",
            release_hint(Path::new(&path))
        );
        let error = ending.to_error(path.clone(), attribution.what, sentence);
        self.show_error(error).await;
        path
    }
}
