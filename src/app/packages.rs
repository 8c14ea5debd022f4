//! Packages that are wanted and missing are fetched before extensions load, and
//! what they bring is told before it runs.

use std::env;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::AgentSession;
use crate::resources::discovery::is_local_source;
use crate::resources::packages::{Output, Packages};
use crate::resources::settings::SettingsScope;

/// For one run of npm or git: whoever starts pi waits for it.
const LIMIT: Duration = Duration::from_secs(300);

/// Hears what is being done.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

impl AgentSession {
    pub(super) async fn install_missing(&self, cwd: &Path, progress: Progress) {
        let named = &self.config.extensions;
        let scopes = [SettingsScope::Global, SettingsScope::Project];
        let wanted = |scope| !self.settings.values_of(scope).packages.is_empty();
        let any = scopes.into_iter().any(wanted) || named.iter().any(|s| !is_local_source(s));
        if !any || !self.config.fetch_packages {
            return;
        }
        let paths = self.config.paths.with_cwd(cwd);
        let (settings, named) = (self.settings.clone(), named.clone());
        let work = tokio::task::spawn_blocking(move || {
            let output = Output::Silent(LIMIT);
            let packages = Packages::new(&paths, &settings, output, &*progress);
            match packages.is_complete(&named) {
                true => Vec::new(),
                false => packages.install_missing(&named),
            }
        });
        let problems = work.await;
        let problems = problems.unwrap_or_else(|error| vec![error.to_string()]);
        self.notes.lock().extend(problems);
    }

    /// Later than the start. Where the screen belongs to the mode, it shows the
    /// notes.
    pub(super) fn noted(&self) -> Progress {
        if self.config.mode != "interactive" {
            return self.config.progress.clone();
        }
        let session = self.arc();
        Arc::new(move |text: &str| session.notes.lock().push(text.to_owned()))
    }
}

/// `PI_OFFLINE`, which `--offline` sets.
pub fn is_offline() -> bool {
    let value = env::var("PI_OFFLINE").unwrap_or_default();
    ["1", "true", "yes"].contains(&value.to_lowercase().as_str())
}
