//! Recovers from a stopped isolate: loads all extensions again except the one whose code
//! ran.

use pi_base::active_clock;
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Extensions;
use super::generation::Generation;
use super::quarantine::{MadeOf, way_back};
use super::reports::Stopped;
use crate::resources::extension_paths::ExtensionPath;

impl Extensions {
    /// Returns the current generation, or the one that replaces a stopped one. Events that
    /// happen meanwhile, above all those that a gate may block, must neither skip the
    /// extensions nor reach a handler before its `session_start`.
    pub(super) async fn living(&self, cancel: &CancellationToken) -> Arc<Generation> {
        let patience = active_clock::sleep(self.current().limits.load);
        tokio::pin!(patience);
        loop {
            let installed = self.installed.notified();
            let current = self.current();
            let is_ready = !current.is_broken() && !self.is_greeting(&current);
            if is_ready || self.is_closing() {
                return current;
            }
            tokio::select! {
                () = installed => {}
                () = cancel.cancelled() => return current,
                _ = &mut patience => return current,
            }
        }
    }

    pub(super) async fn recover(self: &Arc<Self>, stopped: Stopped) {
        let _changing = self.changing.lock().await;
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
                self.show(error).await;
            }
            return self.reports.stops.mark_reported();
        }
        let paths = self.paths.lock().clone();
        let attribution = self.set_aside(&old, &paths, stopped).await;
        self.reports.stops.mark_reported();
        if self.is_closing() {
            return;
        }
        let (generation, report) = self.build(&paths).await;
        if self.is_closing() {
            return;
        }
        *self.greeting.lock() = Some(generation.host.generation());
        // The old isolate is gone already.
        self.install(generation.clone()).host.retire();
        self.clear_shown();
        for (path, error) in report.failed {
            // The user knows of extensions that failed before.
            if path != attribution && !old.host.registry.lock().has_failed(&path) {
                self.show(error.tell_of(path)).await;
            }
        }
        if let Some(actions) = self.actions() {
            actions.tools_changed();
            actions.models_changed();
        }
        // The next event may wait for a dialog of a handler.
        let this = self.clone();
        tokio::spawn(async move { this.greet(&generation).await });
    }

    /// Emits `session_start` to the generation that replaces a stopped one.
    async fn greet(&self, generation: &Arc<Generation>) {
        // A newer generation gets its own `session_start`.
        if Arc::ptr_eq(generation, &self.current()) {
            let event = [("reason".to_string(), json!("reload"))];
            let event = event.into_iter().collect();
            let cancel = CancellationToken::new();
            let greeted = generation.emit("session_start", event, None, &cancel).await;
            for error in greeted.errors {
                self.show(error).await;
            }
        }
        let number = generation.host.generation();
        self.greeting.lock().take_if(|greeted| *greeted == number);
        self.installed.notify_waiters();
    }

    fn is_greeting(&self, generation: &Generation) -> bool {
        *self.greeting.lock() == Some(generation.host.generation())
    }

    /// Quarantines the extension, reports that, and returns its path.
    async fn set_aside(
        &self,
        old: &Generation,
        paths: &[ExtensionPath],
        stopped: Stopped,
    ) -> String {
        let (attribution, ending, path) = (stopped.attribution, stopped.ending, stopped.path);
        if let Some(found) = paths.get(attribution.extension as usize) {
            let made_of = MadeOf::of(&old.host, attribution.extension);
            self.quarantine
                .add(&found.path, made_of, ending.to_string());
        }
        let rest = match self.is_closing() {
            true => "",
            false => ". The others are loaded again",
        };
        let sentence = format!(
            "The extension was {ending} and set aside: {}{rest}",
            way_back(Path::new(&path))
        );
        let error = ending.to_error(path.clone(), attribution.what, sentence);
        self.show(error).await;
        path
    }
}
