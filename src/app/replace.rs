//! Putting another session, or newly loaded extensions, in the place of what is
//! there: ask, prepare, say good-bye, swap, greet.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::AgentSession;
use super::left::{Next, same};
use super::refusal::{ErrorCode, Refusal};
use super::run::object;
use super::session::begin;
use super::start::find_extensions;
use super::texts::Added;
use crate::extensions::{Emission, LoadReport, ineffective_limits};
use crate::resources::discovery::NamedPath;
use crate::session::{NewSession, Session};

const RELOAD_LATER: &str = "Wait for the current response to finish before reloading";

impl AgentSession {
    /// A new, empty session. `false` if an extension vetoed.
    pub async fn new_session(&self, parent: Option<PathBuf>) -> Result<bool, Refusal> {
        let _one = self.replacing.lock().await;
        if !self.may_begin().await {
            return Ok(false);
        }
        let new = NewSession {
            parent_session: parent.filter(|parent| !parent.as_os_str().is_empty()),
            ..NewSession::default()
        };
        let cwd = self.cwd();
        let session = match self.session_dir(&cwd) {
            Some(dir) => Session::create(&dir, &cwd, new),
            None => Session::in_memory_with(&cwd, new),
        };
        self.replace(session, "new").await;
        Ok(true)
    }

    /// Whether no extension objects to a new session.
    pub(super) async fn may_begin(&self) -> bool {
        let event = object(json!({ "reason": "new" }));
        !self.is_vetoed("session_before_switch", event).await
    }

    /// Another session's file; a path without a file becomes a new session there.
    /// `cwd` is where it goes on, if not where the file says.
    pub async fn switch_session(&self, path: &Path, cwd: Option<&Path>) -> Result<bool, Refusal> {
        if path.as_os_str().is_empty() {
            let text = "The path of the session is empty";
            return Err(Refusal::new(ErrorCode::InvalidName, text));
        }
        let _one = self.replacing.lock().await;
        let target = path.display().to_string();
        let event = object(json!({ "reason": "resume", "targetSessionFile": target }));
        if self.is_vetoed("session_before_switch", event).await {
            return Ok(false);
        }
        self.go_on_with(path, cwd).await?;
        Ok(true)
    }

    /// Whether it is this session's own file.
    pub(super) fn is_open(&self, path: &Path) -> bool {
        let own = self.state.lock().session.path().map(Path::to_owned);
        own.is_some_and(|own| same(&own, path))
    }

    /// Settings, models and extensions as they are on the disk now. What runs
    /// stays if one of its extensions does not load any more.
    pub async fn reload(&self) -> Result<LoadReport, Refusal> {
        self.reload_with(None).await
    }

    /// [`Self::reload`], and an extension that was set aside is let in again.
    pub async fn reload_with(&self, again: Option<&str>) -> Result<LoadReport, Refusal> {
        let _one = self.replacing.lock().await;
        let idle = self
            .keep_idle()
            .ok_or_else(|| Refusal::new(ErrorCode::Busy, RELOAD_LATER))?;
        if let Some(name) = again {
            let released = self.extensions.release(name);
            released.map_err(|error| Refusal::new(ErrorCode::InvalidName, error))?;
        }
        let before = self.default_tools();
        self.settings.reload();
        self.note_settings("reload");
        let limits = ineffective_limits(&self.settings.values());
        self.notes.lock().extend(limits);
        self.extensions.set_allowance(&self.settings);
        self.state.lock().auto_compaction = self.settings.values().compaction.enabled;
        self.models.reload();
        self.install_missing(&self.cwd(), self.noted()).await;
        let paths = find_extensions(&self.config, &self.settings, &self.cwd());
        self.notes.lock().extend(paths.1);
        self.load_texts(&self.cwd(), &Added::default());
        let report = self.extensions.reload(paths.0).await;
        self.report_failures(&report).await;
        *self.loaded.lock() = report.clone();
        self.heed_watch_setting();
        self.refresh_model();
        if !report.kept_old {
            self.report_clashes().await;
            self.refresh_all_tools(&before);
            drop(idle);
            self.greet("reload", None).await;
        } else {
            self.rebuild_system_prompt();
        }
        self.extensions.release_replaced();
        self.show_notes().await;
        Ok(report)
    }

    pub(super) async fn report_failures(&self, report: &LoadReport) {
        for (path, error) in &report.failed {
            self.report_error(error.to_error(path)).await;
        }
    }

    /// `session_start` and `resources_discover`.
    pub(super) async fn greet(&self, reason: &str, previous: Option<String>) {
        let mut event = object(json!({ "reason": reason }));
        if let Some(previous) = previous {
            event.insert("previousSessionFile".into(), previous.into());
        }
        let (done, greeted) = oneshot::channel();
        let session = self.arc();
        // Also when nobody waits any more: who has heard of it in part hears all of it.
        begin(&self.handle, async move {
            session.emit("session_start", event).await;
            let _ = done.send(());
        });
        let _ = greeted.await;
        let reason = match reason {
            "reload" => "reload",
            _ => "startup",
        };
        let event = object(json!({ "cwd": self.cwd().display().to_string(), "reason": reason }));
        let discovered = self.emit("resources_discover", event).await;
        self.add_resources(discovered).await;
    }

    async fn add_resources(&self, discovered: Emission) {
        let mut added = Added::default();
        for (member, extension, paths) in discovered.collected {
            let extension = self.extensions.path_of(extension);
            let paths = match serde_json::from_value::<Vec<String>>(paths) {
                Ok(paths) => paths,
                Err(error) => {
                    let error = format!("{member} must be an array of paths: {error}");
                    self.report(&extension, "resources_discover", error).await;
                    continue;
                }
            };
            let paths = paths.into_iter().map(|path| NamedPath {
                path,
                extension: Some(extension.clone()),
            });
            match member {
                "skillPaths" => added.skills.extend(paths),
                "promptPaths" => added.prompts.extend(paths),
                _ => added.themes.extend(paths),
            }
        }
        if !added.skills.is_empty() || !added.prompts.is_empty() || !added.themes.is_empty() {
            self.load_texts(&self.cwd(), &added);
            self.rebuild_system_prompt();
        }
    }

    pub(super) async fn replace(&self, next: impl Into<Next>, reason: &str) {
        let next = next.into();
        let idle = self.take_over().await;
        self.flush_bash().await;
        let (path, cwd) = self.state.lock().whereabouts(&next);
        let target = path.map(|path| path.display().to_string());
        self.extensions.shut_down(reason, target).await;
        self.flush_unsaved().await;
        let _stay;
        let queued: (Vec<String>, Vec<String>);
        let previous = {
            let mut state = self.state.lock();
            let previous = state.session.path().map(|path| path.display().to_string());
            _stay = state.enter(next);
            state.written.send_replace(());
            std::mem::take(&mut *self.here.lock()).cancel();
            state.context = state.session.build_context().messages;
            queued = state.queues.texts();
            state.queues.clear();
            state.owed = false;
            state.next_turn.clear();
            state.attempt = 0;
            state.overflow_recovered = false;
            previous
        };
        if queued != Default::default() {
            self.queue_changed().await;
        }
        if let Err(error) = std::env::set_current_dir(&cwd) {
            let error = format!("cannot work in {}: {error}", cwd.display());
            self.report("<session>", "chdir", error).await;
        }
        self.settings
            .switch_project(&self.config.paths.with_cwd(&cwd));
        self.note_settings("session");
        self.extensions.set_allowance(&self.settings);
        self.state.lock().auto_compaction = self.settings.values().compaction.enabled;
        self.install_missing(&cwd, self.noted()).await;
        let paths = find_extensions(&self.config, &self.settings, &cwd);
        self.notes.lock().extend(paths.1);
        self.load_texts(&cwd, &Added::default());
        self.name_session(&cwd);
        let report = self.extensions.restart(paths.0).await;
        self.report_failures(&report).await;
        self.report_clashes().await;
        *self.loaded.lock() = report;
        self.heed_watch_setting();
        // Its provider may be an extension's.
        if let Err(error) = self.choose_model() {
            self.report("<session>", "model", error).await;
        }
        self.offer_default_tools();
        // What handlers of `session_start` want answered is answered, as at the start.
        drop(idle);
        self.greet(reason, previous).await;
        self.extensions.release_replaced();
        self.show_notes().await;
    }

    /// An extension objects, or the user does not want it any more.
    pub(super) async fn is_vetoed(&self, name: &'static str, event: Map<String, Value>) -> bool {
        let asked = self.emit(name, event).await;
        asked.aborted || asked.is_set("cancel")
    }

    /// Ends the run; no other may begin before the guard is dropped.
    pub(super) async fn take_over(&self) -> Idle<'_> {
        // What waits for the summary is not said when it ends.
        std::mem::take(&mut *self.here.lock()).cancel();
        // From here on: a handler of `agent_end` may begin another run each time.
        self.state.lock().replacing = true;
        let idle = Idle(self);
        loop {
            let run = self.run_id();
            self.abort_run();
            self.abort_summary();
            self.wait_over(run).await;
            if !self.is_working() {
                return idle;
            }
        }
    }

    /// No run may begin before the guard is dropped; `None` if one is going on.
    fn keep_idle(&self) -> Option<Idle<'_>> {
        let mut state = self.state.lock();
        let idle = state.run.is_none() && state.summary.is_none();
        state.replacing = idle;
        // One that is made and dropped at once would wait for this lock.
        idle.then(|| Idle(self))
    }

    async fn show_notes(&self) {
        for note in self.take_notes() {
            self.warn("<session>", "warning", note).await;
        }
    }

    /// Where new sessions of `cwd` go: where the user wants them, or beside this one.
    /// `None` if this one lives in memory.
    pub(super) fn session_dir(&self, cwd: &Path) -> Option<PathBuf> {
        let beside = self.state.lock().session.path()?.parent()?.to_owned();
        let chosen = self.config.session_dir.is_some()
            || !self
                .settings
                .values()
                .session_dir
                .as_deref()
                .unwrap_or_default()
                .is_empty();
        Some(match chosen {
            true => super::start::session_dir(&self.config, &self.settings, cwd),
            false => beside,
        })
    }
}

/// The agent is idle and stays so.
pub(super) struct Idle<'a>(&'a AgentSession);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.replacing = false;
        state.written.send_replace(());
    }
}
