//! Reloads settings, models and extensions.

use super::IdleGuard;
use crate::AgentSession;
use crate::error::{CommandError, ErrorCode};
use crate::prompt::resources::DiscoveredPaths;
use crate::startup::find_extensions;
use crate::trust_question::TrustMoment;
use pi_extensions::LoadReport;

const BUSY_RELOAD: &str = "Wait for the current response to finish before reloading";

impl AgentSession {
    /// Reads settings, models and extensions again, after releasing the extension `again` from the
    /// quarantine. An extension whose files do not load goes on with its last good version.
    pub(crate) async fn reload_with(
        &self,
        again: Option<&str>,
    ) -> Result<LoadReport, CommandError> {
        let _switch_guard = self.switcher.lock.lock().await;
        self.switcher.protected_changes.lock().ask_again();
        self.reload_locked(again).await
    }

    /// Does what [`Self::reload_with`] does, for a caller that holds the lock of the switcher.
    pub(crate) async fn reload_locked(
        &self,
        again: Option<&str>,
    ) -> Result<LoadReport, CommandError> {
        let idle = self
            .try_acquire_idle()
            .ok_or_else(|| CommandError::new(ErrorCode::Busy, BUSY_RELOAD))?;
        if let Some(name) = again {
            let released = self.extensions.release(name);
            released.map_err(|error| CommandError::new(ErrorCode::InvalidName, error))?;
        }
        self.guard_changes().await?;
        self.resolve_trust(&self.cwd(), TrustMoment::Later).await;
        let before = self.tools.default_names();
        let model = self.provided_model();
        let paths = self.paths();
        self.settings.reload_project(&paths);
        self.add_settings_warnings("reload");
        self.apply_settings();
        self.models.reload();
        let progress = self.progress_to_warnings();
        let paths = self.install_missing(paths, progress).await;
        let (found, problems) = find_extensions(&self.config, &self.settings, &paths);
        self.pending_warnings.lock().extend(problems);
        self.load_prompt_resources(&paths, &DiscoveredPaths::default());
        let report = self.extensions.reload(found).await;
        let last = std::mem::replace(&mut *self.last_load.lock(), report.clone());
        self.report_failures(&report, &last).await;
        self.apply_watch_setting();
        self.refresh_model();
        self.report_name_conflicts().await;
        self.tools.refresh_all(&before);
        drop(idle);
        self.emit_session_start("reload", None).await;
        // Handlers of `session_start` may register the provider.
        self.drop_missing_model(model).await;
        self.extensions.release_replaced();
        self.emit_warnings().await;
        Ok(report)
    }

    /// Returns `None` if a run or a summary is active. No run begins before the guard is dropped.
    fn try_acquire_idle(&self) -> Option<IdleGuard<'_>> {
        let mut state = self.state.lock();
        let idle = !state.work.is_working();
        state.work.is_replacing = idle;
        // A guard that is dropped here would deadlock on the state lock.
        idle.then(|| IdleGuard(self))
    }
}
