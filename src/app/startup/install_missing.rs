//! Installs missing packages before extensions are loaded, and reports the progress.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use crate::{AgentSession, Mode};
use pi_packages::{Output, Packages};
use pi_resources::discovery::is_local_source;
use pi_resources::paths::Paths;
use pi_resources::settings::SettingsScope;
use pi_resources::trust;

/// Limit for one run of npm or git, which delays the start.
const PACKAGE_COMMAND_TIMEOUT: Duration = Duration::from_secs(300);

/// Receives descriptions of what is being installed.
pub type Progress = Arc<dyn Fn(&str) + Send + Sync>;

impl AgentSession {
    /// Installs the packages that the settings and the command line name and that are missing.
    /// Returns the session's locations, read again if packages were looked at: the project may have
    /// changed meanwhile.
    pub(crate) async fn install_missing(&self, paths: Paths, progress: Progress) -> Paths {
        let named = &self.config.extensions;
        let scopes = [SettingsScope::Global, SettingsScope::Project];
        let wanted = |scope| !self.settings.values_of(scope).packages.is_empty();
        let any = scopes.into_iter().any(wanted) || named.iter().any(|s| !is_local_source(s));
        if !any || !self.config.fetch_packages {
            return paths;
        }
        let (settings, named) = (self.settings.clone(), named.clone());
        let work = tokio::task::spawn_blocking(move || {
            let output = Output::Silent(PACKAGE_COMMAND_TIMEOUT);
            let packages = Packages::new(&paths, &settings, output, &*progress);
            match packages.is_complete(&named) {
                true => Vec::new(),
                false => {
                    let mut problems = packages.install_missing(&named);
                    let accepted = trust::accept_packages(&paths);
                    problems.extend(accepted.err().map(|error| error.to_string()));
                    problems
                }
            }
        });
        let problems = work.await;
        let problems = problems.unwrap_or_else(|error| vec![error.to_string()]);
        self.pending_warnings.lock().extend(problems);
        self.paths()
    }

    /// Returns where progress after the start goes: into the warnings if the mode draws on the
    /// screen.
    pub(crate) fn progress_to_warnings(&self) -> Progress {
        if self.config.mode != Mode::Line {
            return self.config.progress.clone();
        }
        let session = self.arc();
        Arc::new(move |text: &str| session.pending_warnings.lock().push(text.to_owned()))
    }
}

/// Returns whether `PI_OFFLINE` is set, which `--offline` does.
pub fn is_offline() -> bool {
    let value = env::var("PI_OFFLINE").unwrap_or_default();
    ["1", "true", "yes"].contains(&value.to_lowercase().as_str())
}
