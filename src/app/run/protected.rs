//! Tells the user about writes of the model into protected places, or asks about them (setting
//! `protectedPaths`).

use std::path::PathBuf;

use serde_json::Value;

use crate::AgentSession;
use pi_agent::event::{UiAnswer, UiMethod};
use pi_agent::run::Refusal;
use pi_permissions::{BaseFolders, visible_writes};
use pi_resources::paths::Paths;
use pi_resources::settings::{ProtectedPaths, SettingsScope};
use pi_resources::trust;
use pi_resources::trust::protected::{names_protected_place, protected_path};
use pi_tools::files::paths;

const WRITE: &str = "Write it";
const REFUSE: &str = "Do not write it";

/// The files that a call visibly writes.
#[derive(Default)]
struct Targets {
    /// Absolute paths.
    files: Vec<PathBuf>,
    /// A shell line that was not understood, or parts of one that only the shell knows.
    unclear: Vec<String>,
}

impl AgentSession {
    /// Asks about a call that writes into a protected place, if the setting says so. Fails with the
    /// reason if the call may not run.
    pub(crate) async fn guard_protected(&self, tool: &str, args: &Value) -> Result<(), Refusal> {
        if self.protected_paths_setting() != ProtectedPaths::Ask {
            return Ok(());
        }
        let targets = self.targets(tool, args).await;
        let paths = protected_paths(&self.config.paths, &targets.files);
        let mut unclear = targets.unclear.into_iter();
        let named = match unclear.find(|text| names_protected_place(text)) {
            _ if !paths.is_empty() => shown(&paths),
            Some(text) => text,
            None => return Ok(()),
        };
        let refused = |reason: String| Refusal {
            reason,
            terminate: false,
        };
        if !self.config.has_ui {
            return Err(refused(format!(
                "{named} is a protected place, and no user is here to allow it (setting \
                 protectedPaths). Say what should be written, so that the user can do it"
            )));
        }
        let method = UiMethod::Select {
            title: format!("The model wants to write to a protected place ({tool}):\n{named}"),
            options: vec![WRITE.to_owned(), REFUSE.to_owned()],
            timeout: None,
        };
        match self.show_dialog(method).await {
            UiAnswer::Value(answer) if answer == WRITE => Ok(()),
            _ => Err(refused(format!(
                "The user does not allow a write to {named}, which is a protected place"
            ))),
        }
    }

    /// Notes a call that has succeeded: pi's own changes need no new trust in this session, and
    /// the user is told about protected places.
    pub(crate) async fn note_writes(&self, tool: &str, args: &Value) {
        let targets = self.targets(tool, args).await;
        for file in &targets.files {
            trust::note_own_change(file);
        }
        let paths = protected_paths(&self.config.paths, &targets.files);
        if paths.is_empty() {
            return;
        }
        let setting = self.protected_paths_setting();
        if setting == ProtectedPaths::Ask {
            let mut known = self.switcher.protected_changes.lock();
            paths.iter().for_each(|path| known.allow(path));
        }
        if setting == ProtectedPaths::Notify {
            let named = shown(&paths);
            let message =
                format!("{tool} wrote to a protected place: {named}. Look at it before it runs");
            self.notify(message, "info").await;
        }
    }

    /// Returns the files that a call visibly writes.
    async fn targets(&self, tool: &str, args: &Value) -> Targets {
        let text = |member: &str| args.get(member).and_then(Value::as_str);
        match (tool, text("path"), text("command")) {
            ("write" | "edit", Some(path), _) => Targets {
                files: vec![paths::resolve(path, &self.cwd())],
                unclear: Vec::new(),
            },
            ("bash", _, Some(line)) => {
                let base_folders = BaseFolders {
                    cwd: self.cwd(),
                    home: Some(self.config.paths.home.clone()),
                };
                let copy = line.to_owned();
                // A long line takes a while.
                let reading = tokio::task::spawn_blocking(move || written_by(copy, &base_folders));
                reading.await.unwrap_or_else(|_| Targets {
                    files: Vec::new(),
                    unclear: vec![line.to_owned()],
                })
            }
            _ => Targets::default(),
        }
    }

    /// Returns the setting in effect. A project may only make it stricter.
    pub(crate) fn protected_paths_setting(&self) -> ProtectedPaths {
        let setting = |scope| self.settings.values_of(scope).protected_paths;
        let own = setting(SettingsScope::Global).unwrap_or_default();
        own.max(setting(SettingsScope::Project).unwrap_or(ProtectedPaths::Off))
    }
}

/// Returns the files that a shell line visibly writes.
fn written_by(line: String, base_folders: &BaseFolders) -> Targets {
    let writes = visible_writes(&line, base_folders);
    let mut unclear = writes.open;
    if writes.not_understood.is_some() {
        unclear.push(line);
    }
    Targets {
        files: writes.files,
        unclear,
    }
}

/// Returns those of the files that are in protected places.
fn protected_paths(paths: &Paths, files: &[PathBuf]) -> Vec<PathBuf> {
    let files = files.iter();
    files
        .filter_map(|file| protected_path(paths, file))
        .collect()
}

/// Returns the paths as one text for the user, in quotes.
pub(crate) fn shown(paths: &[PathBuf]) -> String {
    let paths = paths
        .iter()
        .map(|path| format!("{:?}", path.display().to_string()));
    paths.collect::<Vec<_>>().join(", ")
}
