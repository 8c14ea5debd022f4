//! When an isolate is gone: everything is loaded again but the extension whose code
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
    /// The set that is there, or that takes the place of one which was brought down:
    /// what happens meanwhile, a question to a gate above all, must not go past the
    /// extensions, nor come to one that does not know its rules yet.
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
        // Whoever loads it tells of it.
        if old.host.generation() < stopped.generation {
            return self.reports.stops.mark_reported();
        }
        // It was replaced meanwhile, perhaps by what loads the same.
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
        // Its isolate is gone already.
        self.install(generation.clone()).host.retire();
        self.clear_shown();
        for (path, error) in report.failed {
            // Of those that were not there before, the user knows.
            if path != attribution && !old.host.registry.lock().has_failed(&path) {
                self.show(error.tell_of(path)).await;
            }
        }
        if let Some(actions) = self.actions() {
            actions.tools_changed();
            actions.models_changed();
        }
        // What comes next may be waiting for an answer to a handler's question.
        let this = self.clone();
        tokio::spawn(async move { this.greet(&generation).await });
    }

    /// `session_start`, for those that took the place of a set which was brought down.
    async fn greet(&self, generation: &Arc<Generation>) {
        // Whoever took its place greets the others.
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

    /// Tells the user, too. Returns the path of the culprit.
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
