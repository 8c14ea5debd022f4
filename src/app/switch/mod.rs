//! Replaces the current session by another one: ask extensions, end the run, shut the extensions
//! down, switch, load them again, emit `session_start`.

pub(crate) mod background;
pub(crate) mod fork;
pub(crate) mod protected;
mod reload;
mod tool_times;
mod tree;
mod watch;

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::DropGuard;

use crate::AgentSession;
use crate::cancel::ResettableCancel;
use crate::error::{CommandError, ErrorCode};
use crate::prompt::resources::DiscoveredPaths;
use crate::run::json_object;
use crate::session::spawn_started;
use crate::startup::find_extensions;
use crate::switch::background::{SwitchTarget, is_same_file};
use crate::trust_question::TrustMoment;
use pi_extensions::{Emission, LoadReport};
use pi_resources::discovery::NamedPath;
use pi_session::{NewSession, Session};

/// The exclusive right to replace the session or its extensions.
#[derive(Default)]
pub(crate) struct Switcher {
    /// Locked by one replacement of the session, or one reload, at a time.
    pub lock: tokio::sync::Mutex<()>,
    /// Cancelled by an abort and when another session replaces this one, so that a message meant
    /// for this session does not reach the next.
    pub cancel: ResettableCancel,
    /// Present while files of extensions are watched.
    watching: Mutex<Option<DropGuard>>,
    pub protected_changes: Mutex<protected::ProtectedChanges>,
}

impl AgentSession {
    /// Switches to a new, empty session. Returns `false` if an extension vetoed it.
    pub(crate) async fn new_session(&self, parent: Option<PathBuf>) -> Result<bool, CommandError> {
        let _switch_guard = self.switcher.lock.lock().await;
        if !self.allows_new_session().await {
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

    /// Emits `session_before_switch` for a new session. Returns whether no extension vetoed it.
    pub(crate) async fn allows_new_session(&self) -> bool {
        let event = json_object(json!({ "reason": "new" }));
        !self.is_vetoed("session_before_switch", event).await
    }

    /// Switches to the session in a file. A missing file becomes a new session at that path. `cwd`
    /// overrides the working folder of the file. Returns `false` if an extension vetoed it.
    pub(crate) async fn switch_session(
        &self,
        path: &Path,
        cwd: Option<&Path>,
    ) -> Result<bool, CommandError> {
        if path.as_os_str().is_empty() {
            let text = "The path of the session is empty";
            return Err(CommandError::new(ErrorCode::InvalidName, text));
        }
        let _switch_guard = self.switcher.lock.lock().await;
        let target = path.display().to_string();
        let event = json_object(json!({ "reason": "resume", "targetSessionFile": target }));
        if self.is_vetoed("session_before_switch", event).await {
            return Ok(false);
        }
        self.resume_session(path, cwd).await?;
        Ok(true)
    }

    /// Returns whether `path` is the file of the current session.
    pub(crate) fn is_open(&self, path: &Path) -> bool {
        let own = self.state.lock().session.path().map(Path::to_owned);
        own.is_some_and(|own| is_same_file(&own, path))
    }

    /// Reports extensions that did not load. A file that is no extension is reported once, and not
    /// if it was none in the load `before`.
    pub(crate) async fn report_failures(&self, report: &LoadReport, before: &LoadReport) {
        for failed in &report.failed {
            let (path, error) = failed;
            if !error.lacks_factory() || !before.failed.contains(failed) {
                self.report_error(error.to_error(path)).await;
            }
        }
        for (path, error) in &report.kept {
            let mut error = error.to_error(path);
            error.error += "; the last good version of the extension goes on";
            self.report_error(error).await;
        }
    }

    /// Emits `session_start` and `resources_discover`.
    pub(crate) async fn emit_session_start(&self, reason: &str, previous: Option<String>) {
        let mut event = json_object(json!({ "reason": reason }));
        if let Some(previous) = previous {
            event.insert("previousSessionFile".into(), previous.into());
        }
        let (done, emitted) = oneshot::channel();
        let session = self.arc();
        // Runs to its end also if the caller is cancelled, so that all handlers get the event.
        spawn_started(&self.handle, async move {
            session.emit_to_handlers("session_start", event).await;
            let _ = done.send(());
        });
        let _ = emitted.await;
        let reason = match reason {
            "reload" => "reload",
            _ => "startup",
        };
        let event =
            json_object(json!({ "cwd": self.cwd().display().to_string(), "reason": reason }));
        let discovered = self.emit_to_handlers("resources_discover", event).await;
        self.add_resources(discovered).await;
    }

    async fn add_resources(&self, discovered: Emission) {
        let mut added = DiscoveredPaths::default();
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
            self.load_prompt_resources(&self.paths(), &added);
            self.tools.rebuild_system_prompt();
        }
    }

    pub(crate) async fn replace(&self, target: impl Into<SwitchTarget>, reason: &str) {
        let target = target.into();
        let idle = self.acquire_idle().await;
        self.store_deferred_user_commands().await;
        let (path, cwd) = self.state.lock().path_and_cwd(&target);
        if let Err(error) = self.guard_changes().await {
            self.pending_warnings.lock().push(error.to_string());
        }
        self.resolve_trust(&cwd, TrustMoment::Later).await;
        let target_file = path.map(|path| path.display().to_string());
        self.extensions.shut_down(reason, target_file).await;
        self.append_unsaved().await;
        let _lease;
        let queued: (Vec<String>, Vec<String>);
        let previous = {
            let mut state = self.state.lock();
            let previous = state.session.path().map(|path| path.display().to_string());
            _lease = state.switch_to(target);
            state.lock_used.send_replace(());
            self.switcher.cancel.cancel();
            state.context = state.session.build_context().messages;
            queued = state.prompts.clear();
            state.retry.attempt = 0;
            state.compaction.compacted_for_overflow = false;
            previous
        };
        if queued != Default::default() {
            self.queue_changed().await;
        }
        if let Err(error) = std::env::set_current_dir(&cwd) {
            let error = format!("cannot work in {}: {error}", cwd.display());
            self.report("<session>", "chdir", error).await;
        }
        let paths = self.paths();
        self.settings.switch_project(&paths);
        self.add_settings_warnings("session");
        self.apply_settings();
        let progress = self.progress_to_warnings();
        let paths = self.install_missing(paths, progress).await;
        let (found, problems) = find_extensions(&self.config, &self.settings, &paths);
        self.pending_warnings.lock().extend(problems);
        self.load_prompt_resources(&paths, &DiscoveredPaths::default());
        self.name_session(&cwd);
        let report = self.extensions.restart(found).await;
        let before = std::mem::replace(&mut *self.last_load.lock(), report.clone());
        self.report_failures(&report, &before).await;
        self.report_name_conflicts().await;
        self.apply_watch_setting();
        // Extensions may provide the model.
        if let Err(error) = self.choose_model() {
            self.report("<session>", "model", error).await;
        }
        self.tools.activate_defaults();
        // Messages of `session_start` handlers begin a run, as at the start of the program.
        drop(idle);
        self.emit_session_start(reason, previous).await;
        self.extensions.release_replaced();
        self.emit_warnings().await;
    }

    /// Emits an event that handlers can veto. An abort counts as a veto.
    pub(crate) async fn is_vetoed(&self, name: &'static str, event: Map<String, Value>) -> bool {
        let emission = self.emit_to_handlers(name, event).await;
        emission.aborted || emission.is_set("cancel")
    }

    /// Ends the run. No other one begins before the guard is dropped.
    pub(crate) async fn acquire_idle(&self) -> IdleGuard<'_> {
        // Messages that wait for the end of a summary belong to the old session.
        self.switcher.cancel.cancel();
        // Set before the run ends: handlers of `agent_end` could begin another run each time.
        self.state.lock().work.is_replacing = true;
        let idle = IdleGuard(self);
        loop {
            let run = self.run_id();
            self.abort_run();
            self.abort_summary();
            self.wait_work_end(run).await;
            if !self.is_working() {
                return idle;
            }
        }
    }

    async fn emit_warnings(&self) {
        for note in self.take_warnings() {
            self.warn("<session>", "warning", note).await;
        }
    }

    /// Returns the folder for new sessions of `cwd`: the configured one, or that of the current
    /// session. `None` if the current session has no file.
    pub(crate) fn session_dir(&self, cwd: &Path) -> Option<PathBuf> {
        let current_dir = self.state.lock().session.path()?.parent()?.to_owned();
        let chosen = self.config.session_dir.is_some()
            || !self
                .settings
                .values()
                .session_dir
                .as_deref()
                .unwrap_or_default()
                .is_empty();
        Some(match chosen {
            true => crate::startup::session_dir(&self.config, &self.settings, cwd),
            false => current_dir,
        })
    }
}

/// Keeps runs from beginning until it is dropped.
pub(crate) struct IdleGuard<'a>(&'a AgentSession);

impl Drop for IdleGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.work.is_replacing = false;
        state.lock_used.send_replace(());
    }
}
