//! Writes of the model into protected places: told to the user, or asked about (setting
//! `protectedPaths`).

use std::path::PathBuf;

use serde_json::Value;

use crate::AgentSession;
use pi_agent::event::{UiAnswer, UiMethod};
use pi_agent::run::Refusal;
use pi_resources::settings::{ProtectedPaths, SettingsScope};
use pi_resources::trust;
use pi_resources::trust::protected::{protected_path, redirections};

const WRITE: &str = "Write it";
const REFUSE: &str = "Do not write it";

impl AgentSession {
    /// Asks about a call that writes into a protected place, if the setting says so.
    pub(crate) async fn guard_protected(&self, tool: &str, args: &Value) -> Result<(), Refusal> {
        if self.protected_paths_setting() != ProtectedPaths::Ask {
            return Ok(());
        }
        let paths = self.protected_targets(tool, args);
        if paths.is_empty() {
            return Ok(());
        }
        let named = shown(&paths);
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
        let cwd = self.cwd();
        for target in targets(tool, args) {
            trust::note_own_change(&cwd.join(&target));
        }
        if self.protected_paths_setting() == ProtectedPaths::Notify {
            let paths = self.protected_targets(tool, args);
            if !paths.is_empty() {
                let named = shown(&paths);
                self.notify(format!(
                    "{tool} wrote to a protected place: {named}. Look at it before it runs"
                ))
                .await;
            }
        }
    }

    fn protected_targets(&self, tool: &str, args: &Value) -> Vec<PathBuf> {
        let (cwd, paths) = (self.cwd(), &self.config.paths);
        let targets = targets(tool, args).into_iter();
        targets
            .filter_map(|target| protected_path(paths, &cwd, &target))
            .collect()
    }

    /// Returns the setting in effect. A project may only make it stricter.
    fn protected_paths_setting(&self) -> ProtectedPaths {
        let of = |scope| self.settings.values_of(scope).protected_paths;
        let own = of(SettingsScope::Global).unwrap_or_default();
        own.max(of(SettingsScope::Project).unwrap_or(ProtectedPaths::Off))
    }
}

/// Returns the files that a call visibly writes, as the model named them.
fn targets(tool: &str, args: &Value) -> Vec<String> {
    let text = |member: &str| args.get(member).and_then(Value::as_str);
    match tool {
        "write" | "edit" => text("path").map(str::to_owned).into_iter().collect(),
        "bash" => redirections(text("command").unwrap_or_default()),
        _ => Vec::new(),
    }
}

fn shown(paths: &[PathBuf]) -> String {
    let paths = paths
        .iter()
        .map(|path| format!("{:?}", path.display().to_string()));
    paths.collect::<Vec<_>>().join(", ")
}
